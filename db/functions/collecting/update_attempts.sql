CREATE OR REPLACE FUNCTION billing.update_attempts(
    p_judgements billing.judgement[],
    p_as_of timestamptz
)
RETURNS void
LANGUAGE plpgsql
SET search_path = ''
AS $function$
-- Locks:      nothing; attempts are locked before
-- Writes:     payment_attempt
-- Raises:     SB901 where an ended attempt was to be overwritten
-- Idempotent: yes
BEGIN
    UPDATE billing.payment_attempt AS a
    SET status = j.attempt_status,
        gateway_payment_id = coalesce(a.gateway_payment_id, j.gateway_payment_id),
        captured_amount = CASE WHEN j.attempt_status = 'SUCCEEDED' THEN j.captured + j.unexpected END,
        booked_amount = CASE WHEN j.attempt_status = 'SUCCEEDED' THEN j.captured END,
        decline_code = CASE WHEN j.attempt_status = 'DECLINED' THEN j.code ELSE a.decline_code END,
        decline_class = CASE WHEN j.attempt_status = 'DECLINED' THEN j.decline_class ELSE a.decline_class END,
        action_expires_at = coalesce(j.action_expires_at, a.action_expires_at),
        lease_until = NULL,
        refusal_count = CASE WHEN j.outcome = 'NOT_ATTEMPTED' THEN a.refusal_count + 1 ELSE 0 END,
        not_found_count = j.not_found_count,
        not_found_rounds = j.not_found_rounds,
        next_lookup_at = j.next_lookup_at,
        ended_at = CASE WHEN j.attempt_status IN ('SUCCEEDED', 'DECLINED', 'ABANDONED') THEN p_as_of END
    FROM unnest(p_judgements) AS j
    WHERE j.verdict = 'APPLIED'
      AND a.customer_id = j.customer_id
      AND a.attempt_id = j.attempt_id;

    -- Money that belongs to something else: nobody sends or asks again until the case is closed.
    UPDATE billing.payment_attempt AS a
    SET lease_until = NULL, next_lookup_at = NULL
    FROM unnest(p_judgements) AS j
    WHERE j.verdict = 'REJECTED'
      AND a.customer_id = j.customer_id
      AND a.attempt_id = j.attempt_id
      AND a.ended_at IS NULL;
END;
$function$;

COMMENT ON FUNCTION billing.update_attempts IS 'Writes the judged status and schedule of each attempt.';
