CREATE OR REPLACE FUNCTION billing.check_identity()
RETURNS SETOF billing.violation
LANGUAGE sql
STABLE
SET search_path = ''
SET timezone = 'UTC'
AS $function$
    -- Locks:      nothing
    -- Writes:     nothing
    -- Raises:     nothing
    -- Idempotent: yes
    SELECT
        'identity', 'STUCK', NULL::bigint, format('database %s', current_database()),
        'is a copy on another server, and sends nothing until billing_ops.adopt_database says of what kind'
    WHERE billing.is_foreign_database();
$function$;

COMMENT ON FUNCTION billing.check_identity IS
'The database is not on the server that it was made or adopted on: nothing is charged until an operator says what it is.';
