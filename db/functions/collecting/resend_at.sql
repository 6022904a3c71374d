CREATE OR REPLACE FUNCTION billing.resend_at(
    p_attempt billing.payment_attempt,
    p_account billing.gateway_account,
    p_result billing.charge_result,
    p_rounds integer,
    p_as_of timestamptz
)
RETURNS timestamptz
LANGUAGE sql
IMMUTABLE
SET search_path = ''
AS $function$
    SELECT t.at
    FROM (
        SELECT CASE p_result.outcome
            WHEN 'NOT_ATTEMPTED' THEN p_as_of
            WHEN 'UNKNOWN' THEN p_attempt.last_sent_at + interval '15 minutes'
            WHEN 'NOT_FOUND'
            THEN CASE WHEN p_rounds > p_attempt.not_found_rounds AND p_rounds < 3 THEN p_as_of END
        END AS at
    ) AS t
    WHERE p_attempt.status IN ('STARTED', 'UNKNOWN') AND billing.key_is_alive(p_attempt, p_account, t.at);
$function$;

COMMENT ON FUNCTION billing.resend_at IS
'When the stored request may be sent again: at once if it was not executed or was not found, 15 minutes after a send with an unknown outcome, never once the key is old, nor while bank or customer have it in hand.';
