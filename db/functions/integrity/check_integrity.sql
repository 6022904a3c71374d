CREATE OR REPLACE FUNCTION billing_ops.check_integrity()
RETURNS SETOF billing.violation
LANGUAGE sql
STABLE
SECURITY DEFINER
SET search_path = ''
SET timezone = 'UTC'
AS $function$
    -- Locks:      nothing
    -- Writes:     nothing
    -- Raises:     nothing
    -- Idempotent: yes
    -- One file per check; its comment says what a violation would mean.
    SELECT v.* FROM billing.check_period_chain() AS v
    UNION ALL SELECT v.* FROM billing.check_current_period() AS v
    UNION ALL SELECT v.* FROM billing.check_calendar() AS v
    UNION ALL SELECT v.* FROM billing.check_overdue_renewals() AS v
    UNION ALL SELECT v.* FROM billing.check_billed_periods() AS v
    UNION ALL SELECT v.* FROM billing.check_invoice_totals() AS v
    UNION ALL SELECT v.* FROM billing.check_open_attempts() AS v
    UNION ALL SELECT v.* FROM billing.check_late_sends() AS v
    UNION ALL SELECT v.* FROM billing.check_captured_money() AS v
    UNION ALL SELECT v.* FROM billing.check_credit_ledger() AS v
    UNION ALL SELECT v.* FROM billing.check_credit_drawn() AS v
    UNION ALL SELECT v.* FROM billing.check_event_numbers() AS v
    UNION ALL SELECT v.* FROM billing.check_outbox_numbers() AS v
    UNION ALL SELECT v.* FROM billing.check_status_folds() AS v
    UNION ALL SELECT v.* FROM billing.check_past_due() AS v
    UNION ALL SELECT v.* FROM billing.check_ended() AS v
    UNION ALL SELECT v.* FROM billing.check_scope() AS v
    UNION ALL SELECT v.* FROM billing.check_stuck() AS v
    UNION ALL SELECT v.* FROM billing.check_card_numbers() AS v;
$function$;

COMMENT ON FUNCTION billing_ops.check_integrity IS
'Every promise, checked over all rows: (check, severity, customer, object, detail), one row per violation, none where all is well.';
