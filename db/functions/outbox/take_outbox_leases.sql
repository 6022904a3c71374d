CREATE OR REPLACE FUNCTION billing.take_outbox_leases(
    p_relay text
)
RETURNS billing.outbox_lease[]
LANGUAGE plpgsql
VOLATILE
SET search_path = ''
AS $function$
-- Locks:      outbox_lease, the rows that change hands, SKIP LOCKED for those of others
-- Writes:     outbox_relay, outbox_lease; nothing while nothing is due, so that an idle relay costs no writes
-- Raises:     nothing
-- Idempotent: yes
DECLARE
    c_lease CONSTANT interval := interval '30 seconds';
    c_renew_below CONSTANT interval := interval '20 seconds';
    c_seen_every CONSTANT interval := interval '10 seconds';
    v_now CONSTANT timestamptz := clock_timestamp();
    v_share integer;
    v_free smallint[];
BEGIN
    IF NOT EXISTS (
        SELECT FROM billing.outbox_relay AS r WHERE r.relay = p_relay AND r.seen_at > v_now - c_seen_every
    ) THEN
        INSERT INTO billing.outbox_relay (relay, seen_at) VALUES (p_relay, v_now)
        ON CONFLICT (relay) DO UPDATE SET seen_at = excluded.seen_at;
        DELETE FROM billing.outbox_relay AS r WHERE r.seen_at < v_now - interval '1 day';
    END IF;

    v_share := (
        SELECT ceil(16.0 / count(*))::integer FROM billing.outbox_relay AS r WHERE r.seen_at > v_now - c_lease
    );

    UPDATE billing.outbox_lease AS l
    SET leased_until = v_now + c_lease
    WHERE l.relay = p_relay
      AND l.leased_until > v_now
      AND l.leased_until < v_now + c_renew_below;

    UPDATE billing.outbox_lease AS l
    SET relay = NULL, leased_until = v_now
    WHERE l.relay = p_relay
      AND l.leased_until > v_now
      AND l.partition = ANY (ARRAY(
          SELECT surplus.partition
          FROM billing.outbox_lease AS surplus
          WHERE surplus.relay = p_relay AND surplus.leased_until > v_now
          ORDER BY surplus.partition
          OFFSET v_share
      ));

    v_free := ARRAY(
        SELECT l.partition
        FROM billing.outbox_lease AS l
        WHERE l.leased_until <= v_now
        ORDER BY l.leased_until, l.partition
        LIMIT greatest(0, v_share - (
            SELECT count(*) FROM billing.outbox_lease AS own WHERE own.relay = p_relay AND own.leased_until > v_now
        ))
        FOR NO KEY UPDATE SKIP LOCKED
    );
    UPDATE billing.outbox_lease AS l
    SET relay = p_relay, lease_epoch = l.lease_epoch + 1, leased_until = v_now + c_lease
    WHERE l.partition = ANY (v_free);

    RETURN ARRAY(
        SELECT l
        FROM billing.outbox_lease AS l
        WHERE l.relay = p_relay AND l.leased_until > v_now
        ORDER BY l.partition
    );
END;
$function$;

COMMENT ON FUNCTION billing.take_outbox_leases IS
'Renews the leases of a relay, gives back what is more than its fair share among the relays seen within a lease, takes free or lapsed partitions up to it, and returns what the relay now holds for at least 20 seconds.';
