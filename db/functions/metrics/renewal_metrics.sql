CREATE OR REPLACE FUNCTION billing.renewal_metrics()
RETURNS SETOF billing.metric
LANGUAGE sql
STABLE
SET search_path = ''
SET timezone = 'UTC'
AS $function$
    -- Locks:      nothing
    -- Writes:     nothing
    -- Raises:     nothing
    -- Idempotent: yes
    -- The index is by the hour of the due time, so the oldest one lies in the first hour that there is.
    SELECT 'billing_renewal_backlog' AS name, '{}'::jsonb AS labels, count(*)::numeric AS value
    FROM (
        SELECT 1
        FROM billing.subscription AS s
        WHERE date_bin('1 hour', s.next_renewal_at, '2000-01-01 00:00:00+00') <= (SELECT billing.now())
          AND s.next_renewal_at <= (SELECT billing.now())
        LIMIT 100000
    ) AS due
    UNION ALL
    SELECT
        'billing_renewal_backlog_age_seconds', '{}',
        greatest(coalesce(extract(epoch FROM (SELECT billing.now()) - min(s.next_renewal_at)), 0), 0)
    FROM billing.subscription AS s
    WHERE date_bin('1 hour', s.next_renewal_at, '2000-01-01 00:00:00+00') = (
        SELECT min(date_bin('1 hour', f.next_renewal_at, '2000-01-01 00:00:00+00')) FROM billing.subscription AS f
    )
    UNION ALL
    SELECT 'billing_renewals_last_hour', jsonb_build_object('result', t.result), t.value
    FROM (
        SELECT sum(newest.renewed) AS renewed, sum(newest.ended) AS ended, sum(newest.parked) AS parked
        FROM (
            SELECT r.*
            FROM billing.billing_run AS r
            ORDER BY r.billing_run_id DESC
            LIMIT 2000
        ) AS newest
        WHERE newest.last_batch_wall_at > clock_timestamp() - interval '1 hour'
    ) AS run
    CROSS JOIN LATERAL (VALUES
        ('renewed', coalesce(run.renewed, 0)), ('ended', coalesce(run.ended, 0)), ('parked', coalesce(run.parked, 0))
    ) AS t (result, value)
    UNION ALL
    SELECT 'billing_parked', '{}', count(*)
    FROM billing.subscription AS s
    WHERE s.parked_at IS NOT NULL;
$function$;

COMMENT ON FUNCTION billing.renewal_metrics IS 'What is due for renewal, since when, what was renewed, and what is parked.';
