CREATE OR REPLACE FUNCTION billing.close_open_invoices(
    p_endings billing.ending[],
    p_as_of timestamptz
)
RETURNS billing.closed_invoice[]
LANGUAGE plpgsql
SET search_path = ''
AS $function$
-- Locks:      invoice, the open ones of these subscriptions, in id order -> payment_attempt -> credit_balance
-- Writes:     invoice, payment_attempt, credit_entry, credit_balance
-- Raises:     nothing of its own
-- Idempotent: yes
-- After dunning what drove the status is FAILED (the debt stands) where its period has begun. All else is VOID.
DECLARE
    v_closed billing.closed_invoice[];
    v_drawn record;
BEGIN
    PERFORM 1
    FROM billing.invoice AS i
    INNER JOIN unnest(p_endings) AS e ON e.customer_id = i.customer_id AND e.subscription_id = i.subscription_id
    WHERE i.status = 'OPEN'
    ORDER BY i.customer_id, i.invoice_id
    FOR NO KEY UPDATE OF i;

    PERFORM billing.release_attempts(
        ARRAY(
            SELECT ROW(i.customer_id, i.invoice_id)::billing.invoice_key
            FROM billing.invoice AS i
            INNER JOIN unnest(p_endings) AS e
                ON e.customer_id = i.customer_id AND e.subscription_id = i.subscription_id
            WHERE i.status = 'OPEN'
            ORDER BY i.customer_id, i.invoice_id
        ),
        p_as_of
    );

    -- Credit goes back before the invoice is void, one entry each: few invoices have any.
    FOR v_drawn IN
        SELECT i.customer_id, i.currency, i.invoice_id, i.credit_applied
        FROM billing.invoice AS i
        INNER JOIN unnest(p_endings) AS e ON e.customer_id = i.customer_id AND e.subscription_id = i.subscription_id
        WHERE i.status = 'OPEN' AND i.credit_applied > 0
          AND NOT (e.reason = 'payment_failed' AND i.drives_status AND i.period_start <= p_as_of)
        ORDER BY i.customer_id, i.currency, i.invoice_id
    LOOP
        PERFORM billing.add_credit(
            v_drawn.customer_id, v_drawn.currency, 'RETURNED', v_drawn.credit_applied, v_drawn.invoice_id, NULL,
            'invoice voided', p_as_of
        );
    END LOOP;

    WITH closed AS (
        UPDATE billing.invoice AS i
        SET status = CASE WHEN f.stands THEN 'FAILED' ELSE 'VOID' END,
            failed_at = CASE WHEN f.stands THEN p_as_of END,
            voided_at = CASE WHEN NOT f.stands THEN p_as_of END,
            credit_applied = CASE WHEN f.stands THEN i.credit_applied ELSE 0 END,
            lane = CASE WHEN f.stands THEN 'BACKLOG' ELSE i.lane END,
            next_attempt_at = NULL,
            held_until = NULL,
            dunning_ends_at = NULL
        FROM (
            SELECT
                o.customer_id, o.invoice_id,
                e.reason = 'payment_failed' AND o.drives_status AND o.period_start <= p_as_of AS stands
            FROM billing.invoice AS o
            INNER JOIN unnest(p_endings) AS e
                ON e.customer_id = o.customer_id AND e.subscription_id = o.subscription_id
            WHERE o.status = 'OPEN'
        ) AS f
        WHERE i.customer_id = f.customer_id AND i.invoice_id = f.invoice_id
        RETURNING i.customer_id, i.subscription_id, i.invoice_id, i.status
    )
    SELECT coalesce(
        array_agg(
            ROW(c.customer_id, c.subscription_id, c.invoice_id, c.status)::billing.closed_invoice
            ORDER BY c.customer_id, c.subscription_id, c.invoice_id
        ),
        '{}'
    )
    INTO v_closed
    FROM closed AS c;
    RETURN v_closed;
END;
$function$;

COMMENT ON FUNCTION billing.close_open_invoices IS
'Makes the open invoices of ending subscriptions VOID (credit goes back) or, after dunning, FAILED (credit stays).';
