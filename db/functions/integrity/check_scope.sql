CREATE OR REPLACE FUNCTION billing.check_scope(
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
-- Composite foreign keys bind the customer along every edge; this is what no key can say.
BEGIN
    RETURN QUERY
    SELECT 'scope', 'BROKEN', x.customer_id, x.object, x.detail
    FROM (
        SELECT
            i.customer_id, format('invoice %s', i.invoice_id) AS object,
            'names another resource than its subscription' AS detail
        FROM billing.invoice AS i
        INNER JOIN billing.subscription AS s
            ON s.customer_id = i.customer_id AND s.subscription_id = i.subscription_id
        WHERE i.resource_id <> s.resource_id
        UNION ALL
        SELECT
            i.customer_id, format('invoice %s', i.invoice_id),
            format('adjusts invoice %s of another subscription or currency', i.base_invoice_id)
        FROM billing.invoice AS i
        LEFT JOIN billing.invoice AS b ON b.customer_id = i.customer_id AND b.invoice_id = i.base_invoice_id
        WHERE i.base_invoice_id IS NOT NULL
          AND (b.subscription_id, b.currency) IS DISTINCT FROM (i.subscription_id, i.currency)
        UNION ALL
        SELECT
            i.customer_id, format('invoice %s', i.invoice_id), format('bills change %s of another subscription', i.change_id)
        FROM billing.invoice AS i
        INNER JOIN billing.subscription_change AS c ON c.customer_id = i.customer_id AND c.change_id = i.change_id
        WHERE c.subscription_id <> i.subscription_id
        UNION ALL
        SELECT
            a.customer_id, format('attempt %s', a.attempt_id),
            format('is in %s through account %s', a.currency, a.gateway_account_id)
        FROM billing.payment_attempt AS a
        INNER JOIN billing.invoice AS i ON i.customer_id = a.customer_id AND i.invoice_id = a.invoice_id
        LEFT JOIN billing.payment_method AS m
            ON m.customer_id = a.customer_id AND m.payment_method_id = a.payment_method_id
        WHERE a.currency <> i.currency OR a.gateway_account_id <> m.gateway_account_id
        UNION ALL
        SELECT
            e.customer_id, format('credit entry %s in %s', e.entry_seq, e.currency),
            format('is for invoice %s in %s and attempt %s of invoice %s', e.invoice_id, i.currency, e.attempt_id, a.invoice_id)
        FROM billing.credit_entry AS e
        LEFT JOIN billing.invoice AS i ON i.customer_id = e.customer_id AND i.invoice_id = e.invoice_id
        LEFT JOIN billing.payment_attempt AS a ON a.customer_id = e.customer_id AND a.attempt_id = e.attempt_id
        WHERE i.currency <> e.currency OR a.invoice_id <> e.invoice_id OR (e.attempt_id IS NOT NULL AND a.attempt_id IS NULL)
        UNION ALL
        SELECT
            l.customer_id, format('waiting line %s', l.pending_line_id),
            format('was billed on invoice %s of another subscription', l.billed_on_invoice_id)
        FROM billing.pending_line AS l
        LEFT JOIN billing.invoice AS i ON i.customer_id = l.customer_id AND i.invoice_id = l.billed_on_invoice_id
        WHERE l.billed_on_invoice_id IS NOT NULL AND i.subscription_id IS DISTINCT FROM l.subscription_id
        UNION ALL
        SELECT
            w.customer_id, format('webhook %s', w.webhook_event_id),
            format('came from account %s about an attempt at account %s', w.gateway_account_id, a.gateway_account_id)
        FROM billing.webhook_event AS w
        INNER JOIN billing.payment_attempt AS a ON a.customer_id = w.customer_id AND a.attempt_id = w.attempt_id
        WHERE w.status NOT IN ('REJECTED', 'CASE') AND a.gateway_account_id <> w.gateway_account_id
        UNION ALL
        SELECT
            k.customer_id, format('case %s', k.case_id),
            format('is about attempt %s of another invoice than %s', k.attempt_id, k.invoice_id)
        FROM billing.reconciliation_case AS k
        INNER JOIN billing.payment_attempt AS a ON a.customer_id = k.customer_id AND a.attempt_id = k.attempt_id
        WHERE a.invoice_id <> k.invoice_id
    ) AS x
    WHERE (p_customers IS NULL OR x.customer_id = ANY (p_customers));
END;
$function$;

COMMENT ON FUNCTION billing.check_scope IS
'Rows that belong together name different subscriptions, resources, currencies or gateway accounts: money would buy the wrong thing.';
