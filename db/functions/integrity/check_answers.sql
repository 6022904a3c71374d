CREATE OR REPLACE FUNCTION billing.check_answers(
    p_customers bigint[] DEFAULT NULL
)
RETURNS SETOF billing.violation
LANGUAGE plpgsql
STABLE
SET search_path = ''
SET timezone = 'UTC'
SET plan_cache_mode = force_custom_plan
AS $function$
-- Locks:      nothing
-- Writes:     nothing
-- Raises:     nothing
-- Idempotent: yes
BEGIN
    RETURN QUERY
    SELECT
        'answers', 'BROKEN', nullif(k.customer_id, 0), format('idempotency key of %s', k.operation),
        format('the call of %s has no stored answer', k.created_at)
    FROM billing.idempotency_key AS k
    WHERE k.response IS NULL AND (p_customers IS NULL OR k.customer_id = ANY (p_customers));
END;
$function$;

COMMENT ON FUNCTION billing.check_answers IS
'A caller''s key was committed without its answer: who repeats the call would get nothing back, and might act again.';
