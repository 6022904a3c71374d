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
    -- those of the last change within the period that was not forgiven, since nobody paid for that. Creditable is the sum
    -- of the lines about this period on paid invoices (a negative line was paid with what it gave back), less what became
    -- credit, went back or was only carried on; while a change of interval is still owed, what was brought along into its
    -- period, less what its own invoice has yet to collect for the time that it gives back. Waiting are the lines about it
    -- that an end would leave without an invoice, those on open invoices among them; owed is what else open invoices for
    -- what was granted are to be paid with, credit that they have drawn included, since an end gives that back.
    SELECT
        i.invoice_id,
        i.currency,
        NULL::bigint,
        coalesce(stub.seconds_total, extract(epoch FROM i.period_end - i.period_start))::bigint,
        coalesce(last_change.unit_amount, i.unit_amount, 0),
        coalesce(last_change.quantity, i.quantity, 1),
        (settled.amount + CASE i.status WHEN 'PAID' THEN 0 ELSE i.amount_paid END + brought.amount
        - given.amount - refunded.amount - related.carried)::bigint,
        waiting.amount::bigint,
        (related.owed + brought.unpaid)::bigint
    FROM billing.invoice AS i
    LEFT JOIN LATERAL (
        SELECT l.seconds_total
        FROM billing.invoice_line AS l
        WHERE l.customer_id = i.customer_id AND l.invoice_id = i.invoice_id AND l.line_no = 1
          AND l.kind = 'PRORATION' AND i.kind <> 'CHANGE'
    ) AS stub ON true
    LEFT JOIN LATERAL (
        SELECT pr.amount AS unit_amount, ch.to_quantity AS quantity
        FROM billing.subscription_change AS ch
        INNER JOIN billing.price AS pr ON pr.price_id = ch.to_price_id
        WHERE ch.customer_id = i.customer_id AND ch.base_invoice_id = i.invoice_id
          AND ch.status = 'APPLIED' AND NOT ch.opens_period
          AND NOT EXISTS (
              SELECT 1
              FROM billing.invoice AS x
              WHERE x.customer_id = ch.customer_id AND x.change_id = ch.change_id
                AND x.forgiven_by IS NOT NULL
          )
        ORDER BY ch.change_id DESC
        LIMIT 1
    ) AS last_change ON true
    CROSS JOIN LATERAL (
        SELECT coalesce(sum(y.amount), 0) AS amount
        FROM (
            SELECT l.amount, l.invoice_id
            FROM billing.invoice_line AS l
            WHERE l.customer_id = i.customer_id AND l.invoice_id = i.invoice_id AND l.base_invoice_id IS NULL
            UNION ALL
            SELECT l.amount, l.invoice_id
            FROM billing.invoice_line AS l
            WHERE l.customer_id = i.customer_id AND l.base_invoice_id = i.invoice_id
        ) AS y
        INNER JOIN billing.invoice AS x ON x.customer_id = i.customer_id AND x.invoice_id = y.invoice_id
        WHERE x.status = 'PAID'
    ) AS settled
    CROSS JOIN LATERAL (
        SELECT greatest(b.amount - b.unpaid, 0) AS amount, least(b.amount, b.unpaid) AS unpaid
        FROM (
            SELECT coalesce(-sum(l.amount), 0) AS amount, greatest(coalesce(sum(w.amount), 0), 0) AS unpaid
            FROM billing.invoice_line AS l
            CROSS JOIN LATERAL (
                SELECT sum(n.amount) AS amount
                FROM billing.pending_line AS n
                WHERE n.customer_id = l.customer_id AND n.billed_on_invoice_id = l.invoice_id
                  AND n.base_invoice_id = l.base_invoice_id
            ) AS w
            WHERE i.status = 'OPEN' AND i.drives_status AND i.kind = 'CHANGE' AND i.base_invoice_id IS NULL
              AND l.customer_id = i.customer_id AND l.invoice_id = i.invoice_id
              AND l.line_no = 1 AND l.amount < 0 AND l.base_invoice_id IS NOT NULL
        ) AS b
    ) AS brought
    CROSS JOIN LATERAL (
        SELECT
            coalesce(sum(x.carried), 0) AS carried,
            coalesce(
                sum(x.amount_due + x.credit_applied - taken.amount) FILTER (WHERE x.status = 'OPEN' AND x.drives_status), 0
            ) AS owed
        FROM billing.invoice AS x
        CROSS JOIN LATERAL (
            SELECT coalesce(sum(w.amount), 0) AS amount
            FROM billing.pending_line AS w
            WHERE w.customer_id = x.customer_id AND w.billed_on_invoice_id = x.invoice_id
        ) AS taken
        WHERE x.customer_id = i.customer_id AND (x.invoice_id = i.invoice_id OR x.base_invoice_id = i.invoice_id)
    ) AS related
    CROSS JOIN LATERAL (
        SELECT coalesce(sum(w.amount), 0) AS amount
        FROM billing.pending_line AS w
        LEFT JOIN billing.invoice AS x ON x.customer_id = w.customer_id AND x.invoice_id = w.billed_on_invoice_id
        WHERE w.customer_id = i.customer_id AND w.base_invoice_id = i.invoice_id AND w.dropped_at IS NULL
          AND (x.invoice_id IS NULL OR x.status = 'OPEN')
    ) AS waiting
    CROSS JOIN LATERAL (
        SELECT coalesce(sum(e.amount), 0) AS amount
        FROM billing.credit_entry AS e
        INNER JOIN billing.invoice AS x ON x.customer_id = e.customer_id AND x.invoice_id = e.invoice_id
        WHERE e.customer_id = i.customer_id AND e.kind = 'UNUSED_TIME'
          AND (x.invoice_id = i.invoice_id OR x.base_invoice_id = i.invoice_id)
    ) AS given
    CROSS JOIN LATERAL (
        SELECT coalesce(sum(f.amount), 0) AS amount
        FROM billing.refund AS f
        INNER JOIN billing.invoice AS x ON x.customer_id = f.customer_id AND x.invoice_id = f.invoice_id
        WHERE f.customer_id = i.customer_id AND f.status <> 'FAILED' AND f.purpose <> 'LATE_PAYMENT'
          AND (x.invoice_id = i.invoice_id OR x.base_invoice_id = i.invoice_id)
    ) AS refunded
    WHERE i.customer_id = p_customer_id AND i.invoice_id = p_invoice_id;
$function$;

COMMENT ON FUNCTION billing.value_of_invoice IS
'Price, quantity and full length of the period that an invoice covers, how much of what was paid for it may still be credited, what lines would add to that which wait for an invoice, and what is still owed for it. seconds_left is NULL.';
