CREATE OR REPLACE FUNCTION billing.next_rung(
    p_policy billing.dunning_policy,
    p_failure_count integer,
    p_first_failed_at timestamptz,
    p_failed_at timestamptz,
    p_invoice_id bigint
)
RETURNS timestamptz
LANGUAGE sql
IMMUTABLE
SET search_path = ''
SET timezone = 'UTC'
AS $function$
    -- The n-th failure is followed by the n-th span. The jitter is derived from invoice and failure, so a replay gives
    -- the same instant: whole seconds from 0 to the jitter of the policy.
    SELECT CASE p_policy.counted_from WHEN 'FIRST_FAILURE' THEN p_first_failed_at ELSE p_failed_at END
        + p_policy.retry_after[p_failure_count]
        + make_interval(
            secs => ('x' || substr(md5(p_invoice_id || ':' || p_failure_count), 1, 8))::bit(32)::bigint
            % (p_policy.jitter_minutes * 60 + 1)
        );
$function$;

COMMENT ON FUNCTION billing.next_rung IS
'When an invoice is tried again after its n-th failure; NULL when its retries are spent. A pure function.';
