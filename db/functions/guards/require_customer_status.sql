CREATE OR REPLACE FUNCTION billing.require_customer_status(
    p_customer billing.customer,
    p_statuses text[]
)
RETURNS void
LANGUAGE plpgsql
IMMUTABLE
SET search_path = ''
AS $function$
-- Locks:      nothing
-- Writes:     nothing
-- Raises:     SB314 the customer is in another status
-- Idempotent: yes
BEGIN
    IF p_customer.status <> ALL (p_statuses) THEN
        RAISE EXCEPTION USING
            ERRCODE = 'SB314',
            MESSAGE = format('customer %s is %s', p_customer.customer_id, p_customer.status);
    END IF;
END;
$function$;

COMMENT ON FUNCTION billing.require_customer_status IS 'Raises SB314 where the customer is in none of these statuses.';
