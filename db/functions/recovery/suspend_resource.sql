CREATE OR REPLACE FUNCTION billing_api.suspend_resource(
    p_customer_id bigint,
    p_resource_ref text,
    p_idempotency_key text DEFAULT NULL,
    p_as_of timestamptz DEFAULT billing.now()
)
RETURNS SETOF billing_api.resource
LANGUAGE plpgsql
SECURITY DEFINER
SET search_path = ''
SET timezone = 'UTC'
AS $function$
-- Locks:      idempotency_key -> subscription (the last one of the resource) -> resource -> customer
-- Writes:     idempotency_key, resource, subscription, customer, subscription_event, outbox_event
-- Raises:     SB101 key, SB104 p_as_of, SB202 customer, SB210 resource, SB305 key used with other arguments
-- Idempotent: yes: one that is suspended stays so since when it was
-- An administrator's, apart from that of billing: payment never lifts it.
DECLARE
    v_replay jsonb;
    v_as_of timestamptz;
    v_resource billing.resource;
    v_answer billing_api.resource;
BEGIN
    PERFORM billing.require_customer(p_customer_id);
    v_replay := billing.claim_idempotency_key(
        p_customer_id, 'suspend_resource', p_idempotency_key, jsonb_build_object('resourceRef', p_resource_ref), false,
        p_as_of
    );
    IF v_replay IS NOT NULL THEN
        RETURN QUERY SELECT r.* FROM jsonb_populate_record(NULL::billing_api.resource, v_replay) AS r;
        RETURN;
    END IF;

    v_as_of := billing.require_as_of(p_as_of);
    v_resource := billing.known_resource(p_customer_id, p_resource_ref);
    PERFORM billing.switch_suspension(v_resource, true, v_as_of);

    SELECT r.*
    INTO STRICT v_answer
    FROM billing_api.resource AS r
    WHERE r.customer_id = p_customer_id AND r.resource_id = v_resource.resource_id;
    PERFORM billing.store_response(p_customer_id, 'suspend_resource', p_idempotency_key, to_jsonb(v_answer));
    RETURN NEXT v_answer;
END;
$function$;

COMMENT ON FUNCTION billing_api.suspend_resource IS
'Suspends a resource by hand: no access, whatever is paid, until lift_suspension.';
