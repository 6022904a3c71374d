CREATE OR REPLACE FUNCTION billing.known_resource(
    p_customer_id bigint,
    p_resource_ref text
)
RETURNS billing.resource
LANGUAGE plpgsql
STABLE
SET search_path = ''
AS $function$
-- Locks:      nothing
-- Writes:     nothing
-- Raises:     SB210 no such resource of this customer
-- Idempotent: yes
DECLARE
    v_resource billing.resource;
BEGIN
    SELECT r.*
    INTO v_resource
    FROM billing.resource AS r
    WHERE r.customer_id = p_customer_id AND r.external_ref = coalesce(p_resource_ref, 'default');
    IF NOT found THEN
        RAISE EXCEPTION USING
            ERRCODE = 'SB210',
            MESSAGE = format('customer %s has no such resource', p_customer_id);
    END IF;
    RETURN v_resource;
END;
$function$;

COMMENT ON FUNCTION billing.known_resource IS
'Returns a resource by its name in the calling system, or raises; NULL means the resource default.';
