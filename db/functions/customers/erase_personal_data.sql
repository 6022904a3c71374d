CREATE OR REPLACE FUNCTION billing.erase_personal_data(
    p_customer_id bigint,
    p_as_of timestamptz
)
RETURNS void
LANGUAGE sql
SET search_path = ''
AS $function$
    -- Locks:      payment_attempt, payment_method, idempotency_key, customer_contact of the customer
    -- Writes:     payment_attempt, payment_method, idempotency_key, customer_contact
    -- Raises:     nothing
    -- Idempotent: yes
    -- Stored answers show cards, so they go with the keys; a closed customer's calls are refused instead.
    UPDATE billing.payment_attempt AS a
    SET payment_method_token = 'erased'
    WHERE a.customer_id = p_customer_id AND a.payment_method_token <> 'erased';

    UPDATE billing.payment_method AS m
    SET token = 'erased', brand = NULL, last4 = NULL, exp_month = NULL, exp_year = NULL, fingerprint = NULL,
        is_default = false, removed_at = coalesce(m.removed_at, p_as_of)
    WHERE m.customer_id = p_customer_id;

    DELETE FROM billing.idempotency_key AS k
    WHERE k.customer_id = p_customer_id AND k.operation <> 'erase_customer';

    DELETE FROM billing.customer_contact AS c
    WHERE c.customer_id = p_customer_id;
$function$;

COMMENT ON FUNCTION billing.erase_personal_data IS
'Deletes contact and stored answers of a customer, and the tokens and cards of its payment methods and attempts.';
