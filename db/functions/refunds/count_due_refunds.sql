CREATE OR REPLACE FUNCTION billing_worker.count_due_refunds(
    p_gateway_account text,
    p_limit integer,
    p_as_of timestamptz DEFAULT billing.now()
)
RETURNS integer
LANGUAGE plpgsql
STABLE
SECURITY DEFINER
SET search_path = ''
AS $function$
-- Locks:      nothing
-- Writes:     nothing
-- Raises:     SB101 bad limit, SB104 p_as_of, SB206 unknown account
-- Idempotent: yes
-- A worker asks before it reserves slots.
DECLARE
    v_as_of timestamptz := billing.require_as_of(p_as_of);
    v_account billing.gateway_account := billing.require_gateway_account(p_gateway_account);
BEGIN
    PERFORM billing.require_limit(p_limit);
    IF billing.is_off(v_account) THEN
        RETURN 0;
    END IF;
    RETURN (
        SELECT count(*)
        FROM (
            SELECT 1
            FROM billing.refund AS f
            WHERE f.gateway_account_id = v_account.gateway_account_id
              AND f.next_send_at <= v_as_of AND (f.held_until IS NULL OR f.held_until <= clock_timestamp())
              AND NOT billing.moves_no_money(v_account)
            UNION ALL
            SELECT 1
            FROM billing.refund AS f
            WHERE f.gateway_account_id = v_account.gateway_account_id
              AND f.next_lookup_at <= v_as_of AND (f.lease_until IS NULL OR f.lease_until <= clock_timestamp())
            UNION ALL
            SELECT 1
            FROM billing.refund AS f
            WHERE f.lease_until <= clock_timestamp() AND f.status = 'STARTED'
            LIMIT p_limit
        ) AS d
    );
END;
$function$;

COMMENT ON FUNCTION billing_worker.count_due_refunds IS
'How many refunds of a gateway account are to be sent or asked about, counted up to p_limit.';
