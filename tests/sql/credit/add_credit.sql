BEGIN;
SELECT plan(9);
SELECT billing_test.clock('2027-01-31Z');
SELECT billing_test.customer('c', p_token => NULL);

SELECT is(
    billing.add_credit(64, 'USD', 'GRANTED', 500, NULL, NULL, 'gift', '2027-01-31Z'), 500::bigint,
    'the first entry makes the balance'
);
SELECT is(
    billing.add_credit(64, 'USD', 'DRAWN', -500, NULL, NULL, 'invoice', '2027-02-01Z'), 0::bigint, 'all of it can be drawn'
);
SELECT is(
    billing.add_credit(64, 'JPY', 'SURPLUS', 7, NULL, NULL, 'paid too much', '2027-02-01Z'), 7::bigint,
    'each currency has a balance of its own'
);
SELECT results_eq(
    $$SELECT e.currency, e.entry_seq, e.kind, e.amount, e.balance_after, e.reason, e.as_of
      FROM billing.credit_entry AS e ORDER BY e.currency DESC, e.entry_seq$$,
    $$VALUES ('USD', 1::bigint, 'GRANTED', 500::bigint, 500::bigint, 'gift', '2027-01-31Z'::timestamptz),
      ('USD', 2, 'DRAWN', -500, 0, 'invoice', '2027-02-01Z'), ('JPY', 1, 'SURPLUS', 7, 7, 'paid too much', '2027-02-01Z')$$,
    'the ledger shows every change with the balance after it'
);
SELECT billing_test.refuses(s.statement, s.sqlstate, s.description)
FROM (VALUES
    ($$SELECT billing.add_credit(64, 'USD', 'DRAWN', -1, NULL, NULL, 'invoice', '2027-02-01Z')$$, 'SB106',
     'credit is not overdrawn'),
    ($$SELECT billing.add_credit(64, 'EUR', 'DRAWN', -1, NULL, NULL, 'invoice', '2027-02-01Z')$$, 'SB106',
     'where there is no balance, nothing is drawn'),
    ($$SELECT billing.add_credit(64, 'JPY', 'GRANTED', 999999999999994, NULL, NULL, 'gift', '2027-02-01Z')$$, 'SB106',
     'a balance beyond 10^15 minor units is refused'),
    ($$SELECT billing.add_credit(64, 'USD', 'GRANTED', -1, NULL, NULL, 'gift', '2027-02-01Z')$$, 'SB106',
     'a grant cannot take'),
    ($$UPDATE billing.credit_entry SET amount = 1$$, 'SB901', 'the ledger is not rewritten')
) AS s (statement, sqlstate, description);

SELECT * FROM finish();
ROLLBACK;
