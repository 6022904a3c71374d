CREATE OR REPLACE FUNCTION billing.lock_closing_invoices(
    p_subscriptions billing.subscription_key[]
)
RETURNS void
LANGUAGE plpgsql
SET search_path = ''
AS $function$
-- Locks:      invoice, FOR NO KEY UPDATE, in id order: the open ones that this boundary may close
-- Writes:     nothing
-- Raises:     nothing
-- Idempotent: yes
-- Few subscriptions end at a boundary, so that the others are passed over before anybody looks at their invoices.
DECLARE
    v_closing billing.subscription_key[];
BEGIN
    SELECT array_agg(ROW(s.customer_id, s.subscription_id)::billing.subscription_key)
    INTO v_closing
    FROM unnest(p_subscriptions) AS k
    INNER JOIN billing.subscription AS s
        ON s.customer_id = k.customer_id AND s.subscription_id = k.subscription_id
    WHERE s.cancel_at_period_end
       OR s.current_period_kind = 'TRIAL'
       OR s.term_end_at <= s.current_period_end
       OR EXISTS (
           SELECT 1
           FROM billing.subscription_change AS c
           WHERE c.customer_id = s.customer_id AND c.subscription_id = s.subscription_id AND c.status = 'PENDING'
       );

    IF v_closing IS NOT NULL THEN
        PERFORM 1
        FROM billing.invoice AS i
        INNER JOIN unnest(v_closing) AS k
            ON k.customer_id = i.customer_id AND k.subscription_id = i.subscription_id
        WHERE i.status = 'OPEN'
        ORDER BY i.customer_id, i.invoice_id
        FOR NO KEY UPDATE OF i;
    END IF;
END;
$function$;

COMMENT ON FUNCTION billing.lock_closing_invoices IS
'Locks the open invoices that end with their subscription or change at this boundary, before credit is locked.';
