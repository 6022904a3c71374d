CREATE OR REPLACE FUNCTION billing.record_sign_up(
    p_terms billing.sign_up,
    p_subscription_id bigint,
    p_invoice_id bigint,
    p_event_types text[]
)
RETURNS void
LANGUAGE plpgsql
SET search_path = ''
AS $function$
-- Locks:      nothing; the subscription is new
-- Writes:     subscription_event, outbox_event
-- Raises:     nothing of its own
-- Idempotent: no
DECLARE
    v_happenings billing.happening[];
BEGIN
    SELECT array_agg(
        ROW(
            p_terms.customer_id, p_subscription_id, e.no, e.event_type,
            CASE e.event_type WHEN 'SubscriptionActivated' THEN p_terms.status END,
            CASE e.event_type WHEN 'SubscriptionCreated' THEN p_terms.status WHEN 'SubscriptionActivated' THEN 'ACTIVE' END,
            CASE WHEN e.event_type LIKE 'Invoice%' THEN p_invoice_id END, NULL,
            CASE WHEN e.event_type LIKE 'Subscription%' THEN jsonb_build_object('row', billing.logged_row(s)) END,
            true
        )::billing.happening
        ORDER BY e.no
    )
    INTO v_happenings
    FROM unnest(p_event_types) WITH ORDINALITY AS e (event_type, no)
    CROSS JOIN billing.subscription AS s
    WHERE s.customer_id = p_terms.customer_id AND s.subscription_id = p_subscription_id;
    PERFORM billing.record_happenings(v_happenings, p_terms.as_of);
END;
$function$;

COMMENT ON FUNCTION billing.record_sign_up IS 'Numbers the events of a new subscription from 1 and records them.';
