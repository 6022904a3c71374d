CREATE OR REPLACE FUNCTION billing.reports_at_hand(
    p_report billing.settlement_report
)
RETURNS SETOF billing.settlement_report
LANGUAGE sql
STABLE
SET search_path = ''
AS $function$
    -- Locks:      nothing
    -- Writes:     nothing
    -- Raises:     nothing
    -- Idempotent: yes
    SELECT r.*
    FROM billing.settlement_report AS r
    WHERE r.settlement_report_id = p_report.settlement_report_id
       OR (
           r.gateway_account_id = p_report.gateway_account_id
           AND r.covers_to = p_report.covers_from
           AND r.compared_at IS NOT NULL
       );
$function$;

COMMENT ON FUNCTION billing.reports_at_hand IS
'A settlement report, and those of its account that end where it begins and were compared: where payments around its start are found.';
