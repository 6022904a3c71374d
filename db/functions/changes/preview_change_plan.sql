CREATE OR REPLACE FUNCTION billing_api.preview_change_plan(
    p_subscription_id bigint,
    p_plan_code text,
    p_quantity integer DEFAULT NULL,
    p_timing text DEFAULT 'IMMEDIATE',
    p_payment_behavior text DEFAULT 'PAY_FIRST',
    p_expected_version bigint DEFAULT NULL,
    p_as_of timestamptz DEFAULT billing.now()
)
RETURNS jsonb
LANGUAGE plpgsql
SECURITY DEFINER
SET search_path = ''
SET timezone = 'UTC'
AS $function$
-- Locks:      as change_plan, until the caller's transaction ends
-- Writes:     nothing: the block that carries out the change is rolled back
-- Raises:     as change_plan; SB901 inside only, to roll the block back
-- Idempotent: yes
-- The real function, rolled back, so that preview and execution cannot differ. Only ids differ: sequences do not go back.
DECLARE
    c_rolled_back CONSTANT text := 'preview is rolled back';
    v_customer_id bigint := billing.customer_of_subscription(p_subscription_id);
    v_last_invoice_id bigint;
    v_preview jsonb;
BEGIN
    BEGIN
        -- Locked before it is looked at: what another change has just issued is none of this one's invoices.
        PERFORM billing.require_subscription(p_subscription_id);
        SELECT coalesce(max(i.invoice_id), 0)
        INTO STRICT v_last_invoice_id
        FROM billing.invoice AS i
        WHERE i.customer_id = v_customer_id AND i.subscription_id = p_subscription_id;
        PERFORM billing_api.change_plan(
            p_subscription_id, p_plan_code, p_quantity, p_timing, p_payment_behavior, p_expected_version, NULL, p_as_of
        );
        v_preview := billing.describe_change(v_customer_id, p_subscription_id, v_last_invoice_id);
        RAISE EXCEPTION USING ERRCODE = 'SB901', MESSAGE = c_rolled_back;
    EXCEPTION WHEN SQLSTATE 'SB901' THEN
        IF sqlerrm <> c_rolled_back THEN
            RAISE;
        END IF;
    END;
    RETURN v_preview;
END;
$function$;

COMMENT ON FUNCTION billing_api.preview_change_plan IS
'What change_plan with the same arguments would do: subscription, invoice with its lines, invoices of boundaries that are overdue (renewals), lines for the next invoice, and the credit balance afterwards. Changes nothing.';
