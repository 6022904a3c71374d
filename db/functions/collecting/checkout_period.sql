CREATE OR REPLACE FUNCTION billing.checkout_period(
    p_customer_id bigint,
    p_subscription_id bigint,
    p_as_of timestamptz
)
RETURNS SETOF billing.checkout_period
LANGUAGE sql
STABLE
ROWS 1
SET search_path = ''
AS $function$
    SELECT
        CASE WHEN s.anchor_day IS NULL THEN p_as_of AT TIME ZONE s.time_zone ELSE s.anchor_at END,
        CASE WHEN s.anchor_day IS NULL THEN 1 ELSE s.period_no END,
        CASE WHEN s.anchor_day IS NULL THEN p_as_of ELSE i.period_start END,
        CASE WHEN s.anchor_day IS NULL
             THEN billing.period_boundary(p_as_of AT TIME ZONE s.time_zone, s.time_zone, pr.period_length, 1)
             ELSE i.period_end
        END,
        pr.period_length
    FROM billing.subscription AS s
    INNER JOIN billing.price AS pr ON pr.price_id = s.price_id
    INNER JOIN billing.invoice AS i
        ON i.customer_id = s.customer_id AND i.subscription_id = s.subscription_id
        AND i.kind = 'INITIAL' AND i.status = 'PAID'
    WHERE s.customer_id = p_customer_id AND s.subscription_id = p_subscription_id;
$function$;

COMMENT ON FUNCTION billing.checkout_period IS
'First period of a paid checkout: from the instant of payment, or the invoiced stub of calendar billing.';
