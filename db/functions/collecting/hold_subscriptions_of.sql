CREATE OR REPLACE FUNCTION billing.hold_subscriptions_of(
    p_triage billing.triage[]
)
RETURNS billing.triage[]
LANGUAGE plpgsql
SET search_path = ''
AS $function$
-- Locks:      subscription, FOR NO KEY UPDATE SKIP LOCKED
-- Writes:     nothing
-- Raises:     nothing
-- Idempotent: yes
-- A MANUAL invoice has no subscription that could be missed.
DECLARE
    v_held billing.subscription_key[];
BEGIN
    SELECT coalesce(array_agg(ROW(c.customer_id, c.subscription_id)::billing.subscription_key), '{}')
    INTO v_held
    FROM (
        SELECT s.customer_id, s.subscription_id
        FROM billing.subscription AS s
        WHERE (s.customer_id, s.subscription_id) IN (
            SELECT t.customer_id, t.subscription_id
            FROM unnest(p_triage) AS t
            WHERE t.way IN ('CREDIT', 'NO_METHOD', 'PASS', 'CARRY')
        )
        ORDER BY s.customer_id, s.subscription_id
        FOR NO KEY UPDATE SKIP LOCKED
    ) AS c;

    RETURN ARRAY(
        SELECT ROW(t.*)::billing.triage
        FROM unnest(p_triage) AS t
        LEFT JOIN unnest(v_held) AS h
            ON h.customer_id = t.customer_id AND h.subscription_id = t.subscription_id
        WHERE t.way IN ('CREDIT', 'NO_METHOD', 'PASS', 'CARRY')
          AND (h.subscription_id IS NOT NULL OR t.subscription_id IS NULL)
        ORDER BY t.customer_id, t.invoice_id
    );
END;
$function$;

COMMENT ON FUNCTION billing.hold_subscriptions_of IS
'Locks the subscriptions of invoices that need no call, without waiting, and returns the invoices whose subscription it got.';
