CREATE OR REPLACE FUNCTION billing_worker.drop_idempotency_keys(
    p_limit integer,
    p_keep_days integer DEFAULT 30,
    p_as_of timestamptz DEFAULT billing.now()
)
RETURNS integer
LANGUAGE plpgsql
SECURITY DEFINER
SET search_path = ''
SET timezone = 'UTC'
AS $function$
-- Locks:      idempotency_key (SKIP LOCKED)
-- Writes:     idempotency_key
-- Raises:     SB101 bad limit or number of days, SB104 p_as_of
-- Idempotent: yes
DECLARE
    v_as_of timestamptz := billing.require_as_of(p_as_of);
    v_dropped integer;
BEGIN
    PERFORM billing.require_limit(p_limit);
    PERFORM billing.require_integer(p_keep_days, 'p_keep_days', 1, 3660);
    WITH old AS MATERIALIZED (
        SELECT k.customer_id, k.operation, k.idempotency_key
        FROM billing.idempotency_key AS k
        WHERE NOT k.keep_for_ever AND k.created_at < v_as_of - make_interval(days => p_keep_days)
        ORDER BY k.created_at
        LIMIT p_limit
        FOR UPDATE SKIP LOCKED
    )

    DELETE FROM billing.idempotency_key AS k
    USING old AS o
    WHERE k.customer_id = o.customer_id AND k.operation = o.operation AND k.idempotency_key = o.idempotency_key;
    GET DIAGNOSTICS v_dropped = ROW_COUNT;
    RETURN v_dropped;
END;
$function$;

COMMENT ON FUNCTION billing_worker.drop_idempotency_keys IS
'Forgets callers'' idempotency keys that are older than so many days, at most p_limit a call, and returns how many. Those of operations that move money by themselves stay for ever.';
