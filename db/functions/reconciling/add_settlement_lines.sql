CREATE OR REPLACE FUNCTION billing_ops.add_settlement_lines(
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
-- Raises:     SB101 a line that cannot be read, or one id with two amounts, SB211 report
-- Idempotent: yes, by (kind, gateway id)
DECLARE
    v_report billing.settlement_report := billing.require_open_report(p_report_id);
    v_bad billing.settled_item;
BEGIN
    IF (cardinality(p_lines) BETWEEN 0 AND 10000) IS NOT TRUE THEN
        RAISE EXCEPTION USING
            ERRCODE = 'SB101',
            MESSAGE = 'p_lines must be an array of at most 10000 lines';
    END IF;
    INSERT INTO billing.settlement_line (settlement_report_id, kind, gateway_id, reference, amount, currency)
    SELECT v_report.settlement_report_id, l.kind, l.gateway_id, l.reference, l.amount, l.currency
    FROM unnest(p_lines) AS l
    WHERE l.kind IN ('CHARGE', 'REFUND') AND length(l.gateway_id) BETWEEN 1 AND 255
      AND l.amount BETWEEN 1 AND 1000000000000000 AND l.currency ~ '^[A-Z]{3}$'
      AND length(coalesce(l.reference, '')) <= 255
    ON CONFLICT ON CONSTRAINT settlement_line_pkey DO NOTHING;

    SELECT l.*
    INTO v_bad
    FROM unnest(p_lines) AS l
    WHERE NOT EXISTS (
        SELECT 1
        FROM billing.settlement_line AS s
        WHERE s.settlement_report_id = p_report_id AND s.kind = l.kind AND s.gateway_id = l.gateway_id
          AND s.amount = l.amount AND s.currency = l.currency
    )
    LIMIT 1;
    IF found THEN
        RAISE EXCEPTION USING
            ERRCODE = 'SB101',
            MESSAGE = 'a line of the report cannot be read, or says two things about one payment',
            DETAIL = left(v_bad::text, 500);
    END IF;
    RETURN cardinality(p_lines);
END;
$function$;

COMMENT ON FUNCTION billing_ops.add_settlement_lines IS
'Adds lines to a settlement report that is being loaded; the same line again changes nothing.';
