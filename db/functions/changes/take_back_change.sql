CREATE OR REPLACE FUNCTION billing.take_back_change(
    p_subscription billing.subscription,
    p_as_of timestamptz
)
RETURNS void
LANGUAGE plpgsql
SET search_path = ''
AS $function$
-- Locks:      invoice, one row -> credit_balance; the caller holds the subscription
-- Writes:     subscription; as void_change
-- Raises:     SB306 its payment is in flight, SB322 nothing to take back
-- Idempotent: no
-- A migration of prices is the seller's change, and not the customer's to take back.
DECLARE
    v_invoice billing.invoice;
BEGIN
    -- The lock comes first, in a statement of its own: what is in flight is read with a fresh snapshot.
    SELECT i.*
    INTO v_invoice
    FROM billing.subscription_change AS c
    INNER JOIN billing.invoice AS i ON i.customer_id = c.customer_id AND i.change_id = c.change_id
    WHERE c.customer_id = p_subscription.customer_id
      AND c.subscription_id = p_subscription.subscription_id
      AND c.status = 'PENDING'
    FOR NO KEY UPDATE OF i;

    IF EXISTS (
        SELECT 1
        FROM billing.payment_attempt AS a
        WHERE a.customer_id = v_invoice.customer_id AND a.invoice_id = v_invoice.invoice_id
          AND a.status IN ('STARTED', 'UNKNOWN', 'REQUIRES_ACTION', 'PROCESSING')
    ) THEN
        RAISE EXCEPTION USING
            ERRCODE = 'SB306',
            MESSAGE = 'the payment of the change is in flight',
            DETAIL = v_invoice.invoice_id::text,
            HINT = 'Wait for its outcome.';
    ELSIF v_invoice.change_id IS NOT NULL THEN
        PERFORM billing.void_change(p_subscription.customer_id, v_invoice.change_id, p_as_of);
    ELSIF p_subscription.pending_price_id IS NOT NULL THEN
        UPDATE billing.subscription AS s
        SET pending_price_id = NULL, pending_quantity = NULL, pending_from = NULL,
            version = s.version + 1, event_seq = s.event_seq + 1
        WHERE s.customer_id = p_subscription.customer_id AND s.subscription_id = p_subscription.subscription_id;
        PERFORM billing.record_happening(p_subscription, 'SubscriptionChangeWithdrawn', NULL, false, p_as_of);
    ELSE
        RAISE EXCEPTION USING
            ERRCODE = 'SB322',
            MESSAGE = format('subscription %s has no pending change', p_subscription.subscription_id);
    END IF;
END;
$function$;

COMMENT ON FUNCTION billing.take_back_change IS 'Voids a change that waits for its payment, else clears one that was set for the boundary.';
