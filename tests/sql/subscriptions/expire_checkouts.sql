-- R2, and checkouts that nobody pays: after a day, or when an action has expired, but not while a charge may be on its way.
BEGIN;
SELECT plan(26);
SELECT billing_test.plans();

CREATE FUNCTION pg_temp.checkout(p_name text, p_as_of timestamptz, p_anchor_day integer DEFAULT NULL, p_term_periods integer DEFAULT NULL)
RETURNS bigint
LANGUAGE sql
AS $function$
    SELECT s.subscription_id
    FROM billing_api.create_subscription(
        billing_test.customer(p_name), 'BASIC', 'k', p_anchor_day => p_anchor_day, p_auto_renew => p_term_periods IS NULL,
        p_term_periods => p_term_periods, p_as_of => p_as_of
    ) AS s;
$function$;

SELECT pg_temp.checkout('waits', '2027-04-01Z'), pg_temp.checkout('declined', '2027-04-01Z'), pg_temp.checkout('unknown', '2027-04-01Z');
SELECT billing_test.start('2027-04-01Z');
SELECT billing_test.report(a.attempt_id, x.outcome, '2027-04-01Z', x.code)
FROM (VALUES (128, 'DECLINED', 'do_not_honor'), (192, 'UNKNOWN', NULL)) AS x (no, outcome, code)
INNER JOIN billing.invoice AS i ON i.subscription_id = x.no
INNER JOIN billing.payment_attempt AS a ON a.invoice_id = i.invoice_id;
SELECT is(billing_worker.expire_checkouts(10, '2027-04-01 23:59:59Z'), 0, 'a decline leaves a checkout to be tried again');
SELECT is(billing_worker.expire_checkouts(10, '2027-04-02Z'), 1, 'after a day it is given up, unless a charge may be on its way');
SELECT results_eq(
    'SELECT s.subscription_id, s.status, s.end_reason FROM billing_api.subscription AS s ORDER BY 1',
    $$VALUES (64::bigint, 'INCOMPLETE', NULL), (128, 'EXPIRED', 'checkout_abandoned'), (192, 'INCOMPLETE', NULL)$$,
    'one is in flight, one unknown'
);
SELECT is((SELECT i.status FROM billing_api.invoice AS i WHERE i.subscription_id = 128), 'VOID', 'what it owed is void');

-- An action that nobody completed ends it, without waiting for the day.
SELECT pg_temp.checkout('action', '2027-04-10Z'), pg_temp.checkout('acts', '2027-04-10Z');
SELECT billing_test.start('2027-04-10Z');
SELECT billing_test.report(a.attempt_id, 'REQUIRES_ACTION', '2027-04-10Z', p_action_expires_at => '2027-04-10 01:00Z')
FROM billing.payment_attempt AS a INNER JOIN billing.invoice AS i USING (customer_id, invoice_id) WHERE i.subscription_id IN (256, 320);
SELECT is(billing_worker.expire_checkouts(10, '2027-04-10 00:59:59Z'), 0, 'as long as the customer may act it waits');
SELECT billing_test.report(
    a.attempt_id, 'REQUIRES_ACTION', '2027-04-10 01:00Z', p_source => 'LOOKUP', p_action_expires_at => '2027-04-10 01:00Z'
)
FROM billing.payment_attempt AS a INNER JOIN billing.invoice AS i USING (customer_id, invoice_id) WHERE i.subscription_id IN (256, 320);
SELECT is(
    (SELECT count(*) FROM billing.payment_attempt AS a WHERE a.decline_code = 'action_expired'), 2::bigint, 'then the action has expired'
);
-- One of them tries again before anybody has swept.
SELECT billing_api.create_subscription(320, 'BASIC', 'again', p_as_of => '2027-04-10 01:00:01Z');
SELECT is(billing_worker.expire_checkouts(10, '2027-04-10 01:00:02Z'), 1, 'and so has the checkout');
SELECT results_eq(
    'SELECT s.subscription_id, s.status FROM billing_api.subscription AS s WHERE s.subscription_id IN (256, 320) ORDER BY 1',
    $$VALUES (256::bigint, 'EXPIRED'), (320, 'INCOMPLETE')$$, 'unless it is being tried again'
);

-- Paid: period and anchor are the instant of payment.
SELECT billing_test.collect(p_as_of => '2027-04-10 02:30Z');
SELECT results_eq(
    'SELECT s.status, s.current_period_start, s.current_period_end FROM billing_api.subscription AS s WHERE s.subscription_id = 320',
    $$VALUES ('ACTIVE', '2027-04-10 02:30Z'::timestamptz, '2027-05-10 02:30Z'::timestamptz)$$, 'time spent at the checkout is not paid for'
);

-- R2: a calendar stub keeps its period and amount, and one that was over before it was paid becomes credit. (The second
-- try above has used up an id.)
SELECT pg_temp.checkout(
    'stub', '2027-04-30Z', 1), pg_temp.checkout('late stub', '2027-04-30Z', 1), pg_temp.checkout('late term', '2027-04-30Z', 1, 1
);
SELECT billing_test.start('2027-04-30Z');
SELECT billing_test.report(a.attempt_id, x.outcome, '2027-04-30 12:00Z', p_payment_id => CASE x.outcome WHEN 'SUCCEEDED' THEN 'stub' END)
FROM (VALUES (448, 'SUCCEEDED'), (512, 'PROCESSING'), (576, 'PROCESSING')) AS x (no, outcome)
INNER JOIN billing.invoice AS i ON i.subscription_id = x.no
INNER JOIN billing.payment_attempt AS a ON a.invoice_id = i.invoice_id;
SELECT results_eq(
    'SELECT s.current_period_start, s.current_period_end FROM billing_api.subscription AS s WHERE s.subscription_id = 448',
    $$VALUES ('2027-04-30Z'::timestamptz, '2027-05-01Z'::timestamptz)$$, 'R2: a stub keeps its period as it was invoiced'
);
SELECT is(billing_worker.expire_checkouts(10, '2027-05-02Z'), 0, 'bank money on its way keeps a checkout open');
SELECT billing_test.report(a.attempt_id, 'SUCCEEDED', '2027-05-03Z', p_source => 'LOOKUP', p_payment_id => 'bank ' || i.subscription_id)
FROM billing.payment_attempt AS a INNER JOIN billing.invoice AS i USING (customer_id, invoice_id) WHERE i.subscription_id IN (512, 576);
SELECT is(s.status, 'ACTIVE', 'R2: paid after the end of its stub it is active all the same')
FROM billing_api.subscription AS s WHERE s.subscription_id = 512;
SELECT is(billing_test.credit_of(512), 100::bigint, 'R2: the money for the stub is credit');
SELECT ok(billing_api.has_access(s.customer_id, NULL, '2027-05-03Z'), 'R2: and there is access at once')
FROM billing.subscription AS s WHERE s.subscription_id = 512;
SELECT billing_worker.renew_due(100, '2027-05-03Z');
SELECT results_eq(
    'SELECT * FROM billing_test.invoices_of(512)',
    $$VALUES ('INITIAL PAID 100 paid', 'PRORATION 100'), ('RENEWAL OPEN 2900 due + 100 by credit', 'PERIOD 3000')$$,
    'R2: the first full period is invoiced'
);
SELECT results_eq(
    'SELECT * FROM billing_test.periods_of(512)', $$VALUES ('BILLED 2027-04-30 to 2027-05-01'), ('BILLED 2027-05-01 to 2027-06-01')$$,
    'R2: by the calendar'
);
SELECT billing_api.cancel_subscription(512, p_unused_time => 'CREDIT', p_as_of => '2027-05-03Z');
SELECT is(billing_test.credit_of(512), 100::bigint, 'R2: and nothing is credited twice');
SELECT results_eq(
    'SELECT s.status, s.term_end_at FROM billing_api.subscription AS s WHERE s.subscription_id = 576',
    $$VALUES ('ACTIVE', '2027-06-01Z'::timestamptz)$$, 'R2: a term of one period is the full one then'
);
-- A stub of 100 is too little for the gateway: settled by carrying it, when it was over.
SELECT billing_ops.set_gateway_minimum('sim', 'USD', 150);
SELECT pg_temp.checkout('small late stub', '2027-06-30Z', 1);
SELECT billing_test.collect(p_as_of => '2027-07-01Z');
SELECT is_empty(
    'SELECT a.attempt_id FROM billing.payment_attempt AS a INNER JOIN billing.invoice AS i USING (customer_id, invoice_id)
     WHERE i.subscription_id = 640', 'R2: what is too little to be charged needs no call'
);
SELECT billing_worker.renew_due(100, '2027-07-01Z');
SELECT results_eq(
    'SELECT * FROM billing_test.invoices_of(640)',
    $$VALUES ('INITIAL PAID 100 carried', 'PRORATION 100'), ('RENEWAL OPEN 3000 due', 'PERIOD 3000')$$,
    'R2: and is not collected with the first full period either, since nobody was served before'
);

SELECT billing_test.refuses(format('SELECT billing_worker.expire_checkouts(%s)', x.call), x.sqlstate, 'bad input: ' || x.call)
FROM (VALUES ('NULL', 'SB101'), ('0', 'SB101'), ('10001', 'SB101'), ('10, NULL', 'SB104')) AS x (call, sqlstate);
SELECT is_empty('SELECT * FROM billing_test.broken()', 'no promise is broken');
SELECT is_empty('SELECT * FROM billing_test.holes()', 'no event number is missing or repeated');
SELECT * FROM finish();
ROLLBACK;
