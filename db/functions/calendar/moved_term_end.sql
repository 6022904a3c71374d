CREATE OR REPLACE FUNCTION billing.moved_term_end(
    p_subscription billing.subscription,
    p_new_anchor timestamptz
)
RETURNS timestamptz
LANGUAGE sql
STABLE
SET search_path = ''
SET timezone = 'UTC'
AS $function$
    -- As many whole periods after the new anchor as there were after the boundary that it replaces.
    SELECT billing.period_boundary(
        p_new_anchor AT TIME ZONE p_subscription.time_zone, p_subscription.time_zone, pr.period_length,
        k.no - p_subscription.period_no
    )
    FROM billing.price AS pr
    CROSS JOIN generate_series(p_subscription.period_no, p_subscription.period_no + 1200) AS k (no)
    WHERE pr.price_id = p_subscription.price_id
      AND billing.period_boundary(
          p_subscription.anchor_at, p_subscription.time_zone, pr.period_length, k.no
      ) >= p_subscription.term_end_at
    ORDER BY k.no
    LIMIT 1;
$function$;

COMMENT ON FUNCTION billing.moved_term_end IS
'End of a fixed term after the anchor has moved: the number of periods stays. NULL without a term.';
