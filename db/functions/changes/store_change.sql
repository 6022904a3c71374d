CREATE OR REPLACE FUNCTION billing.store_change(
    p_change billing.plan_change,
    p_as_of timestamptz
)
RETURNS bigint
LANGUAGE sql
SET search_path = ''
AS $function$
    -- Locks:      nothing; the caller holds the subscription
    -- Writes:     subscription_change
    -- Raises:     23505 where a change waits for its payment
    -- Idempotent: no
    INSERT INTO billing.subscription_change (
        customer_id, subscription_id, status, timing, payment_behavior, from_price_id, from_quantity, to_price_id,
        to_quantity, opens_period, base_invoice_id, effective_at, created_at
    )
    VALUES (
        p_change.customer_id, p_change.subscription_id, 'PENDING', p_change.timing, p_change.payment_behavior,
        p_change.from_price_id, p_change.from_quantity, p_change.to_price_id, p_change.to_quantity,
        p_change.opens_period, p_change.base_invoice_id, p_change.effective_at, p_as_of
    )
    RETURNING change_id;
$function$;

COMMENT ON FUNCTION billing.store_change IS 'Stores a change that has not taken effect yet, and returns its id.';
