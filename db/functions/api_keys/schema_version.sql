CREATE OR REPLACE FUNCTION billing_worker.schema_version()
RETURNS integer
LANGUAGE sql
STABLE
SECURITY DEFINER
SET search_path = ''
AS $function$
    -- Locks:      nothing
    -- Writes:     nothing
    -- Raises:     nothing
    -- Idempotent: yes
    SELECT max(v.version)::integer FROM public.schema_version AS v;
$function$;

COMMENT ON FUNCTION billing_worker.schema_version IS 'Number of the newest migration of this database.';
