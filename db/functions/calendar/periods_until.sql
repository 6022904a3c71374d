CREATE OR REPLACE FUNCTION billing.periods_until(
    p_anchor_at timestamp without time zone,
    p_time_zone text,
    p_period_length interval,
    p_until timestamptz
)
RETURNS integer
LANGUAGE sql
IMMUTABLE
SET search_path = ''
SET timezone = 'UTC'
AS $function$
    -- A guess that is never too high (months of 31 days, years of 372), then as many steps as it may be short of.
    SELECT k.no
    FROM (
        SELECT greatest(
            0,
            floor(
                extract(epoch FROM p_until - (p_anchor_at AT TIME ZONE p_time_zone))
                / (
                    extract(year FROM p_period_length) * 32140800 + extract(month FROM p_period_length) * 2678400
                    + extract(day FROM p_period_length) * 86400
                )
            )::integer - 2
        ) AS no
    ) AS guess
    CROSS JOIN generate_series(guess.no, guess.no + guess.no / 20 + 6) AS k (no)
    WHERE billing.period_boundary(p_anchor_at, p_time_zone, p_period_length, k.no) >= p_until
    ORDER BY k.no
    LIMIT 1;
$function$;

COMMENT ON FUNCTION billing.periods_until IS
'Number of the first boundary at or after an instant, from 0 on. NULL for no instant.';
