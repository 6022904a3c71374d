CREATE OR REPLACE FUNCTION billing.require_customer_status(
    p_customer billing.customer,
    p_statuses text[]
)
RETURNS void
LANGUAGE plpgsql
SET search_path = ''
AS $function$
-- Locks:      customer, FOR KEY SHARE as any foreign key takes it: until the caller has committed, nobody erases him
-- Writes:     nothing
-- Raises:     SB314 the customer is in another status
-- Idempotent: yes
DECLARE
    v_status text;
BEGIN
    SELECT c.status
    INTO STRICT v_status
    FROM billing.customer AS c
    WHERE c.customer_id = p_customer.customer_id
    FOR KEY SHARE;

    IF v_status <> ALL (p_statuses) THEN
        RAISE EXCEPTION USING
            ERRCODE = 'SB314',
            MESSAGE = format('customer %s is %s', p_customer.customer_id, v_status);
    END IF;
END;
$function$;

COMMENT ON FUNCTION billing.require_customer_status IS
'Raises SB314 where the customer is in none of these statuses, and holds the customer against erasure.';
