CREATE OR REPLACE FUNCTION billing_worker.load_settlement_lines(
    p_report_id bigint,
    p_lines billing.settled_item[]
)
RETURNS integer
LANGUAGE plpgsql
SECURITY DEFINER
SET search_path = ''
AS $function$
-- Locks:      settlement_report, one row
-- Writes:     settlement_line
-- Raises:     as billing_ops.add_settlement_lines
-- Idempotent: yes, by (kind, gateway id)
BEGIN
    RETURN billing_ops.add_settlement_lines(p_report_id, p_lines);
END;
$function$;

COMMENT ON FUNCTION billing_worker.load_settlement_lines IS
'Adds lines that a worker was told by the gateway to a settlement report; the same line again changes nothing.';
