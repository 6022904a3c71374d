CREATE OR REPLACE FUNCTION billing.clean_results(
    p_results billing.charge_result[]
)
RETURNS billing.charge_result[]
LANGUAGE sql
IMMUTABLE
SET search_path = ''
AS $function$
    -- Texts of a gateway are cut to what is stored, and never hold a card number; a payment id that is none is left out.
    -- One odd text must not hold up a batch, so nothing is raised.
    SELECT coalesce(
        array_agg(
            ROW(
                r.customer_id, r.attempt_id, r.claim_epoch, r.outcome,
                CASE WHEN length(r.gateway_payment_id) BETWEEN 1 AND 255
                    AND NOT billing.looks_like_card_number(r.gateway_payment_id)
                    THEN r.gateway_payment_id
                END,
                r.amount,
                left(r.currency, 3),
                CASE WHEN billing.looks_like_card_number(left(r.code, 100)) THEN 'refused_text' ELSE left(r.code, 100) END,
                least(greatest(round(r.retry_after, 3), 0), 86400),
                r.action_expires_at,
                r.source
            )::billing.charge_result
            ORDER BY r.place
        ),
        '{}'
    )
    FROM unnest(p_results) WITH ORDINALITY AS r (
        customer_id, attempt_id, claim_epoch, outcome, gateway_payment_id, amount, currency, code, retry_after,
        action_expires_at, source, place
    );
$function$;

COMMENT ON FUNCTION billing.clean_results IS
'Results with their texts cut to what is stored, without card numbers, and Retry-After within a day.';
