CREATE OR REPLACE FUNCTION billing_worker.receive_webhook(
    p_gateway_account text,
    p_event_id text,
    p_event_type text,
    p_payload jsonb,
    p_as_of timestamptz DEFAULT billing.now()
)
RETURNS text
LANGUAGE plpgsql
SECURITY DEFINER
SET search_path = ''
AS $function$
-- Locks:      nothing
-- Writes:     webhook_event
-- Raises:     SB101 malformed event, SB104 p_as_of, SB105 card number, SB206 unknown account
-- Idempotent: yes, by (gateway account, event id)
-- The signature has been verified, and the account is that of the endpoint, never one named in the payload.
DECLARE
    v_as_of timestamptz := billing.require_as_of(p_as_of);
    v_account billing.gateway_account := billing.require_gateway_account(p_gateway_account);
BEGIN
    -- An id that a gateway made up may hold any digits: refused for a chance likeness, its event would be lost.
    PERFORM billing.require_text(
        CASE WHEN p_event_id ~ '^[0-9 -]*$' THEN p_event_id ELSE translate(p_event_id, '123456789', '000000000') END,
        'p_event_id', 255
    );
    PERFORM billing.require_text(p_event_type, 'p_event_type', 100);
    IF (jsonb_typeof(p_payload) = 'object' AND length(p_payload::text) <= 10000) IS NOT TRUE THEN
        RAISE EXCEPTION USING
            ERRCODE = 'SB101',
            MESSAGE = 'p_payload must be a JSON object of at most 10000 characters',
            HINT = 'Keys: paymentId, refundId, intentId, reference, outcome, amount, currency, code.';
    END IF;

    INSERT INTO billing.webhook_event (gateway_account_id, event_id, event_type, payload, received_at)
    VALUES (
        v_account.gateway_account_id, p_event_id, p_event_type, billing.clean_webhook_payload(p_payload), v_as_of
    )
    ON CONFLICT ON CONSTRAINT webhook_event_is_stored_once DO NOTHING;
    RETURN CASE WHEN found THEN 'STORED' ELSE 'DUPLICATE' END;
END;
$function$;

COMMENT ON FUNCTION billing_worker.receive_webhook IS
'Stores a verified gateway event: STORED, or DUPLICATE where its id is known. Acknowledge it only once this has committed.';
