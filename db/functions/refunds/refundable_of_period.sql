CREATE OR REPLACE FUNCTION billing.refundable_of_period(
    p_customer_id bigint,
    p_base_invoice_id bigint
)
RETURNS bigint
LANGUAGE sql
STABLE
SET search_path = ''
AS $function$
    -- Locks:      nothing; the caller holds the subscription, or the invoice where there is none
    -- Writes:     nothing
    -- Raises:     nothing
    -- Idempotent: yes
    -- What may be credited may be refunded instead. Parts that an unsettled change was paid come on top; what waiting lines
    -- or an unsettled change of interval give back of the period goes off, and so does what one that was voided has given.
    SELECT (
        (
            SELECT v.creditable + least(v.waiting, 0)
            FROM billing.value_of_invoice(p_customer_id, p_base_invoice_id) AS v
        ) + (
            SELECT coalesce(sum(x.amount_paid), 0)
            FROM billing.invoice AS x
            WHERE x.customer_id = p_customer_id AND x.base_invoice_id = p_base_invoice_id AND x.status <> 'PAID'
        ) - (
            SELECT coalesce(sum(CASE x.status WHEN 'OPEN' THEN -l.amount ELSE least(-l.amount, given.amount) END), 0)
            FROM billing.invoice_line AS l
            INNER JOIN billing.invoice AS x ON x.customer_id = l.customer_id AND x.invoice_id = l.invoice_id
            CROSS JOIN LATERAL (
                SELECT coalesce(sum(e.amount), 0) AS amount
                FROM billing.credit_entry AS e
                WHERE e.customer_id = x.customer_id AND e.invoice_id = x.invoice_id AND e.kind = 'UNUSED_TIME'
            ) AS given
            WHERE l.customer_id = p_customer_id AND l.base_invoice_id = p_base_invoice_id
              AND l.line_no = 1 AND l.amount < 0
              AND x.kind = 'CHANGE' AND x.base_invoice_id IS NULL AND x.status <> 'PAID'
        )
    )::bigint;
$function$;

COMMENT ON FUNCTION billing.refundable_of_period IS
'What was paid for the period of an invoice, changes within it included, and was neither given as credit nor refunded nor moved to another period; minor units, negative where more went back.';
