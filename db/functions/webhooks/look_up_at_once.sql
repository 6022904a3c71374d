CREATE OR REPLACE FUNCTION billing.look_up_at_once(
    p_matches billing.webhook_match[],
    p_as_of timestamptz
)
RETURNS void
LANGUAGE plpgsql
SET search_path = ''
AS $function$
-- Locks:      payment_attempt, in key order
-- Writes:     payment_attempt
-- Raises:     nothing
-- Idempotent: yes
BEGIN
    PERFORM 1
    FROM billing.payment_attempt AS a
    WHERE (a.customer_id, a.attempt_id) IN (
        SELECT m.customer_id, m.attempt_id FROM unnest(p_matches) AS m WHERE m.way = 'LOOKUP'
    )
    ORDER BY a.customer_id, a.attempt_id
    FOR NO KEY UPDATE;

    UPDATE billing.payment_attempt AS a
    SET next_lookup_at = p_as_of
    FROM unnest(p_matches) AS m
    WHERE m.way = 'LOOKUP'
      AND a.customer_id = m.customer_id
      AND a.attempt_id = m.attempt_id
      AND a.ended_at IS NULL;
END;
$function$;

COMMENT ON FUNCTION billing.look_up_at_once IS 'Makes the attempts of these webhooks due for a look-up.';
