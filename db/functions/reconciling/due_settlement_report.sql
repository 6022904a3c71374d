CREATE OR REPLACE FUNCTION billing_worker.due_settlement_report(
    p_gateway_account text,
    p_as_of timestamptz DEFAULT billing.now()
)
RETURNS SETOF billing.settlement_report
LANGUAGE plpgsql
SECURITY DEFINER
SET search_path = ''
SET timezone = 'UTC'
AS $function$
-- Locks:      nothing
-- Writes:     settlement_report
-- Raises:     SB104 p_as_of, SB206 gateway account
-- Idempotent: yes: a day that was begun and not compared is returned again, to be loaded anew
-- A day is due six hours after its end, when whatever moved in it is booked on both sides. The first is that of the first
-- attempt, at most thirty days back; days are taken in order, however long nobody asked.
DECLARE
    v_as_of CONSTANT timestamptz := billing.require_as_of(p_as_of);
    v_account CONSTANT billing.gateway_account := billing.require_gateway_account(p_gateway_account);
    v_report billing.settlement_report;
    v_day timestamptz;
BEGIN
    IF billing.moves_no_money(v_account) THEN
        RETURN;
    END IF;
    SELECT r.*
    INTO v_report
    FROM billing.settlement_report AS r
    WHERE r.gateway_account_id = v_account.gateway_account_id AND r.is_fetched
    ORDER BY r.covers_from DESC
    LIMIT 1;
    IF v_report.settlement_report_id IS NOT NULL AND v_report.compared_at IS NULL THEN
        RETURN NEXT v_report;
        RETURN;
    END IF;

    v_day := v_report.covers_to;
    IF v_day IS NULL THEN
        SELECT greatest(date_trunc('day', min(a.started_at)), date_trunc('day', v_as_of) - interval '30 days')
        INTO v_day
        FROM billing.payment_attempt AS a
        WHERE a.gateway_account_id = v_account.gateway_account_id
        HAVING min(a.started_at) IS NOT NULL;
    END IF;
    IF (v_day + interval '1 day 6 hours' <= v_as_of) IS NOT TRUE THEN
        RETURN;
    END IF;
    INSERT INTO billing.settlement_report AS r (
        gateway_account_id, covers_from, covers_to, loaded_by, is_fetched, opened_at
    )
    VALUES (v_account.gateway_account_id, v_day, v_day + interval '1 day', billing.actor(), true, v_as_of)
    ON CONFLICT (gateway_account_id, covers_from) WHERE is_fetched DO NOTHING
    RETURNING r.* INTO v_report;
    IF found THEN
        RETURN NEXT v_report;
    END IF;
END;
$function$;

COMMENT ON FUNCTION billing_worker.due_settlement_report IS
'Opens and returns the settlement report of the oldest day that is over and was not compared yet for a gateway account; nothing where no day is due, or no money moves.';
