CREATE OR REPLACE FUNCTION billing_worker.release_outbox(
    p_relay text
)
RETURNS integer
LANGUAGE plpgsql
VOLATILE
SECURITY DEFINER
SET search_path = ''
AS $function$
-- Locks:      outbox_lease, the rows of the relay
-- Writes:     outbox_lease, outbox_relay
-- Raises:     SB101 invalid argument
-- Idempotent: yes
DECLARE
    v_released integer;
BEGIN
    PERFORM billing.require_relay_name(p_relay);

    UPDATE billing.outbox_lease AS l
    SET relay = NULL, leased_until = '-infinity'
    WHERE l.relay = p_relay;
    GET DIAGNOSTICS v_released = ROW_COUNT;

    DELETE FROM billing.outbox_relay AS r WHERE r.relay = p_relay;

    RETURN v_released;
END;
$function$;

COMMENT ON FUNCTION billing_worker.release_outbox IS
'Gives back all leases of a relay that stops, so that others need not wait for them to lapse, and returns how many.';
