CREATE OR REPLACE FUNCTION billing.require_imported_period(
    p_time_zone text,
    p_price billing.price,
    p_anchor_at timestamptz,
    p_current_period_start timestamptz,
    p_as_of timestamptz
)
RETURNS integer
LANGUAGE plpgsql
STABLE
SET search_path = ''
SET timezone = 'UTC'
AS $function$
-- Locks:      nothing
-- Writes:     nothing
-- Raises:     SB101 no instant, not a boundary of the anchor, or a period that has ended
-- Idempotent: yes
DECLARE
    v_about integer;
    v_start_no integer;
BEGIN
    IF p_current_period_start IS NULL OR NOT isfinite(p_current_period_start) OR NOT isfinite(p_anchor_at)
        OR p_current_period_start <> date_trunc('second', p_current_period_start)
        OR p_anchor_at > p_current_period_start OR p_current_period_start > p_as_of
    THEN
        RAISE EXCEPTION USING
            ERRCODE = 'SB101',
            MESSAGE = 'p_current_period_start must be an instant in whole seconds, not before p_anchor_at and not after p_as_of';
    END IF;

    -- A month counts as 30 days here and a year as 365.25: off by less than a fortieth.
    v_about := floor(
        extract(epoch FROM p_current_period_start - p_anchor_at) / extract(epoch FROM p_price.period_length)
    );
    SELECT k
    INTO v_start_no
    FROM generate_series(greatest(0, v_about - v_about / 40 - 2), v_about + v_about / 40 + 2) AS k
    WHERE billing.period_boundary(p_anchor_at AT TIME ZONE p_time_zone, p_time_zone, p_price.period_length, k)
        >= p_current_period_start
    ORDER BY k
    LIMIT 1;

    IF v_start_no IS NULL OR p_current_period_start <> billing.period_boundary(
        p_anchor_at AT TIME ZONE p_time_zone, p_time_zone, p_price.period_length, v_start_no
    ) THEN
        RAISE EXCEPTION USING
            ERRCODE = 'SB101',
            MESSAGE = format('p_current_period_start %s is no boundary of the anchor', billing.to_rfc3339(p_current_period_start)),
            HINT = 'Boundary k is the local anchor plus k periods, clamped to the end of the month.';
    END IF;
    IF billing.period_boundary(p_anchor_at AT TIME ZONE p_time_zone, p_time_zone, p_price.period_length, v_start_no + 1)
        < p_as_of
    THEN
        RAISE EXCEPTION USING
            ERRCODE = 'SB101',
            MESSAGE = 'the period that starts at p_current_period_start has ended',
            HINT = 'Import with the period that runs now; the past is never billed.';
    END IF;
    RETURN v_start_no + 1;
END;
$function$;

COMMENT ON FUNCTION billing.require_imported_period IS
'Returns k of the end of an imported period, or raises SB101 where it is no period of the anchor or has ended.';
