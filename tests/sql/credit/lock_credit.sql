-- Credit is locked before it is read, and what is drawn is booked under the next number.
BEGIN;
SELECT plan(9);

SELECT billing_test.clock('2027-04-01T00:00:00Z');
CREATE TEMPORARY TABLE c AS
SELECT billing_test.customer('a', p_token => NULL) AS a, billing_test.customer('b', p_token => NULL) AS b;
SELECT billing_api.grant_credit(c.a, 1000, 'USD', 'x', 'k') FROM c;
SELECT billing_api.grant_credit(c.a, 1000, 'EUR', 'x', 'k2') FROM c;
SELECT billing_api.grant_credit(c.b, 1000, 'USD', 'x', 'k') FROM c;
SELECT is(
    (SELECT count(*) FROM billing.credit_balance AS b WHERE b.xmax::text::bigint <> 0), 3::bigint,
        'three balances, each written by its grant'
);
SELECT lives_ok('SELECT billing.lock_credit(NULL)', 'nothing to lock is nothing to do');
SELECT lives_ok($$SELECT billing.lock_credit(ARRAY[ROW(1, 1)::billing.subscription_key])$$, 'nor is a customer without credit');
SELECT lives_ok(
    $$SELECT billing.lock_credit(ARRAY[ROW(c.b, 1)::billing.subscription_key, ROW(c.a, 2)::billing.subscription_key,
        ROW(c.a, 3)::billing.subscription_key]) FROM c$$,
    'keys may come in any order, and twice'
);

-- draw_credit books what was planned.
SELECT billing_test.plan();
SELECT billing_test.subscription(c.a) FROM c;
CREATE FUNCTION pg_temp.draw(p_credit bigint, p_seq bigint, p_balance bigint)
RETURNS void
LANGUAGE sql
AS $function$
    SELECT billing.draw_credit(
        ARRAY[jsonb_populate_record(
            NULL::billing.renewal,
            jsonb_build_object(
                'customer_id', i.customer_id, 'currency', 'EUR', 'credit', p_credit, 'credit_seq', p_seq, 'credit_balance', p_balance,
                'invoice_id', i.invoice_id
            )
        )], '2027-04-01T00:00:00Z'
    )
    FROM billing.invoice AS i;
$function$;
SELECT pg_temp.draw(300, 2, 700);
SELECT results_eq(
    $$SELECT e.entry_seq, e.kind, e.amount, e.balance_after FROM billing.credit_entry AS e WHERE e.currency = 'EUR' ORDER BY 1$$,
    $$VALUES (1::bigint, 'GRANTED', 1000::bigint, 1000::bigint), (2, 'DRAWN', -300, 700)$$, 'a draw is an entry with the balance after it'
);
SELECT row_eq(
    $$SELECT b.balance, b.entry_seq FROM billing.credit_balance AS b WHERE b.currency = 'EUR'$$, ROW(700::bigint, 2::bigint),
        'and the balance follows'
);
SELECT pg_temp.draw(0, NULL, NULL);
SELECT is((SELECT count(*) FROM billing.credit_entry AS e WHERE e.currency = 'EUR'), 2::bigint, 'a draw of nothing is none');
SELECT throws_ok('SELECT pg_temp.draw(100, 2, 600)', '23505', NULL, 'a draw that was planned on an older balance is refused');
SELECT throws_ok('SELECT pg_temp.draw(800, 3, -100)', '23514', NULL, 'and so is one that would overdraw it');

SELECT * FROM finish();
ROLLBACK;
