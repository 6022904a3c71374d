CREATE OR REPLACE FUNCTION billing.next_lookup_at(
    p_attempt billing.payment_attempt,
    p_account billing.gateway_account,
    p_result billing.charge_result,
    p_status text,
    p_action_expires_at timestamptz,
    p_as_of timestamptz
)
RETURNS timestamptz
LANGUAGE sql
IMMUTABLE
SET search_path = ''
SET timezone = 'UTC'
AS $function$
    SELECT CASE
        WHEN p_status IN ('SUCCEEDED', 'DECLINED', 'ABANDONED') THEN NULL
        WHEN p_result.outcome = 'SUCCEEDED' THEN p_as_of
        -- To a send that may be a repetition, a gateway may repeat what it said to the first one; and a webhook may have told
        -- of something since.
        WHEN p_result.outcome = 'REQUIRES_ACTION' AND p_result.source = 'SEND'
            AND (p_attempt.refusal_count + 1 < p_attempt.send_count OR p_attempt.next_lookup_at <= p_as_of)
        THEN p_as_of
        WHEN p_result.outcome = 'REQUIRES_ACTION' THEN p_action_expires_at
        WHEN p_result.outcome = 'PROCESSING'
        THEN greatest(p_attempt.started_at + p_account.processing_deadline, p_as_of + interval '1 day')
        WHEN p_result.outcome = 'UNKNOWN' AND p_result.source = 'SEND'
        THEN p_as_of + billing.lookup_delay(p_attempt.lookup_count)
        -- From a look-up or a refusal: as its claim has set it. What may have happened is asked at least once.
        WHEN p_status = 'UNKNOWN' THEN coalesce(p_attempt.next_lookup_at, p_as_of)
        ELSE p_attempt.next_lookup_at
    END;
$function$;

COMMENT ON FUNCTION billing.next_lookup_at IS
'When to ask the gateway next: at once to confirm, or where an answer may be of old, when an action expires, at the deadline of bank money, else on the schedule of look-ups.';
