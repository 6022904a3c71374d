CREATE OR REPLACE FUNCTION billing.activate_checkouts(
    p_moves billing.status_move[],
    p_as_of timestamptz
)
RETURNS void
LANGUAGE plpgsql
SET search_path = ''
SET timezone = 'UTC'
AS $function$
-- Locks:      credit_balance of stubs that were over; subscriptions and invoices are locked by the caller
-- Writes:     subscription, subscription_period, invoice, credit_entry, credit_balance, pending_line
-- Raises:     nothing of its own
-- Idempotent: no
-- Period and anchor are the instant of payment, so that time spent at checkout is not paid for. Calendar billing keeps
-- the stub as it was invoiced; where that was over before it was paid, the money becomes credit, what was too little
-- to be charged is waived, a fixed term does not count it, and the first full period is renewed into at once. The number
-- of the activation follows that of the payment.
BEGIN
    UPDATE billing.subscription AS s
    SET status = 'ACTIVE',
        anchor_at = (f.period).anchor_at,
        period_no = (f.period).period_no,
        current_period_kind = 'BILLED',
        current_period_start = (f.period).period_start,
        current_period_end = (f.period).period_end,
        next_renewal_at = (f.period).period_end,
        term_end_at = billing.term_end(
            f.period, s.time_zone, f.period_length,
            s.term_periods + CASE WHEN (f.period).period_end <= p_as_of THEN 1 ELSE 0 END
        ),
        version = s.version + 1
    FROM unnest(p_moves) AS m
    INNER JOIN billing.subscription AS o ON o.customer_id = m.customer_id AND o.subscription_id = m.subscription_id
    INNER JOIN billing.price AS pr ON pr.price_id = o.price_id
    CROSS JOIN LATERAL (
        SELECT billing.checkout_period(m.customer_id, m.subscription_id, p_as_of) AS period, pr.period_length
    ) AS f
    WHERE m.from_status = 'INCOMPLETE'
      AND s.customer_id = m.customer_id
      AND s.subscription_id = m.subscription_id;

    INSERT INTO billing.subscription_period (
        customer_id, subscription_id, period_start, period_end, prev_end, kind, invoice_id, opened_seq
    )
    SELECT
        s.customer_id, s.subscription_id, s.current_period_start, s.current_period_end, NULL, 'BILLED', i.invoice_id,
        s.event_seq + 2
    FROM unnest(p_moves) AS m
    INNER JOIN billing.subscription AS s
        ON s.customer_id = m.customer_id AND s.subscription_id = m.subscription_id
    INNER JOIN billing.invoice AS i
        ON i.customer_id = s.customer_id AND i.subscription_id = s.subscription_id
        AND i.kind = 'INITIAL' AND i.status = 'PAID'
    WHERE m.from_status = 'INCOMPLETE'
    ORDER BY s.customer_id, s.subscription_id;

    UPDATE billing.invoice AS i
    SET period_start = s.current_period_start, period_end = s.current_period_end
    FROM unnest(p_moves) AS m
    INNER JOIN billing.subscription AS s
        ON s.customer_id = m.customer_id AND s.subscription_id = m.subscription_id
    WHERE m.from_status = 'INCOMPLETE'
      AND i.customer_id = s.customer_id
      AND i.subscription_id = s.subscription_id
      AND i.kind = 'INITIAL'
      AND i.status = 'PAID';

    PERFORM billing.add_credit(
        i.customer_id, i.currency, 'UNUSED_TIME', i.amount_paid + i.credit_applied, i.invoice_id, NULL,
        'the first period was over before it was paid', p_as_of
    )
    FROM unnest(p_moves) AS m
    INNER JOIN billing.invoice AS i ON i.customer_id = m.customer_id AND i.subscription_id = m.subscription_id
    WHERE m.from_status = 'INCOMPLETE'
      AND i.kind = 'INITIAL'
      AND i.status = 'PAID'
      AND i.period_end <= p_as_of
      AND i.amount_paid + i.credit_applied > 0;

    UPDATE billing.pending_line AS l
    SET dropped_at = p_as_of
    FROM unnest(p_moves) AS m
    INNER JOIN billing.invoice AS i ON i.customer_id = m.customer_id AND i.subscription_id = m.subscription_id
    WHERE m.from_status = 'INCOMPLETE'
      AND i.kind = 'INITIAL'
      AND i.status = 'PAID'
      AND i.period_end <= p_as_of
      AND l.customer_id = i.customer_id
      AND l.base_invoice_id = i.invoice_id
      AND l.kind = 'CARRIED'
      AND l.billed_on_invoice_id IS NULL
      AND l.dropped_at IS NULL;
END;
$function$;

COMMENT ON FUNCTION billing.activate_checkouts IS
'Opens the first period of each checkout that was paid, at the instant of payment.';
