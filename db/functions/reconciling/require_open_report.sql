CREATE OR REPLACE FUNCTION billing.require_open_report(
    p_report_id bigint
)
RETURNS billing.settlement_report
LANGUAGE plpgsql
SET search_path = ''
AS $function$
-- Locks:      settlement_report, one row, FOR NO KEY UPDATE
-- Writes:     nothing
-- Raises:     SB211 unknown, or compared already
-- Idempotent: yes
DECLARE
    v_report billing.settlement_report;
BEGIN
    SELECT r.*
    INTO v_report
    FROM billing.settlement_report AS r
    WHERE r.settlement_report_id = p_report_id AND r.compared_at IS NULL
    FOR NO KEY UPDATE;
    IF NOT found THEN
        RAISE EXCEPTION USING
            ERRCODE = 'SB211',
            MESSAGE = format('settlement report %s is not open', coalesce(p_report_id::text, 'NULL'));
    END IF;
    RETURN v_report;
END;
$function$;

COMMENT ON FUNCTION billing.require_open_report IS 'Locks and returns a settlement report that was not compared yet, or raises.';
