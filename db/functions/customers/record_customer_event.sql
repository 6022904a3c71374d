CREATE OR REPLACE FUNCTION billing.record_customer_event(
    p_customer_id bigint,
    p_event_type text,
    p_detail jsonb,
    p_as_of timestamptz
)
RETURNS void
LANGUAGE plpgsql
SET search_path = ''
AS $function$
-- Locks:      customer, one row, for its counter; after credit balances
-- Writes:     customer, outbox_event
-- Raises:     nothing of its own
-- Idempotent: no
-- The shapes stand in docs/events/*.schema.json.
DECLARE
    v_event_seq bigint;
BEGIN
    UPDATE billing.customer AS c
    SET event_seq = c.event_seq + 1
    WHERE c.customer_id = p_customer_id
    RETURNING c.event_seq INTO STRICT v_event_seq;

    INSERT INTO billing.outbox_event (
        aggregate_type, aggregate_id, aggregate_seq, customer_id, event_type, payload, occurred_at
    )
    VALUES (
        'customer', p_customer_id, v_event_seq, p_customer_id, p_event_type,
        jsonb_build_object(
            'customerId', p_customer_id, 'subscriptionId', NULL, 'resourceRef', NULL,
            'occurredAt', billing.to_rfc3339(p_as_of), 'version', v_event_seq
        ) || p_detail,
        p_as_of
    );
END;
$function$;

COMMENT ON FUNCTION billing.record_customer_event IS
'Tells the world of something about a customer that is about none of its subscriptions, in the customer''s own sequence.';
