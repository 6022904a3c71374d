CREATE OR REPLACE FUNCTION billing.clean_webhook_payload(
    p_payload jsonb
)
RETURNS jsonb
LANGUAGE sql
IMMUTABLE
SET search_path = ''
AS $function$
    -- Locks:      nothing
    -- Writes:     nothing
    -- Raises:     nothing
    -- Idempotent: yes
    -- Only what is understood is kept: personal data of the gateway's payload never comes in, nor does a card number. An id
    -- that looks like one is left out; that of a refund is null then, since the key tells refunds from charges. A code
    -- becomes what clean_results would make of it.
    SELECT coalesce(
        jsonb_object_agg(
            m.key,
            CASE
                WHEN m.key = 'amount' THEN m.value
                WHEN NOT c.is_card_number THEN to_jsonb(m.value #>> '{}')
                WHEN m.key = 'code' THEN to_jsonb('refused_text'::text)
                ELSE 'null'::jsonb
            END
        ),
        '{}'
    )
    FROM jsonb_each(p_payload) AS m
    CROSS JOIN LATERAL (
        SELECT billing.looks_like_card_number(m.value #>> '{}')
            AND NOT (m.key = 'amount' AND jsonb_typeof(m.value) = 'number') AS is_card_number
    ) AS c
    WHERE m.key IN ('paymentId', 'refundId', 'intentId', 'reference', 'outcome', 'amount', 'currency', 'code')
      AND m.value <> 'null'
      AND (m.key IN ('refundId', 'code') OR NOT c.is_card_number);
$function$;

COMMENT ON FUNCTION billing.clean_webhook_payload IS
'What the inbox keeps of a gateway event: the members that are understood, as texts but for the amount, without card numbers.';
