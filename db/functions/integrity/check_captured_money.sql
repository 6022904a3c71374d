CREATE OR REPLACE FUNCTION billing.check_captured_money(
    p_customers bigint[] DEFAULT NULL
)
RETURNS SETOF billing.violation
LANGUAGE plpgsql
STABLE
SET search_path = ''
SET timezone = 'UTC'
SET plan_cache_mode = force_custom_plan
AS $function$
-- Locks:      nothing
-- Writes:     nothing
-- Raises:     nothing
-- Idempotent: yes
BEGIN
    RETURN QUERY
    SELECT
        'captured_money', 'BROKEN', c.customer_id, format('invoice %s', c.invoice_id),
        format('captured %s, booked %s', c.captured, c.booked)
    FROM (
        SELECT
            i.customer_id, i.invoice_id,
            coalesce((
                -- Once per attempt: where a success has to be confirmed, it is reported twice.
                SELECT sum(p.amount)
                FROM (
                    SELECT max(r.amount) AS amount
                    FROM billing.payment_attempt AS a
                    INNER JOIN billing.payment_report AS r
                        ON r.customer_id = a.customer_id AND r.attempt_id = a.attempt_id
                    WHERE a.customer_id = i.customer_id AND a.invoice_id = i.invoice_id AND a.status = 'SUCCEEDED'
                      AND r.outcome = 'SUCCEEDED' AND r.verdict = 'APPLIED'
                    GROUP BY a.attempt_id
                ) AS p
            ), 0) AS captured,
            i.amount_paid
            + coalesce((
                SELECT sum(e.amount)
                FROM billing.credit_entry AS e
                WHERE e.customer_id = i.customer_id AND e.invoice_id = i.invoice_id AND e.kind IN ('SURPLUS', 'LATE_PAYMENT')
            ), 0)
            + coalesce((
                SELECT sum(f.amount)
                FROM billing.refund AS f
                WHERE f.customer_id = i.customer_id AND f.invoice_id = i.invoice_id AND f.purpose = 'LATE_PAYMENT'
            ), 0)
            + coalesce((
                SELECT sum(k.amount)
                FROM billing.reconciliation_case AS k
                WHERE k.customer_id = i.customer_id AND k.invoice_id = i.invoice_id AND k.kind = 'LATE_PAYMENT'
            ), 0) AS booked
        FROM billing.invoice AS i
        WHERE (i.attempt_count > 0 OR i.amount_paid > 0) AND (p_customers IS NULL OR i.customer_id = ANY (p_customers))
    ) AS c
    WHERE c.captured <> c.booked;
END;
$function$;

COMMENT ON FUNCTION billing.check_captured_money IS
'What gateways captured for an invoice is not what was booked for it: money was lost or invented.';
