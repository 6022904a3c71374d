CREATE OR REPLACE FUNCTION billing.drop_waiting_changes(
    p_endings billing.ending[],
    p_as_of timestamptz
)
RETURNS void
LANGUAGE plpgsql
SET search_path = ''
AS $function$
-- Locks:      credit_balance; subscriptions are locked by the caller
-- Writes:     subscription_change, pending_line, credit_entry, credit_balance
-- Raises:     nothing
-- Idempotent: yes
-- Lines that wait for an invoice that will not come: per period, what the customer owes on balance is waived, since an
-- end never invoices on the way out; what is owed to the customer becomes credit.
BEGIN
    UPDATE billing.subscription_change AS c
    SET status = 'VOID', ended_at = p_as_of
    FROM unnest(p_endings) AS e
    WHERE c.customer_id = e.customer_id AND c.subscription_id = e.subscription_id AND c.status = 'PENDING';

    PERFORM billing.add_credit(
        d.customer_id, d.currency, 'UNUSED_TIME', -d.amount, d.base_invoice_id, NULL, 'change of plan', p_as_of
    )
    FROM (
        SELECT l.customer_id, i.currency, l.base_invoice_id, sum(l.amount)::bigint AS amount
        FROM unnest(p_endings) AS e
        INNER JOIN billing.pending_line AS l
            ON l.customer_id = e.customer_id AND l.subscription_id = e.subscription_id
        INNER JOIN billing.invoice AS i ON i.customer_id = l.customer_id AND i.invoice_id = l.base_invoice_id
        WHERE l.billed_on_invoice_id IS NULL AND l.dropped_at IS NULL
        GROUP BY l.customer_id, i.currency, l.base_invoice_id
        HAVING sum(l.amount) < 0
        ORDER BY l.customer_id, i.currency, l.base_invoice_id
    ) AS d;

    UPDATE billing.pending_line AS l
    SET dropped_at = p_as_of
    FROM unnest(p_endings) AS e
    WHERE l.customer_id = e.customer_id
      AND l.subscription_id = e.subscription_id
      AND l.billed_on_invoice_id IS NULL
      AND l.dropped_at IS NULL;
END;
$function$;

COMMENT ON FUNCTION billing.drop_waiting_changes IS
'Voids what waits for a payment or for the next invoice of subscriptions that end; what is owed to the customer becomes credit.';
