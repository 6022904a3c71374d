BEGIN;
SELECT plan(5);

SELECT is(billing.quoted('GOLD'), '"GOLD"', 'a text is quoted');
SELECT is(billing.quoted(E'a "b"\nc'), '"a \"b\"\nc"', 'what would break a line of a log is escaped');
SELECT is(billing.quoted(NULL), 'NULL', 'NULL is told from an empty text');
SELECT is(billing.quoted(repeat('x', 100)), '"' || repeat('x', 64) || '"', 'a long one is cut');
SELECT is(
    billing.quoted('pay 4111 1111 1111 1111'), '(what looks like a card number)', 'a card number is not repeated, whatever stands around it'
);

SELECT * FROM finish();
ROLLBACK;
