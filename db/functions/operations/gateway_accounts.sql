CREATE OR REPLACE FUNCTION billing_worker.gateway_accounts()
RETURNS TABLE (
    code text,
    adapter text,
    request_timeout interval,
    lease_margin interval,
    charge_rate integer,
    look_up_rate integer,
    refund_rate integer,
    collecting_paused boolean
)
LANGUAGE sql
STABLE
SECURITY DEFINER
SET search_path = ''
AS $function$
    -- Locks:      nothing
    -- Writes:     nothing
    -- Raises:     nothing
    -- Idempotent: yes
    SELECT
        a.code,
        a.adapter,
        a.request_timeout,
        a.lease_margin,
        coalesce(max(r.per_second) FILTER (WHERE r.operation = 'charge'), 200),
        coalesce(max(r.per_second) FILTER (WHERE r.operation = 'look_up'), 200),
        coalesce(max(r.per_second) FILTER (WHERE r.operation = 'refund'), 200),
        billing.moves_no_money(a)
    FROM billing.gateway_account AS a
    LEFT JOIN billing.gateway_rate AS r ON r.gateway_account_id = a.gateway_account_id
    GROUP BY a.gateway_account_id
    ORDER BY a.code;
$function$;

COMMENT ON FUNCTION billing_worker.gateway_accounts IS
'Every gateway account with what a worker must know of it: adapter, time-out, lease, calls per second of each operation (200 where no rate is set), and whether an operator has stopped collecting.';
