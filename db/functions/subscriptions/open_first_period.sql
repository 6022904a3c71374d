CREATE OR REPLACE FUNCTION billing.open_first_period(
    p_terms billing.sign_up,
    p_subscription_id bigint,
    p_invoice_id bigint,
    p_opened_seq bigint
)
RETURNS void
LANGUAGE sql
SET search_path = ''
AS $function$
    -- Locks:      nothing; the subscription is new
    -- Writes:     subscription_period
    -- Raises:     nothing of its own
    -- Idempotent: no, but only one first period can be stored
    INSERT INTO billing.subscription_period (
        customer_id, subscription_id, period_start, period_end, kind, invoice_id, opened_seq
    )
    VALUES (
        p_terms.customer_id, p_subscription_id, p_terms.as_of, coalesce(p_terms.trial_end, (p_terms.first).period_end),
        CASE WHEN p_invoice_id IS NULL THEN 'TRIAL' ELSE 'BILLED' END, p_invoice_id, p_opened_seq
    );
$function$;

COMMENT ON FUNCTION billing.open_first_period IS
'Opens the timeline of a new subscription: its trial where p_invoice_id is NULL, else the period that the invoice bills.';
