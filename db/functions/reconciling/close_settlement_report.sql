CREATE OR REPLACE FUNCTION billing_worker.close_settlement_report(
    p_report_id bigint,
    p_as_of timestamptz DEFAULT billing.now()
)
RETURNS integer
LANGUAGE plpgsql
SECURITY DEFINER
SET search_path = ''
AS $function$
-- Locks:      as billing_ops.compare_settlement
-- Writes:     as billing_ops.compare_settlement
-- Raises:     SB104 p_as_of, SB211 unknown report, or compared by another worker meanwhile
-- Idempotent: as billing_ops.compare_settlement
DECLARE
    v_differences integer;
BEGIN
    SELECT count(*) INTO v_differences FROM billing_ops.compare_settlement(p_report_id, p_as_of);
    RETURN v_differences;
END;
$function$;

COMMENT ON FUNCTION billing_worker.close_settlement_report IS
'Compares a settlement report of which every line is loaded, and returns how many differences were found; each has a case.';
