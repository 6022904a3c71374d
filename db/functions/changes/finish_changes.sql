CREATE OR REPLACE FUNCTION billing.finish_changes(
    p_judgements billing.judgement[],
    p_as_of timestamptz
)
RETURNS void
LANGUAGE plpgsql
SET search_path = ''
AS $function$
-- Locks:      as void_change; subscriptions and invoices are locked by the caller
-- Writes:     as apply_change and void_change
-- Raises:     nothing of its own
-- Idempotent: yes
-- A loop: changes are few among renewals. A change has one try: its first definite decline voids it.
DECLARE
    v_done record;
BEGIN
    FOR v_done IN
        SELECT c.customer_id, c.change_id, i.status = 'PAID' AS is_paid
        FROM unnest(p_judgements) AS j
        INNER JOIN billing.invoice AS i ON i.customer_id = j.customer_id AND i.invoice_id = j.invoice_id
        INNER JOIN billing.subscription_change AS c ON c.customer_id = i.customer_id AND c.change_id = i.change_id
        WHERE j.verdict = 'APPLIED'
          AND c.status = 'PENDING'
          AND (i.status = 'PAID' OR (i.status = 'OPEN' AND j.attempt_status = 'DECLINED'))
        ORDER BY c.customer_id, c.change_id
    LOOP
        IF v_done.is_paid THEN
            PERFORM billing.apply_change(v_done.customer_id, v_done.change_id, p_as_of);
        ELSE
            PERFORM billing.void_change(v_done.customer_id, v_done.change_id, p_as_of);
        END IF;
    END LOOP;
END;
$function$;

COMMENT ON FUNCTION billing.finish_changes IS
'Lets changes take effect whose invoice was paid, and takes those back whose payment was declined.';
