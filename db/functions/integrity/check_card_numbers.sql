CREATE OR REPLACE FUNCTION billing.check_card_numbers()
RETURNS SETOF billing.violation
LANGUAGE sql
STABLE
SET search_path = ''
SET timezone = 'UTC'
AS $function$
    -- Locks:      nothing
    -- Writes:     nothing
    -- Raises:     nothing
    -- Idempotent: yes
    SELECT 'card_numbers', 'BROKEN', x.customer_id, x.object, 'looks like a card number'
    FROM (
        SELECT m.customer_id, format('payment method %s', m.payment_method_id) AS object, m.token AS text
        FROM billing.payment_method AS m
        UNION ALL
        SELECT e.customer_id, format('credit entry %s', e.entry_seq), e.reason
        FROM billing.credit_entry AS e
        WHERE e.kind = 'GRANTED'
        UNION ALL
        SELECT r.customer_id, format('resource %s', r.resource_id), r.external_ref
        FROM billing.resource AS r
        UNION ALL
        SELECT NULL, format('webhook %s', w.webhook_event_id), w.payload ->> 'code'
        FROM billing.webhook_event AS w
    ) AS x
    WHERE x.text ~ '[0-9]' AND billing.looks_like_card_number(x.text);
$function$;

COMMENT ON FUNCTION billing.check_card_numbers IS
'A text looks like a card number: it must never be stored here.';
