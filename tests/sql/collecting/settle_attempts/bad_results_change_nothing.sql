BEGIN;
SELECT plan(26);

SELECT billing_test.renewal_invoice();
SELECT billing_ops.set_clock('2027-05-01T00:01:00Z');
CREATE TEMPORARY TABLE attempt AS SELECT billing_test.start('2027-05-01T00:00:00Z') AS id;
SELECT set_config('test.id', a.id::text, true), set_config('test.customer', c.customer_id::text, true)
FROM attempt AS a, billing.customer AS c;
CREATE FUNCTION pg_temp.settle(
    p_outcome text, p_code text DEFAULT NULL, p_source text DEFAULT 'SEND', p_amount bigint DEFAULT NULL, p_retry_after numeric DEFAULT NULL
)
RETURNS SETOF billing.settlement
LANGUAGE sql
AS $function$
    SELECT s.*
    FROM billing_worker.settle_attempts(ARRAY[
        ROW(
            current_setting('test.customer')::bigint, current_setting('test.id')::bigint, 1, p_outcome, NULL, p_amount, NULL, p_code,
            p_retry_after, NULL, p_source
        )::billing.charge_result
    ]) AS s;
$function$;

SELECT billing_test.refuses('SELECT billing_worker.settle_attempts(NULL)', 'SB101', 'no results at all are refused');
SELECT is((SELECT count(*) FROM billing_worker.settle_attempts('{}')), 0::bigint, 'an empty batch is nothing to do');
SELECT billing_test.refuses('SELECT billing_worker.settle_attempts(ARRAY[NULL]::billing.charge_result[])', 'SB101',
    'a result that is NULL is refused');
SELECT throws_like(
    $$SELECT billing_worker.settle_attempts(ARRAY[
        ROW(1, 1, 1, 'UNKNOWN', NULL, NULL, NULL, NULL, NULL, NULL, 'SEND')::billing.charge_result, NULL, NULL
    ])$$,
    'result 2, %', 'and named by its place, since it has no attempt'
);
SELECT billing_test.refuses(
    $$SELECT billing_worker.settle_attempts(
        array_fill(ROW(1, 1, 1, 'UNKNOWN', NULL, NULL, NULL, NULL, NULL, NULL, 'SEND')::billing.charge_result, ARRAY[10001]))$$,
    'SB101', 'more than 10000 results are refused'
);
SELECT billing_test.refuses(
    $$SELECT pg_temp.settle('PAID', '4111111111111111')$$, 'SB101', 'a card number in one is not repeated',
    p_detail => '(what looks like a card number)'
);
SELECT billing_test.refuses('SELECT pg_temp.settle(NULL)', 'SB101', 'without an outcome');
SELECT billing_test.refuses($$SELECT pg_temp.settle('PAID')$$, 'SB101', 'with one that nobody knows');
SELECT billing_test.refuses($$SELECT pg_temp.settle('succeeded')$$, 'SB101', 'in lower case');
SELECT billing_test.refuses($$SELECT pg_temp.settle('UNKNOWN', p_source => NULL)$$, 'SB101', 'without a source');
SELECT billing_test.refuses($$SELECT pg_temp.settle('UNKNOWN', p_source => 'ENGINE')$$, 'SB101', 'in the name of the engine');
SELECT billing_test.refuses($$SELECT pg_temp.settle('DECLINED')$$, 'SB101', 'a decline without a code');
SELECT billing_test.refuses($$SELECT pg_temp.settle('NOT_FOUND')$$, 'SB101', '"not found" from a send');
SELECT billing_test.refuses($$SELECT pg_temp.settle('NOT_ATTEMPTED', p_source => 'LOOKUP')$$, 'SB101',
    '"not attempted" from a look-up, which attempts nothing');
SELECT billing_test.refuses($$SELECT pg_temp.settle('UNKNOWN', p_source => 'WEBHOOK')$$, 'SB101', 'a webhook that says nothing definite');
SELECT billing_test.refuses($$SELECT pg_temp.settle('PROCESSING', p_source => 'WEBHOOK')$$, 'SB101', 'a webhook that is no answer yet');
SELECT billing_test.refuses($$SELECT pg_temp.settle('SUCCEEDED', p_amount => 0)$$, 'SB101', 'an amount of nothing');
SELECT billing_test.refuses($$SELECT pg_temp.settle('SUCCEEDED', p_amount => -3000)$$, 'SB101', 'a negative amount');
SELECT billing_test.refuses($$SELECT pg_temp.settle('NOT_ATTEMPTED', p_retry_after => -1)$$, 'SB101', 'a negative Retry-After');
SELECT billing_test.refuses($$SELECT pg_temp.settle('NOT_ATTEMPTED', p_retry_after => 'NaN')$$, 'SB101', 'one that is no number');
SELECT billing_test.refuses($$SELECT pg_temp.settle('NOT_ATTEMPTED', p_retry_after => 1e9)$$, 'SB101', 'one of decades');
SELECT billing_test.refuses($$SELECT billing_worker.settle_attempts('{}', 'infinity')$$, 'SB104', 'a time that never comes');
SELECT billing_test.refuses('SELECT billing_worker.settle_attempts(''{}'', NULL)', 'SB104', 'no time');

-- An attempt of somebody else, and one that is not there.
SELECT results_eq(
    $$SELECT s.verdict, s.attempt_status FROM billing_worker.settle_attempts(ARRAY[
        ROW(current_setting('test.customer')::bigint + 64, current_setting('test.id')::bigint, 1, 'SUCCEEDED', 'p', 3000, 'USD', NULL,
            NULL, NULL, 'SEND')::billing.charge_result,
        ROW(current_setting('test.customer')::bigint, 1, 1, 'SUCCEEDED', 'p', 3000, 'USD', NULL, NULL, NULL, 'SEND')::billing.charge_result
      ]) AS s$$,
    $$VALUES ('REJECTED', NULL), ('REJECTED', NULL)$$,
    'an attempt under another customer is not found, nor one that nobody made: both are rejected, and hold up nobody'
);
SELECT is((SELECT i.status FROM billing.invoice AS i WHERE i.kind = 'RENEWAL'), 'OPEN', 'the invoice is as before');
SELECT throws_ok(
    $$SELECT billing_test.run_as('billing_app', 'SELECT billing_worker.settle_attempts(''{}'')')$$, '42501', NULL,
        'applications may not settle'
);

SELECT * FROM finish();
ROLLBACK;
