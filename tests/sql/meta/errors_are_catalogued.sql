-- Callers match SQLSTATEs, so there is one list of them.
BEGIN;
SELECT plan(4);

CREATE TEMPORARY VIEW raised AS
SELECT f.path, found.code[1] AS code
FROM billing_test.sql_file AS f
CROSS JOIN LATERAL regexp_matches(f.content, '\yERRCODE\s*=\s*''([^'']*)''', 'gi') AS found (code)
WHERE f.path ~ '^db/(functions|migrations|views)/';

SELECT is_empty($$
    SELECT path, code FROM raised WHERE code !~ '^SB[12349][0-9]{2}$'
$$, 'every error is of class SB');

SELECT is_empty($$
    SELECT path, code FROM raised WHERE code NOT IN (SELECT sqlstate FROM billing.error_code)
$$, 'every error that a file raises stands in the catalogue');

SELECT is_empty($$
    SELECT sqlstate, name FROM billing.error_code WHERE sqlstate NOT IN (SELECT code FROM raised)
$$, 'every error in the catalogue is raised somewhere');

SELECT is_empty($$
    SELECT f.path, found.statement[1] AS statement
    FROM billing_test.sql_file AS f
    CROSS JOIN LATERAL regexp_matches(f.content, '(\yRAISE\s+EXCEPTION\y[^;]*;)', 'gi') AS found (statement)
    WHERE f.path ~ '^db/(functions|migrations)/' AND found.statement[1] !~* '\yERRCODE\s*='
$$, 'nothing raises without an ERRCODE');

SELECT * FROM finish();
ROLLBACK;
