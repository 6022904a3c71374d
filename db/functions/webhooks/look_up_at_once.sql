CREATE OR REPLACE FUNCTION billing.look_up_at_once(
    p_matches billing.webhook_match[],
    p_as_of timestamptz
)
RETURNS void
LANGUAGE plpgsql
SET search_path = ''
AS $function$
-- Locks:      nothing; lock_for_settlement came before
-- Writes:     payment_attempt
-- Raises:     nothing
-- Idempotent: yes
BEGIN
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
