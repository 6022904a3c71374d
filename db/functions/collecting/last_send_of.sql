CREATE OR REPLACE FUNCTION billing.last_send_of(
    p_results billing.charge_result[]
)
RETURNS timestamptz
LANGUAGE sql
STABLE
SET search_path = ''
AS $function$
    SELECT max(a.last_sent_at)
    FROM unnest(p_results) AS r
    INNER JOIN billing.payment_attempt AS a ON a.customer_id = r.customer_id AND a.attempt_id = r.attempt_id;
$function$;

COMMENT ON FUNCTION billing.last_send_of IS
'Business time of the last send among the attempts of these results; NULL where none was sent.';
