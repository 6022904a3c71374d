-- One intent for all tries of an invoice, as long as amount and account stay what they were.
BEGIN;
SELECT plan(10);
SELECT billing_test.clock('2027-05-01Z');
SELECT billing_test.customer('c');
SELECT billing_test.plan();
SELECT billing_test.subscription(64);
CREATE FUNCTION pg_temp.send(p_as_of timestamptz)
RETURNS text
LANGUAGE sql
AS $function$
    SELECT concat_ws(' ', right(q.idempotency_key, 5), q.gateway_intent_id, q.previous_payment_id)
    FROM billing_worker.start_attempts('sim', 10, 'w', p_as_of) AS q;
$function$;

SELECT is(pg_temp.send('2027-05-01Z'), 'try-1', 'the first try makes an intent');
SELECT billing_test.report(64, 'DECLINED', '2027-05-01Z', 'insufficient_funds', p_payment_id => 'ch_1');
SELECT is(
    billing_worker.keep_intents(ARRAY[ROW(64, 64, 'pi_1')::billing.attempt_intent]), 1, 'it is kept with the invoice'
);
SELECT is(billing_worker.keep_intents(ARRAY[ROW(64, 64, 'pi_1')::billing.attempt_intent]), 0, 'once');
SELECT is(
    pg_temp.send('2027-05-03Z'), 'try-2 pi_1 ch_1', 'the second try confirms it, and knows the payment before it'
);
SELECT throws_ok(
    $$UPDATE billing.payment_attempt SET gateway_intent_id = 'pi_2' WHERE attempt_id = 128$$,
    'SB901', NULL, 'what was sent does not change'
);
SELECT billing_test.report(128, 'DECLINED', '2027-05-03Z', 'insufficient_funds', p_payment_id => 'ch_2');
SELECT is(
    billing_worker.keep_intents(ARRAY[ROW(64, 64, 'pi_0')::billing.attempt_intent]), 0, 'an earlier try has nothing to say any more'
);
SELECT billing_api.grant_credit(64, 1000, 'USD', 'gift', 'g');
SELECT is(pg_temp.send('2027-05-10Z'), NULL, 'credit is drawn first');
SELECT is(pg_temp.send('2027-05-10Z'), 'try-3', 'with another amount the next try makes a new one');
SELECT billing_worker.keep_intents(ARRAY[ROW(64, 192, 'pi_3')::billing.attempt_intent]);
SELECT billing_test.report(192, 'DECLINED', '2027-05-10Z', 'intent_canceled');
SELECT billing_test.clock('2027-05-16Z');
SELECT is(pg_temp.send('2027-05-16Z'), 'try-4', 'and so it does once the gateway has canceled the last one');
SELECT throws_ok('SELECT billing_worker.keep_intents(NULL)', 'SB101', NULL, 'NULL is no array');
SELECT * FROM finish();
ROLLBACK;
