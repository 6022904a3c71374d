CREATE OR REPLACE FUNCTION billing.issue_invoices(
    p_renewals billing.renewal[],
    p_as_of timestamptz
)
RETURNS void
LANGUAGE plpgsql
SET search_path = ''
AS $function$
-- Locks:      nothing
-- Writes:     invoice, invoice_line, pending_line
-- Raises:     23505 where the period is billed already
-- Idempotent: no, but one period is billed once by a unique index
-- A line of zero is not stored, but for a stub: it says how long the full period is.
BEGIN
    INSERT INTO billing.invoice (
        customer_id, invoice_id, subscription_id, resource_id, kind, status, currency, total, credit_applied,
        period_start, period_end, opens_period, drives_status, plan_code, price_id, unit_amount, quantity,
        lane, gateway_account_id, next_attempt_at, opened_seq, issued_at, paid_at
    )
    SELECT
        r.customer_id, r.invoice_id, r.subscription_id, r.resource_id, 'RENEWAL',
        CASE WHEN r.credit = r.total THEN 'PAID' ELSE 'OPEN' END,
        r.currency, r.total, r.credit, r.period_start, r.period_end, true, true,
        r.plan_code, r.price_id, r.unit_amount, r.quantity, 'BACKLOG', r.gateway_account_id,
        CASE WHEN r.credit < r.total THEN p_as_of END, r.event_seq + 1, p_as_of,
        CASE WHEN r.credit = r.total THEN p_as_of END
    FROM unnest(p_renewals) AS r
    WHERE r.verdict = 'RENEW'
    ORDER BY r.customer_id, r.subscription_id;

    INSERT INTO billing.invoice_line (
        customer_id, invoice_id, line_no, kind, description, amount, price_id, unit_amount, quantity,
        seconds_billed, seconds_total, period_start, period_end
    )
    SELECT
        r.customer_id, r.invoice_id, 1, CASE WHEN r.full_start < r.period_start THEN 'PRORATION' ELSE 'PERIOD' END,
        r.plan_name, r.period_amount, r.price_id, r.unit_amount, r.quantity,
        CASE WHEN r.full_start < r.period_start THEN extract(epoch FROM r.period_end - r.period_start) END,
        CASE WHEN r.full_start < r.period_start THEN extract(epoch FROM r.period_end - r.full_start) END,
        r.period_start, r.period_end
    FROM unnest(p_renewals) AS r
    WHERE r.verdict = 'RENEW' AND (r.period_amount > 0 OR r.full_start < r.period_start)
    ORDER BY r.customer_id, r.invoice_id;

    PERFORM billing.take_up_pending_lines(p_renewals);
END;
$function$;

COMMENT ON FUNCTION billing.issue_invoices IS
'Issues the invoice of each renewed subscription with its lines, due at once; PAID at once where nothing remains due.';
