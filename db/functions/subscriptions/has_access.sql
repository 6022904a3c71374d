CREATE OR REPLACE FUNCTION billing_api.has_access(
    p_customer_id bigint,
    p_resource_ref text DEFAULT NULL,
    p_as_of timestamptz DEFAULT billing.now()
)
RETURNS boolean
LANGUAGE plpgsql
STABLE
SECURITY DEFINER
SET search_path = ''
SET timezone = 'UTC'
AS $function$
-- Locks:      nothing
-- Writes:     nothing
-- Raises:     SB104 p_as_of is NULL
-- Idempotent: yes
-- A pure function of rows and time: a late renewal costs nobody access, and an end takes effect at its instant, also
-- while every worker is dead. The status is the present one; p_as_of asks about now or later.
BEGIN
    IF p_as_of IS NULL THEN
        RAISE EXCEPTION USING
            ERRCODE = 'SB104',
            MESSAGE = 'p_as_of must not be NULL';
    END IF;
    RETURN EXISTS (
        SELECT 1
        FROM billing.customer AS c
        INNER JOIN billing.resource AS r
            ON r.customer_id = c.customer_id AND r.external_ref = coalesce(p_resource_ref, 'default')
        INNER JOIN billing.subscription AS s
            ON s.customer_id = r.customer_id AND s.resource_id = r.resource_id
            AND s.status IN ('TRIALING', 'ACTIVE', 'PAST_DUE')
        WHERE c.customer_id = p_customer_id
          AND billing.in_customer_scope(c.customer_id)
          AND c.status = 'ACTIVE'
          AND r.suspended_by_billing_at IS NULL
          AND r.suspended_by_admin_at IS NULL
          AND (s.term_end_at IS NULL OR p_as_of < s.term_end_at)
          AND (
              NOT (s.cancel_at_period_end OR (s.pause_at_period_end AND s.status = 'ACTIVE'))
              OR p_as_of < s.current_period_end
          )
          AND CASE s.status
              WHEN 'PAST_DUE' THEN p_as_of >= s.created_at AND (s.access_until IS NULL OR p_as_of < s.access_until)
              ELSE billing.is_covered(s, p_as_of)
          END
    );
END;
$function$;

COMMENT ON FUNCTION billing_api.has_access IS
'True where the customer may use the resource at p_as_of. False for an unknown customer or resource.';
