CREATE OR REPLACE FUNCTION billing.begin_subscription(
    p_terms billing.sign_up,
    p_subscription_id bigint
)
RETURNS void
LANGUAGE plpgsql
SET search_path = ''
AS $function$
-- Locks:      credit_balance, one row; the subscription is new
-- Writes:     subscription_period, trial_taken, invoice, invoice_line, credit_entry, credit_balance, subscription,
--             subscription_event, outbox_event
-- Raises:     SB401 as take_trial
-- Idempotent: no
DECLARE
    v_invoice billing.invoice;
    v_is_paid boolean;
    v_activates boolean;
BEGIN
    IF p_terms.status = 'TRIALING' THEN
        PERFORM billing.take_trial(p_terms, p_subscription_id);
        PERFORM billing.open_first_period(p_terms, p_subscription_id, NULL, 1);
        PERFORM billing.record_sign_up(p_terms, p_subscription_id, NULL, '{SubscriptionCreated}');
        RETURN;
    END IF;

    v_invoice := billing.issue_initial_invoice(p_terms, p_subscription_id);
    v_is_paid := v_invoice.status = 'PAID';
    v_activates := v_is_paid AND p_terms.status = 'INCOMPLETE';
    IF v_is_paid OR p_terms.status = 'ACTIVE' THEN
        PERFORM billing.open_first_period(
            p_terms, p_subscription_id, v_invoice.invoice_id, CASE WHEN v_activates THEN 4 ELSE 1 END
        );
    END IF;
    IF v_is_paid THEN
        UPDATE billing.subscription AS s
        SET status = 'ACTIVE',
            current_period_kind = 'BILLED',
            current_period_start = (p_terms.first).period_start,
            current_period_end = (p_terms.first).period_end,
            next_renewal_at = (p_terms.first).period_end,
            term_end_at = p_terms.term_end_at,
            anchor_at = (p_terms.first).anchor_at,
            period_no = (p_terms.first).period_no,
            version = s.version + 1,
            event_seq = CASE WHEN v_activates THEN 4 ELSE 3 END
        WHERE s.customer_id = p_terms.customer_id AND s.subscription_id = p_subscription_id;
    END IF;
    PERFORM billing.record_sign_up(
        p_terms, p_subscription_id, v_invoice.invoice_id,
        CASE
            WHEN v_activates THEN '{SubscriptionCreated,InvoiceOpened,InvoicePaid,SubscriptionActivated}'
            WHEN v_is_paid THEN '{SubscriptionCreated,InvoiceOpened,InvoicePaid}'
            ELSE '{SubscriptionCreated,InvoiceOpened}'
        END::text[]
    );
END;
$function$;

COMMENT ON FUNCTION billing.begin_subscription IS
'What a new subscription begins with: its trial, or its first invoice, and with that its first period where it is granted or paid at once.';
