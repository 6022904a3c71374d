CREATE FUNCTION billing_test.result(
    p_attempt_id bigint,
    p_outcome text,
    p_code text DEFAULT NULL,
    p_source text DEFAULT 'SEND',
    p_payment_id text DEFAULT NULL,
    p_amount bigint DEFAULT NULL,
    p_currency text DEFAULT NULL,
    p_epoch_off integer DEFAULT 0,
    p_retry_after numeric DEFAULT NULL,
    p_action_expires_at timestamptz DEFAULT NULL
)
RETURNS billing.charge_result
LANGUAGE sql
AS $function$
    SELECT ROW(
        a.customer_id, a.attempt_id, CASE p_source WHEN 'WEBHOOK' THEN NULL ELSE a.claim_epoch + p_epoch_off END,
        p_outcome, p_payment_id, p_amount, p_currency, p_code, p_retry_after, p_action_expires_at, p_source
    )::billing.charge_result
    FROM billing.payment_attempt AS a
    WHERE a.attempt_id = p_attempt_id;
$function$;

COMMENT ON FUNCTION billing_test.result IS
'What a gateway says about an attempt, under the epoch of its present claim plus p_epoch_off.';

CREATE FUNCTION billing_test.report(
    p_attempt_id bigint,
    p_outcome text,
    p_as_of timestamptz,
    p_code text DEFAULT NULL,
    p_source text DEFAULT 'SEND',
    p_payment_id text DEFAULT NULL,
    p_amount bigint DEFAULT NULL,
    p_currency text DEFAULT NULL,
    p_epoch_off integer DEFAULT 0,
    p_retry_after numeric DEFAULT NULL,
    p_action_expires_at timestamptz DEFAULT NULL
)
RETURNS SETOF billing.settlement
LANGUAGE sql
AS $function$
    SELECT s.*
    FROM billing_worker.settle_attempts(
        ARRAY[billing_test.result(
            p_attempt_id, p_outcome, p_code, p_source, p_payment_id, p_amount, p_currency, p_epoch_off, p_retry_after,
            p_action_expires_at
        )],
        p_as_of
    ) AS s;
$function$;

COMMENT ON FUNCTION billing_test.report IS 'Settles one attempt with one result.';

CREATE FUNCTION billing_test.start(
    p_as_of timestamptz,
    p_gateway_account text DEFAULT 'sim'
)
RETURNS bigint
LANGUAGE sql
AS $function$
    SELECT max(q.attempt_id) FROM billing_worker.start_attempts(p_gateway_account, 1000, 'test', p_as_of) AS q;
$function$;

COMMENT ON FUNCTION billing_test.start IS 'Starts what is due and returns the newest attempt that is to be sent; NULL = none.';

CREATE FUNCTION billing_test.lapse_leases()
RETURNS void
LANGUAGE sql
AS $function$
    UPDATE billing.payment_attempt AS a
    SET lease_until = clock_timestamp() - interval '1 second'
    WHERE a.lease_until IS NOT NULL;
$function$;

COMMENT ON FUNCTION billing_test.lapse_leases IS 'What a minute and a half of wall clock does to the claims of workers that died.';

CREATE FUNCTION billing_test.lapse_holds()
RETURNS void
LANGUAGE sql
AS $function$
    UPDATE billing.invoice AS i
    SET held_until = clock_timestamp() - interval '1 second'
    WHERE i.held_until IS NOT NULL;
$function$;

COMMENT ON FUNCTION billing_test.lapse_holds IS 'Lets the time pass for which a gateway asked not to be called.';

CREATE FUNCTION billing_test.log_of(
    p_subscription_id bigint
)
RETURNS text
LANGUAGE sql
AS $function$
    SELECT string_agg(e.event_type, ' ' ORDER BY e.event_seq)
    FROM billing.subscription_event AS e
    WHERE e.subscription_id = p_subscription_id;
$function$;

COMMENT ON FUNCTION billing_test.log_of IS 'The log of a subscription as one line: the types of its events in order.';

CREATE FUNCTION billing_test.published(
    p_subscription_id bigint
)
RETURNS text
LANGUAGE sql
AS $function$
    SELECT string_agg(e.event_type, ' ' ORDER BY e.aggregate_seq)
    FROM billing.outbox_event AS e
    WHERE e.aggregate_type = 'subscription' AND e.aggregate_id = p_subscription_id;
$function$;

COMMENT ON FUNCTION billing_test.published IS 'What the world was told about a subscription, as one line.';

CREATE FUNCTION billing_test.holes()
RETURNS TABLE (subscription_id bigint, problem text)
LANGUAGE sql
AS $function$
    -- Log, timeline and invoices together hold every number, from 1 to event_seq; the outbox repeats none and invents none.
    SELECT s.subscription_id, format('number %s is missing', n.seq)
    FROM billing.subscription AS s
    CROSS JOIN LATERAL generate_series(1, s.event_seq) AS n (seq)
    WHERE NOT EXISTS (
        SELECT FROM billing.subscription_event AS e
        WHERE e.customer_id = s.customer_id AND e.subscription_id = s.subscription_id AND e.event_seq = n.seq
    )
    AND NOT EXISTS (
        SELECT FROM billing.subscription_period AS p
        WHERE p.customer_id = s.customer_id AND p.subscription_id = s.subscription_id AND p.opened_seq = n.seq
    )
    AND NOT EXISTS (
        SELECT FROM billing.invoice AS i
        WHERE i.customer_id = s.customer_id AND i.subscription_id = s.subscription_id AND i.opened_seq = n.seq
    )
    UNION ALL
    SELECT s.subscription_id, format('event %s is beyond event_seq %s', max(e.event_seq), s.event_seq)
    FROM billing.subscription AS s
    INNER JOIN billing.subscription_event AS e
        ON e.customer_id = s.customer_id AND e.subscription_id = s.subscription_id
    GROUP BY s.subscription_id, s.event_seq
    HAVING max(e.event_seq) > s.event_seq
    UNION ALL
    SELECT o.aggregate_id, format('number %s was published %s times', o.aggregate_seq, count(*))
    FROM billing.outbox_event AS o
    WHERE o.aggregate_type = 'subscription'
    GROUP BY o.aggregate_id, o.aggregate_seq
    HAVING count(*) > 1;
$function$;

COMMENT ON FUNCTION billing_test.holes IS 'Numbers of events that are missing, repeated or invented; none if all is well.';

CREATE FUNCTION billing_test.broken()
RETURNS TABLE (check_name text, object text, detail text)
LANGUAGE sql
AS $function$
    -- A test that stops the clock somewhere leaves things undone, which STUCK would tell.
    SELECT v.check_name, v.object, v.detail FROM billing_ops.check_integrity() AS v WHERE v.severity = 'BROKEN';
$function$;

COMMENT ON FUNCTION billing_test.broken IS 'Promises that are broken by what the test has done; none if all is well.';
