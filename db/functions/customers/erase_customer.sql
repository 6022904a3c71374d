CREATE OR REPLACE FUNCTION billing_api.erase_customer(
    p_customer_id bigint,
    p_idempotency_key text DEFAULT NULL,
    p_as_of timestamptz DEFAULT billing.now()
)
RETURNS SETOF billing_api.customer
LANGUAGE plpgsql
SECURITY DEFINER
SET search_path = ''
SET timezone = 'UTC'
AS $function$
-- Locks:      idempotency_key -> invoice (all of the customer) -> customer -> payment_attempt -> payment_method
-- Writes:     idempotency_key, customer, customer_contact, payment_attempt, payment_method
-- Raises:     SB101 key, SB104 p_as_of, SB202 customer, SB316 something still goes on, or could not be seen
-- Idempotent: yes, also without a key: who is erased stays so
-- Asked before anything is locked, so that it waits for nobody who goes on; and again once no call can begin anything,
-- because each of them holds the customer. That second look needs a snapshot of its own, which only READ COMMITTED takes:
-- what began after an older one, and has let go of the customer since, would not be seen.
DECLARE
    v_replay jsonb;
    v_as_of timestamptz;
    v_customer billing_api.customer;
BEGIN
    PERFORM billing.require_customer(p_customer_id);
    v_replay := billing.claim_idempotency_key(
        p_customer_id, 'erase_customer', p_idempotency_key, '{}', false, p_as_of
    );
    IF v_replay IS NOT NULL THEN
        RETURN QUERY SELECT r.* FROM jsonb_populate_record(NULL::billing_api.customer, v_replay) AS r;
        RETURN;
    END IF;

    v_as_of := billing.require_as_of(p_as_of);
    IF current_setting('transaction_isolation') <> 'read committed' THEN
        RAISE EXCEPTION USING
            ERRCODE = 'SB316',
            MESSAGE = format('customer %s cannot be erased from the snapshot of an older moment', p_customer_id),
            DETAIL = current_setting('transaction_isolation'),
            HINT = 'Call it in a READ COMMITTED transaction.';
    END IF;
    PERFORM billing.require_erasable(p_customer_id);
    PERFORM billing.lock_all_invoices(p_customer_id);
    PERFORM 1 FROM billing.customer AS c WHERE c.customer_id = p_customer_id FOR UPDATE;
    PERFORM billing.require_erasable(p_customer_id);

    PERFORM billing.erase_personal_data(p_customer_id, v_as_of);
    UPDATE billing.customer AS c
    SET status = 'CLOSED'
    WHERE c.customer_id = p_customer_id AND c.status <> 'CLOSED';

    SELECT c.* INTO STRICT v_customer FROM billing_api.customer AS c WHERE c.customer_id = p_customer_id;
    PERFORM billing.store_response(p_customer_id, 'erase_customer', p_idempotency_key, to_jsonb(v_customer));
    RETURN NEXT v_customer;
END;
$function$;

COMMENT ON FUNCTION billing_api.erase_customer IS
'Closes a customer for good and erases contact, cards and tokens; invoices, payments and the log stay, without personal data. Refused with SB316 while anything goes on. The external reference stays: choose one that is no personal datum.';
