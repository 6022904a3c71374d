CREATE OR REPLACE FUNCTION billing.value_of_invoice(
    p_customer_id bigint,
    p_invoice_id bigint
)
RETURNS SETOF billing.period_value
LANGUAGE sql
STABLE
ROWS 1
SET search_path = ''
SET timezone = 'UTC'
AS $function$
    -- Locks:      nothing
    -- Writes:     nothing
    -- Raises:     nothing
    -- Idempotent: yes
    -- seconds_total is the length of the full period as it was priced, also of a calendar stub. Price and quantity are
    -- those of the last change within the period. Creditable: paid and drawn from credit for this period, its changes
    -- included, less what was given back. What an open invoice drew goes back with it when it is voided. A change of
    -- interval brings along what was left of the period before.
    SELECT
        i.invoice_id,
        i.currency,
        NULL::bigint,
        coalesce(stub.seconds_total, extract(epoch FROM i.period_end - i.period_start))::bigint,
        coalesce(last_change.unit_amount, i.unit_amount, 0),
        coalesce(last_change.quantity, i.quantity, 1),
        i.amount_paid + CASE i.status WHEN 'OPEN' THEN 0 ELSE i.credit_applied END
        + coalesce(changes.paid, 0)::bigint + coalesce(brought.amount, 0)::bigint - given.amount - refunded.amount
    FROM billing.invoice AS i
    LEFT JOIN LATERAL (
        SELECT l.seconds_total
        FROM billing.invoice_line AS l
        WHERE l.customer_id = i.customer_id AND l.invoice_id = i.invoice_id AND l.line_no = 1
          AND l.kind = 'PRORATION' AND i.kind <> 'CHANGE'
    ) AS stub ON true
    LEFT JOIN LATERAL (
        SELECT sum(x.amount_paid + CASE x.status WHEN 'OPEN' THEN 0 ELSE x.credit_applied END) AS paid
        FROM billing.invoice AS x
        WHERE x.customer_id = i.customer_id AND x.base_invoice_id = i.invoice_id
    ) AS changes ON true
    LEFT JOIN LATERAL (
        SELECT -sum(l.amount) AS amount
        FROM billing.invoice_line AS l
        WHERE l.customer_id = i.customer_id AND l.invoice_id = i.invoice_id AND i.kind = 'CHANGE'
          AND l.kind = 'PRORATION' AND l.amount < 0
    ) AS brought ON true
    LEFT JOIN LATERAL (
        SELECT pr.amount AS unit_amount, ch.to_quantity AS quantity
        FROM billing.subscription_change AS ch
        INNER JOIN billing.price AS pr ON pr.price_id = ch.to_price_id
        WHERE ch.customer_id = i.customer_id AND ch.base_invoice_id = i.invoice_id
          AND ch.status = 'APPLIED' AND NOT ch.opens_period
        ORDER BY ch.change_id DESC
        LIMIT 1
    ) AS last_change ON true
    CROSS JOIN LATERAL (
        SELECT coalesce(sum(e.amount), 0)::bigint AS amount
        FROM billing.credit_entry AS e
        INNER JOIN billing.invoice AS x ON x.customer_id = e.customer_id AND x.invoice_id = e.invoice_id
        WHERE e.customer_id = i.customer_id AND e.kind = 'UNUSED_TIME'
          AND (x.invoice_id = i.invoice_id OR x.base_invoice_id = i.invoice_id)
    ) AS given
    CROSS JOIN LATERAL (
        SELECT coalesce(sum(f.amount), 0)::bigint AS amount
        FROM billing.refund AS f
        INNER JOIN billing.invoice AS x ON x.customer_id = f.customer_id AND x.invoice_id = f.invoice_id
        WHERE f.customer_id = i.customer_id AND f.status <> 'FAILED' AND f.purpose <> 'LATE_PAYMENT'
          AND (x.invoice_id = i.invoice_id OR x.base_invoice_id = i.invoice_id)
    ) AS refunded
    WHERE i.customer_id = p_customer_id AND i.invoice_id = p_invoice_id;
$function$;

COMMENT ON FUNCTION billing.value_of_invoice IS
'Price, quantity and full length of the period that an invoice covers, and how much of what was paid for it may still be credited. seconds_left is NULL.';
