CREATE OR REPLACE FUNCTION billing_worker.count_due_invoices(
    p_gateway_account text,
    p_limit integer,
    p_as_of timestamptz DEFAULT billing.now()
)
RETURNS billing.due_count
LANGUAGE plpgsql
STABLE
SECURITY DEFINER
SET search_path = ''
AS $function$
-- Locks:      nothing
-- Writes:     nothing
-- Raises:     SB101 bad limit, SB104 p_as_of, SB206 unknown account
-- Idempotent: yes
-- A worker asks before it reserves slots, so that idle workers take none from busy ones.
DECLARE
    v_as_of timestamptz := billing.require_as_of(p_as_of);
    v_account billing.gateway_account := billing.require_gateway_account(p_gateway_account);
    v_count billing.due_count;
BEGIN
    PERFORM billing.require_limit(p_limit);
    IF billing.moves_no_money(v_account) THEN
        RETURN ROW(0, 0)::billing.due_count;
    END IF;
    SELECT
        (SELECT count(*)
         FROM (
             SELECT 1
             FROM billing.invoice AS i
             WHERE i.status = 'OPEN' AND i.lane = 'INTERACTIVE'
               AND i.gateway_account_id = v_account.gateway_account_id
               AND i.next_attempt_at <= v_as_of AND (i.held_until IS NULL OR i.held_until <= clock_timestamp())
             LIMIT p_limit
         ) AS d)
        + (SELECT count(*)
           FROM (
               SELECT 1
               FROM billing.invoice AS i
               WHERE i.status = 'FAILED' AND i.gateway_account_id = v_account.gateway_account_id
                 AND i.next_attempt_at <= v_as_of AND (i.held_until IS NULL OR i.held_until <= clock_timestamp())
               LIMIT p_limit
           ) AS d),
        (SELECT count(*)
         FROM (
             SELECT 1
             FROM billing.invoice AS i
             WHERE i.status = 'OPEN' AND i.lane = 'BACKLOG'
               AND i.gateway_account_id = v_account.gateway_account_id
               AND i.next_attempt_at <= v_as_of AND (i.held_until IS NULL OR i.held_until <= clock_timestamp())
             LIMIT p_limit
         ) AS d)
        + (SELECT count(*)
           FROM (
               SELECT 1
               FROM billing.invoice AS i
               WHERE i.status = 'OPEN' AND i.gateway_account_id IS NULL AND i.next_attempt_at <= v_as_of
               LIMIT p_limit
           ) AS d)
    INTO v_count;
    RETURN v_count;
END;
$function$;

COMMENT ON FUNCTION billing_worker.count_due_invoices IS
'How many invoices of a gateway account are due now, per lane, each counted up to p_limit; those without a method count as backlog.';
