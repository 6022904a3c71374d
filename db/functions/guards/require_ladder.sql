CREATE OR REPLACE FUNCTION billing.require_ladder(
    p_retry_after interval[],
    p_counted_from text,
    p_jitter_minutes integer,
    p_grace interval
)
RETURNS void
LANGUAGE plpgsql
IMMUTABLE
SET search_path = ''
AS $function$
-- Locks:      nothing
-- Writes:     nothing
-- Raises:     SB107 not a ladder, or a grace that ends before its last retry
-- Idempotent: yes
-- The latest instant of the last retry: every span with its jitter where each counts from the failure before, the last
-- one alone where all count from the first failure.
DECLARE
    c_jitter CONSTANT interval := make_interval(mins => p_jitter_minutes);
    v_fault text;
BEGIN
    SELECT CASE
        WHEN p_retry_after IS NULL THEN 'p_retry_after must not be NULL; without retries it is empty'
        WHEN coalesce(array_ndims(p_retry_after), 1) <> 1 OR cardinality(p_retry_after) > 20
            THEN 'p_retry_after must be one list of at most 20 spans'
        WHEN bool_or(NOT billing.is_span(r.span, '1 minute', '366 days'))
            THEN 'every span of p_retry_after must be 1 minute to 366 days, without months'
        WHEN p_grace IS NOT NULL AND NOT billing.is_span(p_grace, '1 minute', '3660 days')
            THEN 'p_grace must be 1 minute to 3660 days, without months'
        WHEN p_counted_from = 'FIRST_FAILURE' AND bool_or(r.span <= r.earlier + c_jitter)
            THEN 'spans counted from the first failure must grow by more than the jitter'
        WHEN p_grace < CASE p_counted_from
            WHEN 'FIRST_FAILURE' THEN max(r.span) + c_jitter
            ELSE sum(r.span + c_jitter)
        END
            THEN 'p_grace ends before the last retry'
    END
    INTO v_fault
    FROM (
        SELECT u.span, lag(u.span) OVER (ORDER BY u.no) AS earlier
        FROM unnest(p_retry_after) WITH ORDINALITY AS u (span, no)
    ) AS r;

    IF v_fault IS NOT NULL THEN
        RAISE EXCEPTION USING
            ERRCODE = 'SB107',
            MESSAGE = v_fault;
    END IF;
END;
$function$;

COMMENT ON FUNCTION billing.require_ladder IS 'Refuses a retry ladder that contradicts itself, with SB107.';
