CREATE OR REPLACE FUNCTION billing.first_period(
    p_time_zone text,
    p_anchor_day integer,
    p_period_length interval,
    p_start timestamptz
)
RETURNS billing.first_period
LANGUAGE plpgsql
IMMUTABLE
SET search_path = ''
AS $function$
-- Locks:      nothing
-- Writes:     nothing
-- Raises:     nothing
-- Idempotent: yes
-- Anniversary: the anchor is the start, and period 1 begins there. Calendar: the anchor is local midnight of the
-- latest such day on or before the start, in a month that has it; boundary k is the first after the start.
DECLARE
    c_start CONSTANT timestamp := p_start AT TIME ZONE p_time_zone;
    v_first billing.first_period;
BEGIN
    v_first.period_start := p_start;
    IF p_anchor_day IS NULL THEN
        v_first.anchor_at := c_start;
        v_first.period_no := 1;
        v_first.full_start := p_start;
    ELSE
        SELECT max(d.day)
        INTO v_first.anchor_at
        FROM generate_series(0, 2) AS back (months)
        CROSS JOIN LATERAL date_trunc('month', c_start - make_interval(months => back.months)) AS m (first_day)
        CROSS JOIN LATERAL (SELECT m.first_day + make_interval(days => p_anchor_day - 1) AS day) AS d
        WHERE d.day <= c_start AND date_trunc('month', d.day) = m.first_day;

        -- Clamping may put a boundary or two between anchor and start: 31 Jan, 28 Feb, start on 1 March.
        SELECT min(k.no)
        INTO v_first.period_no
        FROM generate_series(0, 2) AS k (no)
        WHERE billing.period_boundary(v_first.anchor_at, p_time_zone, p_period_length, k.no) > p_start;
        v_first.full_start :=
            billing.period_boundary(v_first.anchor_at, p_time_zone, p_period_length, v_first.period_no - 1);
    END IF;
    v_first.period_end := billing.period_boundary(v_first.anchor_at, p_time_zone, p_period_length, v_first.period_no);
    RETURN v_first;
END;
$function$;

COMMENT ON FUNCTION billing.first_period IS
'The first billed period that begins at an instant, with its anchor: a full one, or with p_anchor_day the stub up to the next such day.';
