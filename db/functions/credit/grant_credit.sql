CREATE OR REPLACE FUNCTION billing_api.grant_credit(
    p_customer_id bigint,
    p_amount bigint,
    p_currency text,
    p_reason text,
    p_idempotency_key text DEFAULT NULL,
    p_as_of timestamptz DEFAULT billing.now()
)
RETURNS SETOF billing_api.credit_balance
LANGUAGE plpgsql
SECURITY DEFINER
SET search_path = ''
SET timezone = 'UTC'
AS $function$
-- Locks:      idempotency_key -> credit_balance -> customer (its event counter)
-- Writes:     idempotency_key, credit_balance, credit_entry, customer, outbox_event
-- Raises:     SB101 no key or no reason, SB102 currency, SB104 p_as_of, SB105, SB106 amount, SB202 customer,
--             SB305 key used with other arguments, SB314 customer closed
-- Idempotent: yes, by p_idempotency_key, which is required and unique for ever
DECLARE
    v_customer billing.customer := billing.require_customer(p_customer_id);
    v_replay jsonb;
    v_as_of timestamptz;
    v_credit billing_api.credit_balance;
BEGIN
    PERFORM billing.require_text(p_idempotency_key, 'p_idempotency_key', 255);
    PERFORM billing.require_amount(p_amount, 'p_amount', 1);
    PERFORM billing.require_currency(p_currency);
    PERFORM billing.require_text(p_reason, 'p_reason', 500);
    v_replay := billing.claim_idempotency_key(
        p_customer_id, 'grant_credit', p_idempotency_key,
        jsonb_build_object('amount', p_amount, 'currency', p_currency, 'reason', p_reason), true, p_as_of
    );
    IF v_replay IS NOT NULL THEN
        RETURN QUERY SELECT r.* FROM jsonb_populate_record(NULL::billing_api.credit_balance, v_replay) AS r;
        RETURN;
    END IF;

    v_as_of := billing.require_as_of(p_as_of);
    PERFORM billing.require_customer_status(v_customer, '{ACTIVE,SUSPENDED}');
    PERFORM billing.add_credit(p_customer_id, p_currency, 'GRANTED', p_amount, NULL, NULL, p_reason, v_as_of);

    SELECT b.*
    INTO STRICT v_credit
    FROM billing_api.credit_balance AS b
    WHERE b.customer_id = p_customer_id AND b.currency = p_currency;

    PERFORM billing.record_customer_event(
        p_customer_id, 'CreditGranted',
        jsonb_build_object(
            'amount', p_amount, 'currency', p_currency, 'reason', p_reason, 'balance', v_credit.balance
        ),
        v_as_of
    );
    PERFORM billing.store_response(p_customer_id, 'grant_credit', p_idempotency_key, to_jsonb(v_credit));
    RETURN NEXT v_credit;
END;
$function$;

COMMENT ON FUNCTION billing_api.grant_credit IS
'Gives a customer credit in minor units, which pays invoices from then on when they are issued. Returns the balance. The reason is published: no personal data in it.';
