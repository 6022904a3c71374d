CREATE OR REPLACE FUNCTION billing.triage_invoices(
    p_invoices billing.invoice_key[],
    p_account billing.gateway_account,
    p_as_of timestamptz
)
RETURNS SETOF billing.triage
LANGUAGE sql
STABLE
SET search_path = ''
AS $function$
    -- Locks:      nothing; invoices are locked by the caller
    -- Writes:     nothing
    -- Raises:     nothing
    -- Idempotent: yes
    SELECT
        i.customer_id, i.invoice_id, i.subscription_id,
        CASE
            WHEN a.lease_until > clock_timestamp() OR a.status IN ('REQUIRES_ACTION', 'PROCESSING') THEN 'BUSY'
            WHEN a.attempt_id IS NOT NULL AND billing.key_is_alive(a, p_account, p_as_of)
            THEN CASE WHEN a.status = 'UNKNOWN' AND a.next_lookup_at <= p_as_of THEN 'LOOK_UP_DUE' ELSE 'SEND' END
            WHEN a.status = 'STARTED' AND a.lease_until IS NULL AND a.refusal_count >= a.send_count THEN 'NEVER_SENT'
            WHEN a.attempt_id IS NOT NULL THEN 'KEY_LAPSED'
            WHEN coalesce(b.balance, 0) > 0 THEN 'CREDIT'
            WHEN m.payment_method_id IS NULL THEN 'NO_METHOD'
            WHEN m.gateway_account_id IS DISTINCT FROM p_account.gateway_account_id
                OR i.gateway_account_id IS DISTINCT FROM m.gateway_account_id THEN 'OTHER_ACCOUNT'
            WHEN i.amount_due < n.amount AND i.subscription_id IS NOT NULL THEN 'CARRY'
            WHEN m.blocked_at IS NOT NULL AND i.lane = 'BACKLOG' THEN 'PASS'
            WHEN billing.is_capped(i, m.payment_method_id, m.brand, p_as_of) THEN 'PASS'
            WHEN i.look_up_first THEN 'ASK'
            ELSE 'SEND'
        END,
        m.payment_method_id, m.gateway_account_id
    FROM unnest(p_invoices) AS k
    INNER JOIN billing.invoice AS i ON i.customer_id = k.customer_id AND i.invoice_id = k.invoice_id
    LEFT JOIN billing.subscription AS s ON s.customer_id = i.customer_id AND s.subscription_id = i.subscription_id
    LEFT JOIN billing.payment_attempt AS a
        ON a.customer_id = i.customer_id AND a.invoice_id = i.invoice_id
        AND a.status IN ('STARTED', 'UNKNOWN', 'REQUIRES_ACTION', 'PROCESSING')
    LEFT JOIN billing.credit_balance AS b ON b.customer_id = i.customer_id AND b.currency = i.currency
    LEFT JOIN LATERAL billing.usable_method(
        i.customer_id, coalesce(i.payment_method_id, s.payment_method_id)
    ) AS m ON true
    LEFT JOIN billing.gateway_minimum AS n
        ON n.gateway_account_id = p_account.gateway_account_id AND n.currency = i.currency
    ORDER BY i.customer_id, i.invoice_id;
$function$;

COMMENT ON FUNCTION billing.triage_invoices IS
'Says of each due invoice whether it is to be sent, or why it needs no call.';
