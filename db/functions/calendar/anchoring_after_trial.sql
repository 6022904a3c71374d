CREATE OR REPLACE FUNCTION billing.anchoring_after_trial(
    p_subscription billing.subscription,
    p_price_id bigint,
    p_trial_end timestamptz
)
RETURNS billing.anchoring
LANGUAGE sql
STABLE
SET search_path = ''
SET timezone = 'UTC'
AS $function$
    -- Locks:      nothing
    -- Writes:     nothing
    -- Raises:     nothing
    -- Idempotent: yes
    -- Calendar billing is for months and years; a plan of days or weeks follows the end of the trial.
    SELECT ROW(
        (f.period).anchor_at,
        f.anchor_day,
        (f.period).period_no - 1,
        billing.term_end(f.period, p_subscription.time_zone, f.period_length, p_subscription.term_periods)
    )::billing.anchoring
    FROM (
        SELECT
            d.anchor_day,
            pr.period_length,
            billing.first_period(p_subscription.time_zone, d.anchor_day, pr.period_length, p_trial_end) AS period
        FROM billing.price AS pr
        CROSS JOIN LATERAL (
            SELECT CASE WHEN pr.interval_unit IN ('MONTH', 'YEAR') THEN p_subscription.anchor_day END AS anchor_day
        ) AS d
        WHERE pr.price_id = p_price_id
    ) AS f;
$function$;

COMMENT ON FUNCTION billing.anchoring_after_trial IS
'What the boundaries of a subscription are counted from that will be billed by a price from the end of its trial on.';
