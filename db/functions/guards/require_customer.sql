CREATE OR REPLACE FUNCTION billing.require_customer(
    p_customer_id bigint
)
RETURNS billing.customer
LANGUAGE plpgsql
STABLE
SET search_path = ''
AS $function$
-- Locks:      nothing
-- Writes:     nothing
-- Raises:     SB202 no such customer, or another one than the caller's scope
-- Idempotent: yes
DECLARE
    v_customer billing.customer;
BEGIN
    SELECT c.*
    INTO v_customer
    FROM billing.customer AS c
    WHERE c.customer_id = p_customer_id
      AND billing.in_customer_scope(c.customer_id);

    IF NOT found THEN
        RAISE EXCEPTION USING
            ERRCODE = 'SB202',
            MESSAGE = format('customer %s does not exist', coalesce(p_customer_id::text, 'NULL'));
    END IF;

    RETURN v_customer;
END;
$function$;

COMMENT ON FUNCTION billing.require_customer IS 'Returns a customer, or raises SB202; a foreign one is as unknown as a missing one.';
