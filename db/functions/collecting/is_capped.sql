CREATE OR REPLACE FUNCTION billing.is_capped(
    p_invoice billing.invoice,
    p_payment_method_id bigint,
    p_brand text,
    p_as_of timestamptz
)
RETURNS boolean
LANGUAGE sql
STABLE
SET search_path = ''
SET timezone = 'UTC'
AS $function$
    SELECT p_invoice.failure_count > 0 AND EXISTS (
        SELECT 1
        FROM billing.attempt_cap AS c
        WHERE c.brand = CASE
            WHEN EXISTS (SELECT 1 FROM billing.attempt_cap AS k WHERE k.brand = lower(p_brand)) THEN lower(p_brand)
            ELSE '*'
        END
          AND c.most <= (
              SELECT count(*)
              FROM billing.payment_attempt AS a
              WHERE a.customer_id = p_invoice.customer_id
                AND a.invoice_id = p_invoice.invoice_id
                AND a.payment_method_id = p_payment_method_id
                AND a.status = 'DECLINED'
                AND a.started_at > p_as_of - c.span
          )
    );
$function$;

COMMENT ON FUNCTION billing.is_capped IS
'True where a card network would not have this invoice tried on this method once more now.';
