CREATE OR REPLACE FUNCTION billing.refuse_customer_scope()
RETURNS void
LANGUAGE plpgsql
STABLE
SET search_path = ''
AS $function$
-- Locks:      nothing
-- Writes:     nothing
-- Raises:     SB313 the caller is bound to one customer
-- Idempotent: yes
BEGIN
    IF nullif(current_setting('billing.customer_scope', true), '') IS NOT NULL THEN
        RAISE EXCEPTION USING
            ERRCODE = 'SB313',
            MESSAGE = 'a caller bound to one customer may not do this',
            HINT = 'Call without billing.customer_scope.';
    END IF;
END;
$function$;

COMMENT ON FUNCTION billing.refuse_customer_scope IS
'Refuses a caller who is bound to one customer, with SB313: new customers, plans and prices are nobody''s own.';
