CREATE OR REPLACE FUNCTION billing.require_resource(
    p_customer_id bigint,
    p_resource_ref text,
    p_as_of timestamptz
)
RETURNS billing.resource
LANGUAGE plpgsql
SET search_path = ''
AS $function$
-- Locks:      nothing
-- Writes:     resource, where it is new
-- Raises:     nothing of its own
-- Idempotent: yes
DECLARE
    v_resource billing.resource;
BEGIN
    INSERT INTO billing.resource (customer_id, external_ref, created_at)
    VALUES (p_customer_id, p_resource_ref, p_as_of)
    ON CONFLICT ON CONSTRAINT resource_external_ref_is_unique_per_customer DO NOTHING;

    SELECT r.*
    INTO STRICT v_resource
    FROM billing.resource AS r
    WHERE r.customer_id = p_customer_id AND r.external_ref = p_resource_ref;
    RETURN v_resource;
END;
$function$;

COMMENT ON FUNCTION billing.require_resource IS
'Returns the resource of a customer by its name in the calling system, and makes it where it is new.';
