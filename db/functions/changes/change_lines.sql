CREATE OR REPLACE FUNCTION billing.change_lines(
    p_change billing.plan_change
)
RETURNS SETOF billing.priced_line
LANGUAGE sql
IMMUTABLE
SET search_path = ''
AS $function$
    -- Credit for the unused part of the old price, charge for the same part of the new one, each floored once; a change
    -- of interval charges a full new period. A line of zero is not stored. Never more credit than may be given.
    SELECT
        row_number() OVER (ORDER BY l.place)::integer,
        l.kind, l.description, l.amount, l.at_most, l.base_invoice_id, l.price_id, l.unit_amount, l.quantity,
        l.seconds_billed, l.seconds_total, p_change.effective_at, l.period_end, NULL::bigint
    FROM (
        SELECT
            1 AS place, 'PRORATION' AS kind, format('Unused time of %s', p_change.from_plan_code) AS description,
            -least(u.amount, greatest(p_change.creditable, 0)) AS amount,
            CASE WHEN u.amount > p_change.creditable THEN greatest(p_change.creditable, 0) END AS at_most,
            p_change.base_invoice_id,
            p_change.from_price_id AS price_id, p_change.from_unit_amount AS unit_amount,
            p_change.from_quantity AS quantity, p_change.seconds_left AS seconds_billed,
            p_change.seconds_total AS seconds_total,
            p_change.effective_at + make_interval(secs => p_change.seconds_left) AS period_end
        FROM billing.prorated_amount(
            p_change.from_unit_amount, p_change.from_quantity, p_change.seconds_left, p_change.seconds_total
        ) AS u (amount)
        UNION ALL
        SELECT
            2, CASE WHEN f.is_full THEN 'PERIOD' ELSE 'PRORATION' END, p_change.to_plan_name,
            CASE
                WHEN f.is_full THEN (p_change.to_unit_amount::numeric * p_change.to_quantity)::bigint
                ELSE billing.prorated_amount(
                    p_change.to_unit_amount, p_change.to_quantity, p_change.seconds_left, p_change.seconds_total
                )
            END,
            NULL,
            CASE WHEN NOT p_change.opens_period THEN p_change.base_invoice_id END,
            p_change.to_price_id, p_change.to_unit_amount, p_change.to_quantity,
            CASE WHEN NOT f.is_full THEN p_change.seconds_left END,
            CASE WHEN NOT f.is_full THEN p_change.seconds_total END,
            p_change.period_end
        FROM (SELECT p_change.opens_period OR p_change.seconds_left = p_change.seconds_total AS is_full) AS f
    ) AS l
    WHERE l.amount <> 0;
$function$;

COMMENT ON FUNCTION billing.change_lines IS
'Lines of a change: credit for what is left of the old terms, charge for the same time on the new ones; amounts in minor units.';
