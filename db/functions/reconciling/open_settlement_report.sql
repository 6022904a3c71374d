CREATE OR REPLACE FUNCTION billing_ops.open_settlement_report(
    p_gateway_account text,
    p_from timestamptz,
    p_to timestamptz,
    p_as_of timestamptz DEFAULT billing.now()
)
RETURNS bigint
LANGUAGE plpgsql
SECURITY DEFINER
SET search_path = ''
SET timezone = 'UTC'
AS $function$
-- Locks:      nothing
-- Writes:     settlement_report
-- Raises:     SB101 no span of time, SB104 p_as_of, SB206 gateway account
-- Idempotent: no
DECLARE
    v_as_of timestamptz := billing.require_as_of(p_as_of);
    v_account billing.gateway_account := billing.require_gateway_account(p_gateway_account);
    v_report_id bigint;
BEGIN
    IF (isfinite(p_from) AND isfinite(p_to) AND p_to > p_from) IS NOT TRUE THEN
        RAISE EXCEPTION USING
            ERRCODE = 'SB101',
            MESSAGE = 'p_from must be an instant before p_to';
    END IF;
    INSERT INTO billing.settlement_report (gateway_account_id, covers_from, covers_to, loaded_by, opened_at)
    VALUES (v_account.gateway_account_id, p_from, p_to, billing.actor(), v_as_of)
    RETURNING settlement_report_id INTO STRICT v_report_id;
    RETURN v_report_id;
END;
$function$;

COMMENT ON FUNCTION billing_ops.open_settlement_report IS
'Begins to load what a gateway account has settled from p_from to before p_to, and returns the id of the report.';
