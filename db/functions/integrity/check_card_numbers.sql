CREATE OR REPLACE FUNCTION billing.check_card_numbers(
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
-- Free text only, and of that only what has 13 digits in a row or in groups: the sum is then worth computing.
BEGIN
    RETURN QUERY
    SELECT 'card_numbers', 'BROKEN', x.customer_id, x.object, 'looks like a card number'
    FROM (
        SELECT m.customer_id, format('payment method %s', m.payment_method_id) AS object, m.token AS text
        FROM billing.payment_method AS m
        UNION ALL
        SELECT e.customer_id, format('credit entry %s', e.entry_seq), e.reason
        FROM billing.credit_entry AS e
        UNION ALL
        SELECT r.customer_id, format('resource %s', r.resource_id), r.external_ref
        FROM billing.resource AS r
        UNION ALL
        SELECT c.customer_id, 'customer', c.external_ref
        FROM billing.customer AS c
        UNION ALL
        SELECT k.customer_id, 'contact', k.email
        FROM billing.customer_contact AS k
        UNION ALL
        SELECT l.customer_id, format('line %s of invoice %s', l.line_no, l.invoice_id), l.description
        FROM billing.invoice_line AS l
        UNION ALL
        SELECT a.customer_id, format('attempt %s', a.attempt_id), concat_ws(' / ', a.description, a.decline_code)
        FROM billing.payment_attempt AS a
        UNION ALL
        SELECT nullif(i.customer_id, 0), format('idempotency key of %s', i.operation), i.idempotency_key
        FROM billing.idempotency_key AS i
        UNION ALL
        SELECT w.customer_id, format('webhook %s, %s', w.webhook_event_id, m.key), m.value
        FROM billing.webhook_event AS w
        CROSS JOIN LATERAL jsonb_each_text(w.payload) AS m
        WHERE m.key IN ('paymentId', 'refundId', 'intentId', 'reference', 'code')
    ) AS x
    WHERE (p_customers IS NULL OR x.customer_id IS NULL OR x.customer_id = ANY (p_customers))
      AND x.text ~ '[0-9](?:[ -]?[0-9]){12}' AND billing.looks_like_card_number(x.text);
END;
$function$;

COMMENT ON FUNCTION billing.check_card_numbers IS
'A text looks like a card number: it must never be stored here.';
