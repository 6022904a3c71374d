CREATE OR REPLACE FUNCTION billing.check_outbox_numbers(
    p_customers bigint[] DEFAULT NULL
)
RETURNS SETOF billing.violation
LANGUAGE plpgsql
STABLE
SET search_path = ''
SET timezone = 'UTC'
SET plan_cache_mode = force_custom_plan
AS $function$
-- Locks:      nothing
-- Writes:     nothing
-- Raises:     nothing
-- Idempotent: yes
-- Days of the outbox are dropped in time: what was logged before the oldest event that is left cannot be missed. A
-- number of a subscription may be without an event, one of a customer may not.
DECLARE
    v_since timestamptz;
BEGIN
    SELECT min(o.created_at) INTO v_since FROM billing.outbox_event AS o;

    RETURN QUERY
    SELECT
        'outbox_numbers', 'BROKEN', o.customer_id, format('%s %s', o.aggregate_type, o.aggregate_id),
        format('number %s stands in %s events, event_seq is %s', o.aggregate_seq, o.events, coalesce(s.event_seq, c.event_seq))
    FROM (
        SELECT e.aggregate_type, e.customer_id, e.aggregate_id, e.aggregate_seq, count(*) AS events
        FROM billing.outbox_event AS e
        WHERE (p_customers IS NULL OR e.customer_id = ANY (p_customers))
        GROUP BY e.aggregate_type, e.customer_id, e.aggregate_id, e.aggregate_seq
    ) AS o
    LEFT JOIN billing.subscription AS s
        ON o.aggregate_type = 'subscription' AND s.customer_id = o.customer_id AND s.subscription_id = o.aggregate_id
    LEFT JOIN billing.customer AS c
        ON o.aggregate_type = 'customer' AND c.customer_id = o.customer_id AND c.customer_id = o.aggregate_id
    WHERE o.events > 1 OR (o.aggregate_seq <= coalesce(s.event_seq, c.event_seq)) IS NOT TRUE
    UNION ALL
    SELECT
        'outbox_numbers', 'BROKEN', o.customer_id, format('customer %s', o.customer_id),
        format('numbers up to %s, %s of them since %s, event_seq is %s', o.last_seq, o.events, o.first_seq, c.event_seq)
    FROM (
        SELECT
            e.customer_id, count(DISTINCT e.aggregate_seq) AS events, min(e.aggregate_seq) AS first_seq,
            max(e.aggregate_seq) AS last_seq
        FROM billing.outbox_event AS e
        WHERE e.aggregate_type = 'customer' AND (p_customers IS NULL OR e.customer_id = ANY (p_customers))
        GROUP BY e.customer_id
    ) AS o
    INNER JOIN billing.customer AS c ON c.customer_id = o.customer_id
    WHERE o.events <> o.last_seq - o.first_seq + 1 OR o.last_seq < c.event_seq
    UNION ALL
    SELECT
        'outbox_numbers', 'BROKEN', l.customer_id, format('subscription %s', l.subscription_id),
        format('%s, number %s, is not in the outbox', l.event_type, l.event_seq)
    FROM billing.subscription_event AS l
    WHERE l.event_type IN (
        'SubscriptionCreated', 'SubscriptionActivated', 'SubscriptionRenewed', 'SubscriptionPlanChanged',
        'SubscriptionPastDue', 'SubscriptionRecovered', 'SubscriptionPaused', 'SubscriptionResumed',
        'SubscriptionCanceled', 'SubscriptionExpired', 'InvoiceOpened', 'InvoicePaid', 'InvoicePaymentFailed',
        'InvoiceActionRequired', 'InvoiceVoided', 'InvoiceFailed', 'PaymentUnexpected'
    )
      AND l.recorded_at > v_since
      AND (p_customers IS NULL OR l.customer_id = ANY (p_customers))
      AND NOT EXISTS (
          SELECT 1
          FROM billing.outbox_event AS e
          WHERE e.customer_id = l.customer_id AND e.aggregate_type = 'subscription'
            AND e.aggregate_id = l.subscription_id AND e.aggregate_seq = l.event_seq AND e.event_type = l.event_type
      );
END;
$function$;

COMMENT ON FUNCTION billing.check_outbox_numbers IS
'Two events carry one number, one carries a number that was never given, or one is missing: consumers would drop, misorder or never learn of it.';
