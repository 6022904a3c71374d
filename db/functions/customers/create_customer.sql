CREATE OR REPLACE FUNCTION billing_api.create_customer(
    p_external_ref text,
    p_currency text,
    p_time_zone text DEFAULT 'UTC',
    p_email text DEFAULT NULL,
    p_idempotency_key text DEFAULT NULL,
    p_as_of timestamptz DEFAULT billing.now()
)
RETURNS SETOF billing_api.customer
LANGUAGE plpgsql
SECURITY DEFINER
SET search_path = ''
SET timezone = 'UTC'
AS $function$
-- Locks:      idempotency_key
-- Writes:     idempotency_key, customer, customer_contact
-- Raises:     SB101, SB102 currency, SB103 time zone, SB104 p_as_of, SB105, SB305 key used with other arguments,
--             SB309 the external reference exists, SB313 the caller is bound to one customer
-- Idempotent: yes, by p_idempotency_key
DECLARE
    v_replay jsonb;
    v_as_of timestamptz;
    v_customer_id bigint;
    v_customer billing_api.customer;
BEGIN
    PERFORM billing.refuse_customer_scope();
    PERFORM billing.require_text(p_external_ref, 'p_external_ref', 255);
    PERFORM billing.require_currency(p_currency);
    PERFORM billing.require_time_zone(p_time_zone);
    PERFORM billing.require_email(p_email);
    v_replay := billing.claim_idempotency_key(
        0, 'create_customer', p_idempotency_key,
        jsonb_build_object(
            'externalRef', p_external_ref, 'currency', p_currency, 'timeZone', p_time_zone, 'email', p_email
        ),
        false, p_as_of
    );
    IF v_replay IS NOT NULL THEN
        RETURN QUERY SELECT r.* FROM jsonb_populate_record(NULL::billing_api.customer, v_replay) AS r;
        RETURN;
    END IF;

    v_as_of := billing.require_as_of(p_as_of);
    INSERT INTO billing.customer (external_ref, currency, time_zone, created_at)
    VALUES (p_external_ref, p_currency, p_time_zone, v_as_of)
    ON CONFLICT ON CONSTRAINT customer_external_ref_is_unique DO NOTHING
    RETURNING customer_id INTO v_customer_id;
    IF v_customer_id IS NULL THEN
        RAISE EXCEPTION USING
            ERRCODE = 'SB309',
            MESSAGE = 'a customer with this external reference exists',
            DETAIL = (SELECT c.customer_id::text FROM billing.customer AS c WHERE c.external_ref = p_external_ref);
    END IF;
    INSERT INTO billing.customer_contact (customer_id, email)
    SELECT v_customer_id, p_email
    WHERE p_email IS NOT NULL;

    SELECT c.* INTO STRICT v_customer FROM billing_api.customer AS c WHERE c.customer_id = v_customer_id;
    PERFORM billing.store_response(0, 'create_customer', p_idempotency_key, to_jsonb(v_customer));
    RETURN NEXT v_customer;
END;
$function$;

COMMENT ON FUNCTION billing_api.create_customer IS
'Creates who pays. The currency is the one of new subscriptions, the time zone the one of their boundaries.';
