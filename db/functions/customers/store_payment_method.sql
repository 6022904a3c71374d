CREATE OR REPLACE FUNCTION billing.store_payment_method(
    p_method billing.payment_method
)
RETURNS bigint
LANGUAGE plpgsql
SET search_path = ''
AS $function$
-- Locks:      nothing; the caller holds the customer
-- Writes:     payment_method
-- Raises:     nothing
-- Idempotent: yes: the same token, or the same fingerprint, is the same method
-- A method that comes back with another token or expiry has changed, so that a decline blocks it no longer.
DECLARE
    v_known billing.payment_method;
    v_payment_method_id bigint;
BEGIN
    SELECT m.*
    INTO v_known
    FROM billing.payment_method AS m
    WHERE m.customer_id = p_method.customer_id
      AND m.gateway_account_id = p_method.gateway_account_id
      AND m.removed_at IS NULL
      AND (m.token = p_method.token OR m.fingerprint = p_method.fingerprint)
    ORDER BY m.token = p_method.token DESC
    LIMIT 1;

    IF NOT found THEN
        INSERT INTO billing.payment_method (
            customer_id, gateway_account_id, token, brand, last4, exp_month, exp_year, fingerprint, created_at
        )
        VALUES (
            p_method.customer_id, p_method.gateway_account_id, p_method.token, p_method.brand, p_method.last4,
            p_method.exp_month, p_method.exp_year, p_method.fingerprint, p_method.created_at
        )
        RETURNING payment_method_id INTO v_payment_method_id;
        RETURN v_payment_method_id;
    END IF;

    UPDATE billing.payment_method AS m
    SET token = p_method.token,
        brand = coalesce(p_method.brand, m.brand),
        last4 = coalesce(p_method.last4, m.last4),
        exp_month = coalesce(p_method.exp_month, m.exp_month),
        exp_year = coalesce(p_method.exp_year, m.exp_year),
        blocked_at = CASE WHEN c.is_other THEN NULL ELSE m.blocked_at END,
        blocked_code = CASE WHEN c.is_other THEN NULL ELSE m.blocked_code END
    FROM (
        SELECT v_known.token <> p_method.token
            OR coalesce((p_method.exp_year, p_method.exp_month) <> (v_known.exp_year, v_known.exp_month), false)
    ) AS c (is_other)
    WHERE m.customer_id = v_known.customer_id AND m.payment_method_id = v_known.payment_method_id;
    RETURN v_known.payment_method_id;
END;
$function$;

COMMENT ON FUNCTION billing.store_payment_method IS
'Stores a payment method, or refreshes the one that it is by token or fingerprint; returns its id.';
