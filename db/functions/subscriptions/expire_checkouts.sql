CREATE OR REPLACE FUNCTION billing_worker.expire_checkouts(
    p_limit integer,
    p_as_of timestamptz DEFAULT billing.now()
)
RETURNS integer
LANGUAGE plpgsql
SECURITY DEFINER
SET search_path = ''
SET timezone = 'UTC'
AS $function$
-- Locks:      subscription (SKIP LOCKED) -> invoice -> credit_balance
-- Writes:     as end_subscriptions
-- Raises:     SB101 bad limit, SB104 p_as_of
-- Idempotent: yes
-- Never while a charge may be on its way.
DECLARE
    v_as_of timestamptz := billing.require_as_of(p_as_of);
    v_claimed billing.subscription_key[];
    v_endings billing.ending[];
BEGIN
    PERFORM billing.require_limit(p_limit);
    SELECT coalesce(array_agg(ROW(c.customer_id, c.subscription_id)::billing.subscription_key), '{}')
    INTO v_claimed
    FROM (
        SELECT s.customer_id, s.subscription_id
        FROM billing.subscription AS s
        WHERE s.status = 'INCOMPLETE'
          AND (s.created_at <= v_as_of - interval '24 hours' OR billing.has_expired_action(s))
          AND NOT billing.has_charge_under_way(s.customer_id, s.subscription_id)
        ORDER BY s.created_at, s.customer_id, s.subscription_id
        LIMIT p_limit
        FOR NO KEY UPDATE SKIP LOCKED
    ) AS c;

    -- A worker that is about to start a charge holds the invoice and not the subscription: wait for it, then look again.
    PERFORM 1
    FROM billing.invoice AS i
    INNER JOIN unnest(v_claimed) AS k
        ON k.customer_id = i.customer_id AND k.subscription_id = i.subscription_id
    WHERE i.status = 'OPEN'
    ORDER BY i.customer_id, i.invoice_id
    FOR NO KEY UPDATE OF i;

    SELECT coalesce(
        array_agg(ROW(k.customer_id, k.subscription_id, 'EXPIRED', 'checkout_abandoned', v_as_of)::billing.ending),
        '{}'
    )
    INTO v_endings
    FROM unnest(v_claimed) AS k
    WHERE NOT billing.has_charge_under_way(k.customer_id, k.subscription_id);
    RETURN billing.end_subscriptions(v_endings, v_as_of);
END;
$function$;

COMMENT ON FUNCTION billing_worker.expire_checkouts IS
'Expires checkouts that were not paid within 24 hours, or whose customer did not act in time, unless a charge may be on its way. Returns how many.';
