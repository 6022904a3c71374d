CREATE OR REPLACE FUNCTION billing.claim_due_invoices(
    p_gateway_account_id integer,
    p_limit integer,
    p_as_of timestamptz
)
RETURNS billing.invoice_key[]
LANGUAGE plpgsql
SET search_path = ''
SET plan_cache_mode = 'force_custom_plan'
AS $function$
-- Locks:      invoice, FOR NO KEY UPDATE SKIP LOCKED
-- Writes:     nothing
-- Raises:     nothing
-- Idempotent: yes
-- Interactive first, with the debts of ended subscriptions that somebody wants to pay, then the backlog, each oldest
-- first; at last some that have no payment method at all. Statuses and lanes are literals, or the partial index is not used.
DECLARE
    v_interactive billing.invoice_key[];
    v_debts billing.invoice_key[];
    v_backlog billing.invoice_key[];
    v_unpayable billing.invoice_key[];
BEGIN
    SELECT coalesce(array_agg(ROW(c.customer_id, c.invoice_id)::billing.invoice_key), '{}')
    INTO v_interactive
    FROM (
        SELECT i.customer_id, i.invoice_id
        FROM billing.invoice AS i
        WHERE i.status = 'OPEN' AND i.lane = 'INTERACTIVE' AND i.gateway_account_id = p_gateway_account_id
          AND i.next_attempt_at <= p_as_of AND (i.held_until IS NULL OR i.held_until <= clock_timestamp())
        ORDER BY i.next_attempt_at
        LIMIT p_limit
        FOR NO KEY UPDATE SKIP LOCKED
    ) AS c;

    SELECT coalesce(array_agg(ROW(c.customer_id, c.invoice_id)::billing.invoice_key), '{}')
    INTO v_debts
    FROM (
        SELECT i.customer_id, i.invoice_id
        FROM billing.invoice AS i
        WHERE i.status = 'FAILED' AND i.gateway_account_id = p_gateway_account_id
          AND i.next_attempt_at <= p_as_of AND (i.held_until IS NULL OR i.held_until <= clock_timestamp())
        ORDER BY i.next_attempt_at
        LIMIT p_limit - cardinality(v_interactive)
        FOR NO KEY UPDATE SKIP LOCKED
    ) AS c;
    v_interactive := v_interactive || v_debts;

    SELECT coalesce(array_agg(ROW(c.customer_id, c.invoice_id)::billing.invoice_key), '{}')
    INTO v_backlog
    FROM (
        SELECT i.customer_id, i.invoice_id
        FROM billing.invoice AS i
        WHERE i.status = 'OPEN' AND i.lane = 'BACKLOG' AND i.gateway_account_id = p_gateway_account_id
          AND i.next_attempt_at <= p_as_of AND (i.held_until IS NULL OR i.held_until <= clock_timestamp())
        ORDER BY i.next_attempt_at
        LIMIT p_limit - cardinality(v_interactive)
        FOR NO KEY UPDATE SKIP LOCKED
    ) AS c;

    SELECT coalesce(array_agg(ROW(c.customer_id, c.invoice_id)::billing.invoice_key), '{}')
    INTO v_unpayable
    FROM (
        SELECT i.customer_id, i.invoice_id
        FROM billing.invoice AS i
        WHERE i.status = 'OPEN' AND i.gateway_account_id IS NULL AND i.next_attempt_at <= p_as_of
        ORDER BY i.lane, i.next_attempt_at
        LIMIT p_limit
        FOR NO KEY UPDATE SKIP LOCKED
    ) AS c;

    RETURN v_interactive || v_backlog || v_unpayable;
END;
$function$;

COMMENT ON FUNCTION billing.claim_due_invoices IS
'Locks up to p_limit due invoices of a gateway account, and as many again that have no payment method, and returns their keys.';
