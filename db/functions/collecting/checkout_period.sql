CREATE OR REPLACE FUNCTION billing.checkout_period(
    p_customer_id bigint,
    p_subscription_id bigint,
    p_as_of timestamptz
)
RETURNS billing.first_period
LANGUAGE sql
STABLE
SET search_path = ''
AS $function$
    -- Time spent at checkout is not paid for; the stub of calendar billing stays as it was invoiced.
    SELECT billing.first_period(
        s.time_zone, s.anchor_day, pr.period_length, CASE WHEN s.anchor_day IS NULL THEN p_as_of ELSE i.period_start END
    )
    FROM billing.subscription AS s
    INNER JOIN billing.price AS pr ON pr.price_id = s.price_id
    INNER JOIN billing.invoice AS i
        ON i.customer_id = s.customer_id AND i.subscription_id = s.subscription_id
        AND i.kind = 'INITIAL' AND i.status = 'PAID'
    WHERE s.customer_id = p_customer_id AND s.subscription_id = p_subscription_id;
$function$;

COMMENT ON FUNCTION billing.checkout_period IS
'First period of a paid checkout: from the instant of payment, or the invoiced stub of calendar billing.';
