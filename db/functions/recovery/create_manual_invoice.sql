CREATE OR REPLACE FUNCTION billing_api.create_manual_invoice(
    p_customer_id bigint,
    p_amount bigint,
    p_currency text,
    p_description text,
    p_dunning_policy text DEFAULT 'standard',
    p_idempotency_key text DEFAULT NULL,
    p_as_of timestamptz DEFAULT billing.now()
)
RETURNS SETOF billing_api.invoice
LANGUAGE plpgsql
SECURITY DEFINER
SET search_path = ''
SET timezone = 'UTC'
AS $function$
-- Locks:      idempotency_key -> credit_balance -> customer (its event counter)
-- Writes:     idempotency_key, invoice, invoice_line, credit_entry, credit_balance, customer, outbox_event
-- Raises:     SB101 no key or description, SB102 currency, SB104 p_as_of, SB105, SB106 amount, SB202 customer,
--             SB207 dunning policy, SB305 key used with other arguments, SB314 customer not active
-- Idempotent: yes, by p_idempotency_key, which is required and unique for ever
DECLARE
    v_customer billing.customer := billing.require_customer(p_customer_id);
    v_policy billing.dunning_policy;
    v_replay jsonb;
    v_as_of timestamptz;
    v_invoice billing.invoice;
BEGIN
    PERFORM billing.require_text(p_idempotency_key, 'p_idempotency_key', 255);
    PERFORM billing.require_amount(p_amount, 'p_amount', 1);
    PERFORM billing.require_currency(p_currency);
    PERFORM billing.require_text(p_description, 'p_description', 500);
    v_policy := billing.require_dunning_policy(p_dunning_policy);
    v_replay := billing.claim_idempotency_key(
        p_customer_id, 'create_manual_invoice', p_idempotency_key,
        jsonb_build_object(
            'amount', p_amount, 'currency', p_currency, 'description', p_description, 'dunningPolicy', p_dunning_policy
        ),
        true, p_as_of
    );
    IF v_replay IS NOT NULL THEN
        RETURN QUERY SELECT r.* FROM jsonb_populate_record(NULL::billing_api.invoice, v_replay) AS r;
        RETURN;
    END IF;

    v_as_of := billing.require_as_of(p_as_of);
    PERFORM billing.require_customer_status(v_customer, '{ACTIVE}');
    v_invoice := billing.issue_manual_invoice(
        p_customer_id, p_amount, p_currency, p_description, v_policy.dunning_policy_id, v_as_of
    );
    RETURN QUERY SELECT r.* FROM billing.answer_invoice(
        'create_manual_invoice', p_customer_id, v_invoice.invoice_id, p_idempotency_key
    ) AS r;
END;
$function$;

COMMENT ON FUNCTION billing_api.create_manual_invoice IS
'Issues an invoice over p_amount minor units that belongs to no subscription, due at once. Its decline climbs the ladder of p_dunning_policy and moves no subscription.';
