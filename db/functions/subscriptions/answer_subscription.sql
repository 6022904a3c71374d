CREATE OR REPLACE FUNCTION billing.answer_subscription(
    p_operation text,
    p_customer_id bigint,
    p_subscription_id bigint,
    p_key text
)
RETURNS SETOF billing_api.subscription
LANGUAGE plpgsql
SET search_path = ''
SET timezone = 'UTC'
AS $function$
-- Locks:      nothing
-- Writes:     idempotency_key
-- Raises:     SB901 the key was not claimed
-- Idempotent: yes
DECLARE
    v_answer billing_api.subscription;
BEGIN
    SELECT s.*
    INTO STRICT v_answer
    FROM billing_api.subscription AS s
    WHERE s.customer_id = p_customer_id AND s.subscription_id = p_subscription_id;
    PERFORM billing.store_response(p_customer_id, p_operation, p_key, to_jsonb(v_answer));
    RETURN NEXT v_answer;
END;
$function$;

COMMENT ON FUNCTION billing.answer_subscription IS
'Last step of every call on a subscription: its public row, stored under the key of the caller where there is one.';
