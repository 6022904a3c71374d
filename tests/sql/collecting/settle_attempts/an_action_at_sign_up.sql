-- F15: the first payment needs the customer: who never returns has nothing, who completes in time has it once, and whose
-- payment comes after all is over gets it back.
BEGIN;
SELECT plan(20);
SELECT billing_test.clock('2027-05-01Z');
SELECT billing_test.plan();
CREATE TEMPORARY TABLE scene (name text, customer_id bigint, subscription_id bigint, attempt_id bigint);
CREATE FUNCTION pg_temp.scene(p_name text)
RETURNS void
LANGUAGE plpgsql
AS $function$
DECLARE
    v_customer_id bigint := billing_test.customer(p_name);
    v_subscription_id bigint := billing_test.subscription(v_customer_id, p_payment_behavior => 'PAY_FIRST');
BEGIN
    INSERT INTO scene VALUES (p_name, v_customer_id, v_subscription_id, billing_test.start('2027-05-01Z'));
    PERFORM billing_test.report(
        s.attempt_id, 'REQUIRES_ACTION', '2027-05-01 00:00:02Z', p_payment_id => 'act ' || s.name,
        p_action_expires_at => '2027-05-01 23:00Z'
    )
    FROM scene AS s WHERE s.name = p_name;
END;
$function$;
CREATE FUNCTION pg_temp.hears(p_name text, p_outcome text, p_as_of timestamptz, p_source text)
RETURNS text
LANGUAGE sql
AS $function$
    SELECT r.verdict
    FROM scene AS s, billing_test.report(
        s.attempt_id, p_outcome, p_as_of, p_source => p_source, p_payment_id => 'act ' || s.name,
        p_amount => CASE p_outcome WHEN 'SUCCEEDED' THEN 3000 END
    ) AS r
    WHERE s.name = p_name;
$function$;
CREATE FUNCTION pg_temp.state(p_name text, p_as_of timestamptz)
RETURNS text
LANGUAGE sql
AS $function$
    SELECT concat_ws(
        ' ', s.status, i.status, a.status, CASE WHEN a.status = 'DECLINED' THEN a.decline_code END,
        CASE WHEN billing_api.has_access(x.customer_id, p_as_of => p_as_of) THEN 'access' ELSE 'no access' END
    )
    FROM scene AS x INNER JOIN billing.subscription AS s USING (subscription_id)
    INNER JOIN billing.invoice AS i ON i.subscription_id = s.subscription_id
    INNER JOIN billing.payment_attempt AS a ON a.invoice_id = i.invoice_id
    WHERE x.name = p_name;
$function$;
SELECT pg_temp.scene(x.name) FROM (VALUES ('never'), ('in time'), ('too late')) AS x (name);
SELECT is(
    (SELECT array_agg(DISTINCT pg_temp.state(s.name, '2027-05-01 00:05Z')) FROM scene AS s),
    '{"INCOMPLETE OPEN REQUIRES_ACTION no access"}', 'while the customer is to act there is no access'
);
SELECT is(billing_test.start('2027-05-01 00:05Z'), NULL, 'and nothing else is attempted');

-- Run 2: completed after ten minutes; told twice.
SELECT is(pg_temp.hears('in time', 'SUCCEEDED', '2027-05-01 00:10Z', 'WEBHOOK'), 'APPLIED', 'completed after ten minutes');
SELECT is(pg_temp.hears('in time', 'SUCCEEDED', '2027-05-01 00:11Z', 'LOOKUP'), 'DUPLICATE', 'and told twice');
SELECT is(pg_temp.state('in time', '2027-05-01 00:11Z'), 'ACTIVE PAID SUCCEEDED access', 'it is active');
SELECT is(
    (SELECT billing_test.published(s.subscription_id) FROM scene AS s WHERE s.name = 'in time'),
    'SubscriptionCreated InvoiceOpened InvoiceActionRequired InvoicePaid SubscriptionActivated', 'which is told once'
);
SELECT is(
    (SELECT s.current_period_start FROM billing.subscription AS s INNER JOIN scene AS x USING (subscription_id) WHERE x.name = 'in time'),
    '2027-05-01 00:10Z'::timestamptz, 'from the instant of its payment'
);

-- Runs 1 and 3: nobody returns; 23 hours later the action expires.
SELECT billing_ops.set_clock('2027-05-01 23:00Z');
SELECT is(
    (SELECT count(*) FROM billing_worker.attempts_to_look_up('sim', 10)), 2::bigint, 'when the action expires, the others are asked about'
);
SELECT pg_temp.hears(s.name, 'REQUIRES_ACTION', '2027-05-01 23:00Z', 'LOOKUP') FROM scene AS s WHERE s.name <> 'in time';
SELECT is(billing_worker.expire_checkouts(10), 2, 'and expire');
SELECT is(
    pg_temp.state('never', '2027-05-01 23:00Z'), 'EXPIRED VOID DECLINED action_expired no access',
    'who never returned has nothing, and owes nothing'
);
SELECT is(
    (SELECT billing_test.published(s.subscription_id) !~ 'Activated|PastDue' FROM scene AS s WHERE s.name = 'never'), true,
    'and never had'
);

-- Run 3: the customer completes what has expired, an hour later.
SELECT is(pg_temp.hears('too late', 'SUCCEEDED', '2027-05-02Z', 'WEBHOOK'), 'APPLIED', 'money that has moved is recorded');
SELECT is(pg_temp.state('too late', '2027-05-02Z'), 'EXPIRED VOID SUCCEEDED no access', 'but revives nothing');
SELECT is(
    (SELECT string_agg(r.purpose || ' ' || r.status || ' ' || r.amount, ', ') FROM billing.refund AS r
     INNER JOIN scene AS s USING (customer_id) WHERE s.name = 'too late'),
    'LATE_PAYMENT REQUESTED 3000', 'all of it goes back, once'
);
SELECT is(pg_temp.hears('too late', 'SUCCEEDED', '2027-05-02 00:01Z', 'WEBHOOK'), 'DUPLICATE', 'told again');
SELECT is((SELECT count(*) || ' ' || sum(r.amount) FROM billing.refund AS r), '1 3000', 'it does not go back again');
SELECT is((SELECT count(*) FROM billing.credit_entry), 0::bigint, 'nor as credit');
SELECT is(
    (SELECT count(*) FROM billing.subscription), 3::bigint, 'and nobody has a second subscription'
);
SELECT is_empty('SELECT * FROM billing_test.holes()', 'no event number is missing or repeated');
SELECT is_empty('SELECT * FROM billing_test.broken()', 'no promise is broken');
SELECT * FROM finish();
ROLLBACK;
