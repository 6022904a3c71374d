CREATE OR REPLACE FUNCTION billing_ops.check_integrity(
    p_since timestamptz DEFAULT NULL
)
RETURNS SETOF billing.violation
LANGUAGE plpgsql
STABLE
SECURITY DEFINER
SET search_path = ''
SET timezone = 'UTC'
AS $function$
-- Locks:      nothing
-- Writes:     nothing
-- Raises:     nothing
-- Idempotent: yes
-- One file per check; its comment says what a violation would mean. STABLE: all of them see one snapshot.
DECLARE
    v_customers bigint[];
BEGIN
    IF p_since IS NOT NULL THEN
        v_customers := billing.touched_customers(p_since);
    END IF;
    RETURN QUERY SELECT v.* FROM billing.check_period_chain(v_customers) AS v;
    RETURN QUERY SELECT v.* FROM billing.check_current_period(v_customers) AS v;
    RETURN QUERY SELECT v.* FROM billing.check_calendar(v_customers) AS v;
    RETURN QUERY SELECT v.* FROM billing.check_overdue_renewals() AS v;
    RETURN QUERY SELECT v.* FROM billing.check_billed_periods(v_customers) AS v;
    RETURN QUERY SELECT v.* FROM billing.check_invoice_totals(v_customers) AS v;
    RETURN QUERY SELECT v.* FROM billing.check_line_amounts(v_customers) AS v;
    RETURN QUERY SELECT v.* FROM billing.check_open_attempts(v_customers) AS v;
    RETURN QUERY SELECT v.* FROM billing.check_late_sends(v_customers) AS v;
    RETURN QUERY SELECT v.* FROM billing.check_stale_claims(v_customers) AS v;
    RETURN QUERY SELECT v.* FROM billing.check_captured_money(v_customers) AS v;
    RETURN QUERY SELECT v.* FROM billing.check_refunds(v_customers) AS v;
    RETURN QUERY SELECT v.* FROM billing.check_given_back(v_customers) AS v;
    RETURN QUERY SELECT v.* FROM billing.check_credit_ledger(v_customers) AS v;
    RETURN QUERY SELECT v.* FROM billing.check_credit_drawn(v_customers) AS v;
    RETURN QUERY SELECT v.* FROM billing.check_event_numbers(v_customers) AS v;
    RETURN QUERY SELECT v.* FROM billing.check_outbox_numbers(v_customers) AS v;
    RETURN QUERY SELECT v.* FROM billing.check_status_folds(v_customers) AS v;
    RETURN QUERY SELECT v.* FROM billing.check_log_folds(v_customers) AS v;
    RETURN QUERY SELECT v.* FROM billing.check_past_due(v_customers) AS v;
    RETURN QUERY SELECT v.* FROM billing.check_ended(v_customers) AS v;
    RETURN QUERY SELECT v.* FROM billing.check_scope(v_customers) AS v;
    RETURN QUERY SELECT v.* FROM billing.check_answers(v_customers) AS v;
    RETURN QUERY SELECT v.* FROM billing.check_stuck(v_customers) AS v;
    RETURN QUERY SELECT v.* FROM billing.check_card_numbers(v_customers) AS v;
    RETURN QUERY SELECT v.* FROM billing.check_guards() AS v;
    RETURN QUERY SELECT v.* FROM billing.check_identity() AS v;
END;
$function$;

COMMENT ON FUNCTION billing_ops.check_integrity IS
'Every promise, checked over all rows: (check, severity, customer, object, detail), one row per violation, none where all is well. p_since, of the wall clock, leaves out the customers about whom nothing was written since; what has waited too long is looked for everywhere.';
