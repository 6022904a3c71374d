-- Every named constraint and unique index of the tables of billing is broken once by hand, as the owner might by mistake,
-- and refuses by its name. Each statement is a copy of a good row with the smallest change that breaks one promise.
BEGIN;
SELECT plan(4);

-- Good rows to copy: two customers with paid and open invoices, an attempt, a change, a trial, credit, a webhook, a case.
SELECT billing_test.renewal_invoice('a');
SELECT billing_test.renewal_invoice('b');
SELECT billing_test.start('2027-05-01T00:00:00Z');
SELECT billing_test.report(max(a.attempt_id), 'UNKNOWN', '2027-05-01T00:00:00Z') FROM billing.payment_attempt AS a;
SELECT billing_api.grant_credit(c.customer_id, 500, 'USD', 'x', 'k', '2027-05-01T00:00:00Z') FROM billing.customer AS c;
SELECT billing_worker.receive_webhook('sim', 'evt_1', 'charge.succeeded', '{"outcome": "SUCCEEDED"}', '2027-05-01T00:00:00Z');
SELECT billing_ops.set_gateway_minimum('sim', 'USD', 50);
INSERT INTO billing.customer_contact SELECT max(c.customer_id), 'a@example.org' FROM billing.customer AS c;
INSERT INTO billing.trial_taken (customer_id, scope, subscription_id, taken_at)
SELECT s.customer_id, 'customer', s.subscription_id, '2027-05-01Z' FROM billing.subscription AS s;
INSERT INTO billing.reconciliation_case (kind, customer_id, invoice_id, attempt_id, opened_at)
SELECT 'UNKNOWN_OUTCOME', a.customer_id, a.invoice_id, a.attempt_id, '2027-05-01Z' FROM billing.payment_attempt AS a
    ORDER BY a.attempt_id LIMIT 1;
INSERT INTO billing.subscription_change (
    customer_id, subscription_id, status, timing, payment_behavior, from_price_id, from_quantity, to_price_id, to_quantity, opens_period,
    effective_at, created_at
)
SELECT
    s.customer_id, s.subscription_id, 'PENDING', 'IMMEDIATE', 'PAY_FIRST', s.price_id, 1, s.price_id AS to_price_id, 2, false,
    '2027-05-01Z',
    '2027-05-01Z'
FROM billing.subscription AS s;
INSERT INTO billing.pending_line (
    customer_id, subscription_id, kind, description, amount, base_invoice_id, carried_from_invoice_id, created_at
)
SELECT i.customer_id, i.subscription_id, 'CARRIED', 'x', 10, i.invoice_id, i.invoice_id AS carried_from, '2027-05-01Z'
FROM billing.invoice AS i WHERE i.kind = 'INITIAL';
INSERT INTO billing.refund (
    customer_id, invoice_id, attempt_id, refund_no, purpose, amount, currency, idempotency_key, gateway_account_id, gateway_payment_id,
    gateway_refund_id, requested_by, requested_at
)
SELECT a.customer_id, a.invoice_id, a.attempt_id, 1, 'REQUESTED', 10, 'USD', 'refund', a.gateway_account_id, a.gateway_payment_id, 're_1',
    'x',
    '2027-05-01Z'
FROM billing.payment_attempt AS a WHERE a.status = 'SUCCEEDED' ORDER BY a.attempt_id LIMIT 1;
INSERT INTO billing.refund_report (customer_id, refund_id, source, outcome, verdict, as_of)
SELECT r.customer_id, r.refund_id, 'SEND', 'UNKNOWN', 'APPLIED', '2027-05-01Z' FROM billing.refund AS r;
INSERT INTO billing.reconciliation_case (kind, customer_id, invoice_id, refund_id, opened_at)
SELECT 'UNKNOWN_OUTCOME', r.customer_id, r.invoice_id, r.refund_id, '2027-05-01Z' FROM billing.refund AS r;
SELECT billing_worker.start_renewal_run('test', '2027-06-01T00:00:00Z');

CREATE TEMPORARY TABLE whose AS
SELECT min(c.customer_id) AS a, max(c.customer_id) AS b FROM billing.customer AS c;

CREATE FUNCTION pg_temp.refused_by(p_table text, p_pick text, p_changes jsonb)
RETURNS text
LANGUAGE plpgsql
AS $function$
-- Inserts a changed copy of one row, says which promise refused it ("nothing" if none), and takes it back.
DECLARE
    v_columns text;
    v_constraint text;
    v_sqlstate text;
BEGIN
    SELECT string_agg(format('%I', a.attname), ', ' ORDER BY a.attnum)
    INTO v_columns
    FROM pg_attribute AS a
    WHERE a.attrelid = ('billing.' || p_table)::regclass AND a.attnum > 0 AND NOT a.attisdropped AND a.attgenerated = ''
        AND a.attidentity = '';
    BEGIN
        EXECUTE format(
            'INSERT INTO billing.%1$I (%2$s) SELECT %3$s FROM (
                SELECT (jsonb_populate_record(NULL::billing.%1$I, to_jsonb(t) || $1)).* FROM billing.%1$I AS t WHERE %4$s LIMIT 1
            ) AS r',
            p_table, v_columns, v_columns, p_pick
        ) USING p_changes;
        IF NOT EXISTS (SELECT FROM pg_stat_xact_user_tables AS s WHERE s.relid = ('billing.' || p_table)::regclass AND s.n_tup_ins > 0) THEN
            RETURN 'no row to copy';
        END IF;
        RAISE EXCEPTION USING ERRCODE = 'TT000', MESSAGE = 'nothing';
    EXCEPTION WHEN OTHERS THEN
        GET STACKED DIAGNOSTICS v_constraint = CONSTRAINT_NAME, v_sqlstate = RETURNED_SQLSTATE;
        RETURN CASE WHEN v_sqlstate = 'TT000' THEN 'nothing' ELSE coalesce(nullif(v_constraint, ''), v_sqlstate || ' ' || sqlerrm) END;
    END;
END;
$function$;

-- What makes a copy a good row of its own.
CREATE TEMPORARY TABLE fresh (table_name text, pick text, changes jsonb);
INSERT INTO fresh VALUES
('customer', 'true', '{"customer_id": 9984, "external_ref": "fresh"}'),
('customer_contact', 'true', jsonb_build_object('customer_id', (SELECT w.a FROM whose AS w))),
('resource', 'true', '{"resource_id": 9984, "external_ref": "fresh"}'),
('gateway_account', 'true', '{"code": "fresh"}'),
('gateway_rate', 'true', '{"operation": "refund"}'),
('gateway_minimum', 'true', '{"currency": "EUR"}'),
('payment_method', 'true', '{"payment_method_id": 9984, "token": "tok_fresh", "is_default": false}'),
('decline_code', 'true', '{"code": "fresh"}'),
('plan', 'true', '{"plan_id": 9984, "code": "FRESH"}'),
('price', 'true', '{"price_id": 9984, "effective_from": "2028-01-01T00:00:00Z"}'),
('dunning_policy', 'code = ''store_grace''', '{"dunning_policy_id": 9984, "code": "fresh"}'),
('subscription', 'true', '{"subscription_id": 9984, "status": "CANCELED", "next_renewal_at": null, "ended_at": "2027-05-01T00:00:00Z",
    "end_reason": "requested"}'),
('subscription_period', 'prev_end IS NOT NULL', '{"period_start": "2027-06-01T00:00:00Z", "prev_end": "2027-06-01T00:00:00Z",
    "period_end": "2027-07-01T00:00:00Z"}'),
('trial_taken', 'true', '{"scope": "fresh"}'),
('invoice', 'status = ''OPEN''', '{"invoice_id": 9984, "period_start": "2027-06-01T00:00:00Z", "period_end": "2027-07-01T00:00:00Z"}'),
('invoice_line', 'true', '{"line_no": 2}'),
('credit_balance', 'true', '{"currency": "EUR"}'),
('credit_entry', 'true', '{"entry_seq": 2}'),
('payment_attempt', 'status = ''SUCCEEDED''',
    '{"attempt_id": 9984, "attempt_no": 9, "idempotency_key": "fresh", "gateway_payment_id": "fresh"}'),
('payment_report', 'true', '{"payment_report_id": 9984}'),
('webhook_event', 'true', '{"webhook_event_id": 9984, "event_id": "fresh"}'),
('reconciliation_case', 'attempt_id IS NOT NULL', '{"case_id": 9984, "kind": "DISPUTE"}'),
('refund', 'true', '{"refund_id": 9984, "refund_no": 2, "idempotency_key": "fresh", "gateway_refund_id": "re_2"}'),
('refund_report', 'true', '{"refund_report_id": 9984}'),
('idempotency_key', 'true', '{"idempotency_key": "fresh"}'),
('billing_run', 'true', '{"billing_run_id": 9984}'),
('subscription_change', 'true', '{"change_id": 9984, "status": "VOID", "ended_at": "2027-05-01T00:00:00Z"}'),
('pending_line', 'true', '{"pending_line_id": 9984}');

SELECT is_empty(
    $$SELECT f.table_name, r.by FROM fresh AS f CROSS JOIN LATERAL pg_temp.refused_by(f.table_name, f.pick, f.changes) AS r (by)
      WHERE r.by <> 'nothing'$$,
    'a good copy of each row is accepted'
);

CREATE TEMPORARY TABLE broken (table_name text, promise text, changes jsonb);
INSERT INTO broken VALUES
('customer', 'customer_external_ref_is_unique', '{"external_ref": "a"}'),
('customer', 'customer_status_is_known', '{"status": "DORMANT"}'),
('customer', 'customer_pays_in_a_known_currency', '{"currency": "XXX"}'),
('customer', 'customer_lives_in_a_known_zone', '{"time_zone": "Mars/Olympus"}'),
('customer_contact', 'contact_belongs_to_a_customer', '{"customer_id": 1}'),
('resource', 'resource_external_ref_is_unique_per_customer', '{"external_ref": "default"}'),
('resource', 'resource_belongs_to_a_customer', '{"customer_id": 1}'),
('gateway_account', 'gateway_account_code_is_unique', '{"code": "sim"}'),
('gateway_account', 'gateway_account_code_is_plain', '{"code": "Not plain"}'),
('gateway_account', 'gateway_account_mode_is_known', '{"mode": "MAYBE"}'),
('gateway_account', 'gateway_account_spans_are_positive', '{"key_lifetime": "00:00:00"}'),
('gateway_rate', 'rate_belongs_to_a_gateway_account', '{"gateway_account_id": 999}'),
('gateway_rate', 'rated_operation_is_known', '{"operation": "guess"}'),
('gateway_rate', 'rate_is_positive', '{"per_second": 1}'),
('gateway_minimum', 'minimum_belongs_to_a_gateway_account', '{"gateway_account_id": 999}'),
('gateway_minimum', 'minimum_is_in_a_known_currency', '{"currency": "XXX"}'),
('gateway_minimum', 'minimum_is_positive', '{"amount": 0}'),
('payment_method', 'method_belongs_to_a_customer', '{"customer_id": 1}'),
('payment_method', 'method_is_kept_at_a_gateway_account', '{"gateway_account_id": 999}'),
('payment_method', 'token_is_no_card_number', '{"token": "4111 1111 1111 1111"}'),
('payment_method', 'token_is_short', '{"token": ""}'),
('payment_method', 'last4_is_four_digits', '{"last4": "12345"}'),
('payment_method', 'expiry_is_a_month', '{"exp_month": 13, "exp_year": 2030}'),
('payment_method', 'expiry_is_a_month', '{"exp_month": 12}'),
('payment_method', 'removed_method_is_no_default', '{"removed_at": "2027-05-01T00:00:00Z", "is_default": true}'),
('payment_method', 'blocked_method_says_why', '{"blocked_at": "2027-05-01T00:00:00Z"}'),
('payment_method', 'only_one_default_method', '{"is_default": true}'),
('payment_method', 'token_is_stored_once_per_customer', '{"token": "tok_ok"}'),
('decline_code', 'decline_class_is_known', '{"class": "RUDE"}'),
('plan', 'plan_code_is_unique', '{"code": "BASIC"}'),
('plan', 'plan_code_is_plain', '{"code": "not plain"}'),
('plan', 'trial_scope_is_known', '{"trial_once_per": "DAY"}'),
('price', 'price_version_is_unique', '{"effective_from": "2027-01-01T00:00:00Z"}'),
('price', 'price_belongs_to_a_plan', '{"plan_id": 1}'),
('price', 'price_is_in_a_known_currency', '{"currency": "XXX"}'),
('price', 'price_is_not_negative_nor_absurd', '{"amount": -1}'),
('price', 'price_is_not_negative_nor_absurd', '{"amount": 1000000000000001}'),
('price', 'interval_unit_is_known', '{"interval_unit": "FORTNIGHT"}'),
('price', 'interval_is_at_most_ten_years', '{"interval_count": 121}'),
('price', 'interval_is_at_most_ten_years', '{"interval_count": 0}'),
('price', 'trial_is_at_most_two_years', '{"trial_days": 731}'),
('dunning_policy', 'dunning_policy_code_is_unique', '{"code": "standard"}'),
('dunning_policy', 'dunning_policy_code_is_plain', '{"code": "Not Plain"}'),
('dunning_policy', 'retries_are_counted_from_a_failure', '{"counted_from": "BIRTH"}'),
('dunning_policy', 'ladder_has_at_most_20_rungs', jsonb_build_object('retry_after', array_fill('1 day'::interval, '{21}'))),
('dunning_policy', 'ladder_has_at_most_20_rungs', '{"retry_after": ["1 day", null]}'),
('dunning_policy', 'ladder_is_counted_from_one', '{"retry_after": "[0:1]={24:00,72:00}"}'),
('dunning_policy', 'jitter_is_at_most_a_day', '{"jitter_minutes": 1441}'),
('dunning_policy', 'final_status_is_terminal', '{"final_status": "ACTIVE"}'),
('dunning_policy', 'past_due_renewal_is_known', '{"past_due_renewal": "MAYBE"}'),
('dunning_policy', 'grace_is_positive', '{"grace": "00:00:00"}'),
('subscription', 'subscription_covers_a_resource_of_its_customer', jsonb_build_object(
    'resource_id', (SELECT max(r.resource_id) FROM billing.resource AS r), 'customer_id', (SELECT w.a FROM whose AS w),
        'payment_method_id', NULL)),
('subscription', 'subscription_pins_a_price', '{"price_id": 1}'),
('subscription', 'subscription_follows_a_dunning_policy', '{"dunning_policy_id": 1}'),
('subscription', 'subscription_pays_with_a_method_of_its_customer', '{"payment_method_id": 1}'),
('subscription', 'subscription_lives_in_a_known_zone', '{"time_zone": "Mars/Olympus"}'),
('subscription', 'pending_change_is_to_a_price', '{"pending_price_id": 1, "pending_quantity": 1, "pending_from": "2027-06-01T00:00:00Z"}'),
('subscription', 'pending_change_is_whole', '{"pending_quantity": 1}'),
('subscription', 'migration_is_to_a_price', '{"migration_price_id": 1, "migration_from": "2027-06-01T00:00:00Z"}'),
('subscription', 'migration_is_whole', '{"migration_from": "2027-06-01T00:00:00Z"}'),
('subscription', 'subscription_status_is_known', '{"status": "ASLEEP", "ended_at": null, "end_reason": null}'),
('subscription', 'quantity_is_positive', '{"quantity": 0}'),
('subscription', 'period_kind_is_known', '{"current_period_kind": "GIFT"}'),
('subscription', 'begun_subscription_has_a_period',
    '{"status": "PAST_DUE", "past_due_since": "2027-05-01T00:00:00Z", "ended_at": null, "end_reason": null, "anchor_at": null}'),
('subscription', 'incomplete_subscription_has_no_period', '{"status": "INCOMPLETE", "ended_at": null, "end_reason": null}'),
('subscription', 'current_period_is_not_empty',
    '{"current_period_end": "2027-05-01T00:00:00Z", "current_period_start": "2027-05-01T00:00:00Z"}'),
('subscription', 'only_a_renewable_subscription_is_due', '{"next_renewal_at": "2027-06-01T00:00:00Z"}'),
('subscription', 'renewal_is_due_at_the_end_of_the_period',
    '{"status": "PAST_DUE", "past_due_since": "2027-05-01T00:00:00Z", "ended_at": null, "end_reason": null,
        "next_renewal_at": "2027-05-31T00:00:00Z"}'),
('subscription', 'running_subscription_is_due_or_parked', '{"status": "ACTIVE", "ended_at": null, "end_reason": null}'),
('subscription', 'ended_subscription_says_when_and_why', '{"end_reason": null}'),
('subscription', 'past_due_subscription_says_since_when', '{"past_due_since": "2027-05-01T00:00:00Z"}'),
('subscription', 'only_past_due_access_is_limited', '{"access_until": "2027-05-01T00:00:00Z"}'),
('subscription', 'parked_subscription_says_why', '{"parked_at": "2027-05-01T00:00:00Z"}'),
('subscription', 'term_is_for_those_that_do_not_renew', '{"auto_renew": false}'),
('subscription', 'term_is_positive', '{"auto_renew": false, "term_periods": 0}'),
('subscription', 'anchor_day_is_a_day_of_the_month', '{"anchor_day": 32}'),
('subscription', 'only_an_active_subscription_is_to_pause', '{"pause_at_period_end": true}'),
('subscription', 'paused_subscription_keeps_what_is_left',
    '{"status": "PAST_DUE", "past_due_since": "2027-05-01T00:00:00Z", "ended_at": null, "end_reason": null, "paused_seconds_left": 0}'),
('subscription', 'time_left_names_its_invoice', '{"paused_seconds_left": 1}'),
('subscription', 'only_one_live_subscription_per_resource',
    '{"status": "PAST_DUE", "past_due_since": "2027-05-01T00:00:00Z", "ended_at": null, "end_reason": null}'),
('subscription_period', 'period_is_not_empty', '{"period_end": "2027-06-01T00:00:00Z"}'),
('subscription_period', 'period_starts_where_the_last_ended', '{"prev_end": "2027-05-01T00:00:00Z"}'),
('subscription_period', 'period_of_the_timeline_is_of_a_known_kind', '{"kind": "GIFT", "invoice_id": null}'),
('subscription_period', 'billed_period_names_its_invoice', '{"invoice_id": null}'),
('subscription_period', 'period_chain', '{"period_start": "2027-06-02T00:00:00Z", "prev_end": "2027-06-02T00:00:00Z"}'),
('subscription_period', 'period_chain', '{"period_start": "2027-05-15T00:00:00Z", "prev_end": "2027-05-15T00:00:00Z"}'),
('subscription_period', 'subscription_period_pkey', '{"period_start": "2027-05-01T00:00:00Z", "prev_end": "2027-05-01T00:00:00Z"}'),
('subscription_period', 'period_end_is_unique',
    '{"period_start": "2027-05-15T00:00:00Z", "prev_end": "2027-05-15T00:00:00Z", "period_end": "2027-06-01T00:00:00Z"}'),
('subscription_period', 'only_one_first_period', '{"prev_end": null}'),
('subscription_period', 'first_period_of_own_subscription', '{"subscription_id": 9984, "prev_end": null}'),
('subscription_period', 'first_period_of_own_subscription', jsonb_build_object(
    'prev_end', NULL, 'customer_id', (SELECT w.a FROM whose AS w), 'subscription_id',
        (SELECT max(s.subscription_id) FROM billing.subscription AS s))),
('trial_taken', 'trial_is_taken_once', '{"scope": "customer"}'),
('trial_taken', 'trial_was_of_a_subscription', '{"subscription_id": 1}'),
('invoice', 'invoice_is_of_a_subscription_of_its_customer', jsonb_build_object(
    'customer_id', (SELECT w.a FROM whose AS w), 'subscription_id', (SELECT max(s.subscription_id) FROM billing.subscription AS s))),
('invoice', 'invoice_belongs_to_a_customer',
    jsonb_build_object('customer_id', 1, 'kind', 'MANUAL', 'subscription_id', NULL, 'resource_id', NULL, 'opens_period', false,
        'drives_status', false, 'dunning_policy_id', (SELECT min(d.dunning_policy_id) FROM billing.dunning_policy AS d))),
('invoice', 'manual_invoice_follows_a_dunning_policy', '{"kind": "MANUAL", "subscription_id": null, "resource_id": null,
    "opens_period": false, "drives_status": false, "dunning_policy_id": 1}'),
('invoice', 'only_a_manual_invoice_has_its_own_policy',
    '{"kind": "MANUAL", "subscription_id": null, "resource_id": null, "opens_period": false, "drives_status": false}'),
('invoice', 'only_a_void_invoice_is_forgiven', '{"forgiven_by": "somebody"}'),
('invoice', 'no_more_is_refunded_than_was_paid', '{"amount_paid": 10, "amount_refunded": 11}'),
('invoice', 'no_more_is_refunded_than_was_paid', '{"amount_refunded": -1}'),
('invoice', 'invoice_is_paid_with_a_method_of_its_customer', '{"payment_method_id": 1}'),
('invoice', 'invoice_is_of_a_change_of_its_customer', '{"change_id": 1}'),
('invoice', 'change_invoice_names_its_change', '{"kind": "CHANGE"}'),
('invoice', 'invoice_kind_is_known', '{"kind": "GIFT"}'),
('invoice', 'invoice_status_is_known', '{"status": "LOST", "next_attempt_at": null}'),
('invoice', 'lane_is_known', '{"lane": "FAST"}'),
('invoice', 'only_a_manual_invoice_is_without_subscription', '{"subscription_id": null, "resource_id": null}'),
('invoice', 'invoice_that_opens_a_period_names_it', '{"period_end": null}'),
('invoice', 'manual_invoice_never_moves_the_subscription',
    '{"kind": "MANUAL", "subscription_id": null, "resource_id": null, "opens_period": false, "drives_status": true}'),
('invoice', 'invoiced_period_is_not_empty', '{"period_end": "2027-06-01T00:00:00Z"}'),
('invoice', 'invoice_amounts_are_not_negative', '{"credit_applied": -1}'),
('invoice', 'invoice_amounts_are_not_negative', '{"amount_paid": -1}'),
('invoice', 'invoice_amounts_are_not_negative', '{"carried": -1}'),
('invoice', 'invoice_amounts_are_not_negative', '{"total": -1, "credit_applied": -1}'),
('invoice', 'invoice_total_is_sum_of_parts', '{"amount_paid": 3001}'),
('invoice', 'paid_invoice_owes_nothing', '{"status": "PAID", "paid_at": "2027-06-01T00:00:00Z", "next_attempt_at": null}'),
('invoice', 'invoice_status_has_its_instant', '{"status": "VOID", "next_attempt_at": null}'),
('invoice', 'only_an_open_invoice_or_a_debt_is_attempted',
    '{"status": "VOID", "voided_at": "2027-06-01T00:00:00Z", "next_attempt_at": "2027-06-01T00:00:00Z"}'),
('invoice', 'failures_have_instants', '{"failure_count": 1}'),
('invoice', 'dunning_of_an_open_invoice_ends',
    '{"status": "VOID", "voided_at": "2027-06-01T00:00:00Z", "next_attempt_at": null, "dunning_ends_at": "2027-06-01T00:00:00Z"}'),
('invoice', 'one_period_is_billed_once', '{"period_start": "2027-05-01T00:00:00Z"}'),
('invoice', 'one_period_is_billed_once', '{"period_start": "2027-05-01T00:00:00Z", "kind": "INITIAL"}'),
('invoice_line', 'line_belongs_to_an_invoice', '{"invoice_id": 1}'),
('invoice_line', 'line_kind_is_known', '{"kind": "GIFT"}'),
('invoice_line', 'proration_says_how_it_was_computed', '{"kind": "PRORATION"}'),
('invoice_line', 'proration_says_how_it_was_computed', '{"seconds_billed": 11, "seconds_total": 10}'),
('invoice_line', 'only_a_credit_is_limited', '{"at_most": 1}'),
('invoice_line', 'carried_line_says_from_where', '{"carried_from_invoice_id": 64}'),
('credit_balance', 'credit_belongs_to_a_customer', '{"customer_id": 1}'),
('credit_balance', 'credit_is_in_a_known_currency', '{"currency": "XXX"}'),
('credit_balance', 'credit_is_never_overdrawn', '{"balance": -1}'),
('credit_entry', 'entry_belongs_to_a_balance', '{"currency": "EUR"}'),
('credit_entry', 'entry_is_for_an_invoice_of_its_customer', '{"invoice_id": 1}'),
('credit_entry', 'credit_entry_kind_is_known', '{"kind": "FOUND"}'),
('credit_entry', 'drawing_is_negative_all_else_positive', '{"kind": "DRAWN"}'),
('credit_entry', 'drawing_is_negative_all_else_positive', '{"amount": -1}'),
('credit_entry', 'balance_after_is_never_negative', '{"balance_after": -1}'),
('credit_entry', 'credit_entry_pkey', '{"entry_seq": 1}'),
('payment_attempt', 'attempt_collects_an_invoice_of_its_customer', jsonb_build_object(
    'customer_id', (SELECT w.a FROM whose AS w), 'invoice_id', (SELECT max(i.invoice_id) FROM billing.invoice AS i),
    'payment_method_id', NULL, 'payment_method_token', NULL, 'gateway_account_id', NULL)),
('payment_attempt', 'attempt_uses_a_method_of_its_customer', '{"payment_method_id": 1}'),
('payment_attempt', 'attempt_number_is_unique_per_invoice', '{"attempt_no": 1}'),
('payment_attempt', 'gateway_key_is_used_once',
    jsonb_build_object('idempotency_key', (SELECT min(a.idempotency_key) FROM billing.payment_attempt AS a))),
('payment_attempt', 'attempt_status_is_known', '{"status": "LOST", "ended_at": null}'),
('payment_attempt', 'attempt_amount_is_positive', '{"amount": 0}'),
('payment_attempt', 'attempt_has_a_method_unless_there_is_none', '{"payment_method_token": null}'),
('payment_attempt', 'only_an_ended_attempt_has_an_end', '{"ended_at": null}'),
('payment_attempt', 'declined_attempt_says_why', '{"status": "DECLINED"}'),
('payment_attempt', 'attempt_decline_class_is_known', '{"status": "DECLINED", "decline_code": "x", "decline_class": "RUDE"}'),
('payment_attempt', 'action_has_an_expiry', '{"status": "REQUIRES_ACTION", "ended_at": null}'),
('payment_attempt', 'ended_attempt_is_not_looked_up', '{"next_lookup_at": "2027-06-01T00:00:00Z"}'),
('payment_attempt', 'ended_attempt_is_not_looked_up', '{"lease_until": "2027-06-01T00:00:00Z"}'),
('payment_attempt', 'gateway_payment_is_booked_once', jsonb_build_object(
    'gateway_payment_id', (SELECT max(a.gateway_payment_id) FROM billing.payment_attempt AS a))),
('payment_attempt', 'only_a_success_captures_money', '{"captured_amount": null}'),
('payment_attempt', 'only_a_success_captures_money', '{"status": "ABANDONED"}'),
('payment_attempt', 'only_a_success_captures_money', '{"booked_amount": 3001}'),
('refund', 'refund_number_is_unique_per_invoice', '{"refund_no": 1}'),
('refund', 'refund_key_is_used_once', '{"idempotency_key": "refund"}'),
('refund', 'refund_is_of_an_invoice_of_its_customer', '{"invoice_id": 1}'),
('refund', 'refund_gives_back_what_an_attempt_captured', '{"attempt_id": 1}'),
('refund', 'refund_purpose_is_known', '{"purpose": "WHIM"}'),
('refund', 'refund_status_is_known', '{"status": "LOST"}'),
('refund', 'refund_amount_is_positive', '{"amount": 0}'),
('refund', 'only_an_ended_refund_has_an_end', '{"ended_at": "2027-06-01T00:00:00Z"}'),
('refund', 'failed_refund_says_why', '{"status": "FAILED", "ended_at": "2027-06-01T00:00:00Z"}'),
('refund', 'ended_refund_is_not_sent',
    '{"status": "SUCCEEDED", "ended_at": "2027-06-01T00:00:00Z", "next_send_at": "2027-06-01T00:00:00Z"}'),
('refund', 'gateway_refund_is_booked_once', '{"gateway_refund_id": "re_1"}'),
('refund_report', 'report_is_about_a_refund', '{"refund_id": 1}'),
('refund_report', 'refund_report_source_is_known', '{"source": "HEARSAY"}'),
('refund_report', 'refund_report_outcome_is_known', '{"outcome": "MAYBE"}'),
('refund_report', 'refund_report_verdict_is_known', '{"verdict": "MAYBE"}'),
('payment_report', 'report_is_about_an_attempt', '{"attempt_id": 1}'),
('payment_report', 'report_source_is_known', '{"source": "HEARSAY"}'),
('payment_report', 'report_outcome_is_known', '{"outcome": "MAYBE"}'),
('payment_report', 'report_verdict_is_known', '{"verdict": "MAYBE"}'),
('webhook_event', 'webhook_event_is_stored_once', '{"event_id": "evt_1"}'),
('webhook_event', 'webhook_comes_from_a_gateway_account', '{"gateway_account_id": 999}'),
('webhook_event', 'webhook_matched_an_attempt', jsonb_build_object('customer_id', (SELECT w.a FROM whose AS w), 'attempt_id', 1)),
('webhook_event', 'webhook_matched_a_refund', jsonb_build_object('customer_id', (SELECT w.a FROM whose AS w), 'refund_id', 1)),
('webhook_event', 'webhook_status_is_known', '{"status": "LOST"}'),
('webhook_event', 'webhook_event_id_is_short', '{"event_id": ""}'),
('reconciliation_case', 'one_open_case_per_attempt_and_kind', '{"kind": "UNKNOWN_OUTCOME"}'),
('reconciliation_case', 'case_is_about_an_attempt_of_its_customer', '{"attempt_id": 1}'),
('reconciliation_case', 'case_is_about_an_invoice_of_its_customer', '{"invoice_id": 1}'),
('reconciliation_case', 'case_is_about_a_refund_of_its_customer', '{"refund_id": 1}'),
('reconciliation_case', 'one_open_case_per_refund_and_kind', jsonb_build_object(
    'attempt_id', NULL, 'kind', 'UNKNOWN_OUTCOME', 'customer_id', (SELECT r.customer_id FROM billing.refund AS r),
    'invoice_id', NULL, 'refund_id', (SELECT r.refund_id FROM billing.refund AS r))),
('reconciliation_case', 'case_is_about_a_stored_webhook', '{"webhook_event_id": 1}'),
('reconciliation_case', 'case_kind_is_known', '{"kind": "GOSSIP"}'),
('reconciliation_case', 'resolved_case_says_by_whom_and_how', '{"resolved_at": "2027-06-01T00:00:00Z"}'),
('idempotency_key', 'idempotency_key_is_short', '{"idempotency_key": ""}'),
('billing_run', 'billing_run_status_is_known', '{"status": "LOST"}'),
('billing_run', 'ended_run_has_an_end', '{"status": "DONE"}'),
('subscription_change', 'change_is_of_a_subscription_of_its_customer', '{"subscription_id": 1}'),
('subscription_change', 'change_is_from_a_price', '{"from_price_id": 1}'),
('subscription_change', 'change_is_to_a_price', '{"to_price_id": 1}'),
('subscription_change', 'change_status_is_known', '{"status": "LOST"}'),
('subscription_change', 'change_timing_is_known', '{"timing": "SOMETIME"}'),
('subscription_change', 'change_behavior_is_known', '{"payment_behavior": "PAY_NEVER"}'),
('subscription_change', 'only_an_ended_change_has_an_end', '{"ended_at": null}'),
('subscription_change', 'only_one_change_waits_for_payment', '{"status": "PENDING", "ended_at": null}'),
('pending_line', 'pending_line_is_of_a_subscription_of_its_customer', '{"subscription_id": 1}'),
('pending_line', 'pending_line_is_about_a_period_of_its_customer', '{"base_invoice_id": 1}'),
('pending_line', 'carried_pending_line_says_from_where', '{"carried_from_invoice_id": null}'),
('pending_line', 'pending_line_kind_is_known', '{"kind": "GIFT", "carried_from_invoice_id": null}'),
('pending_line', 'pending_line_goes_one_way', '{"billed_on_invoice_id": 1, "dropped_at": "2027-06-01T00:00:00Z"}');
-- A fingerprint and a change that there are none of yet.
INSERT INTO broken
SELECT 'payment_method', 'fingerprint_is_stored_once_per_customer', '{"fingerprint": "f1"}'::jsonb;
UPDATE billing.payment_method AS m SET fingerprint = 'f1';
UPDATE billing.invoice AS i SET change_id = c.change_id FROM billing.subscription_change AS c
WHERE c.customer_id = i.customer_id AND i.status = 'OPEN';
UPDATE fresh SET changes = changes || '{"fingerprint": null}' WHERE table_name = 'payment_method';
UPDATE fresh SET changes = changes || '{"change_id": null}' WHERE table_name = 'invoice';
INSERT INTO broken
SELECT 'invoice', 'one_change_is_billed_once', jsonb_build_object('change_id', (
    SELECT i.change_id FROM billing.invoice AS i WHERE i.status = 'OPEN' ORDER BY i.ctid LIMIT 1));

SELECT is_empty(
    $$SELECT b.table_name, b.promise, b.changes, r.by
      FROM broken AS b
      INNER JOIN fresh AS f USING (table_name)
      CROSS JOIN LATERAL pg_temp.refused_by(b.table_name, f.pick, f.changes || b.changes) AS r (by)
      WHERE r.by <> b.promise$$,
    'each broken copy is refused by the promise that it breaks'
);

-- An attempt that is open; the copied one has ended.
SELECT is(
    pg_temp.refused_by('payment_attempt', 'status = ''UNKNOWN''', '{"attempt_id": 9984, "attempt_no": 9, "idempotency_key": "fresh"}'),
    'at_most_one_open_attempt_per_invoice', 'an invoice has at most one open attempt'
);

SELECT is_empty(
    $$SELECT k.name
      FROM (
          SELECT c.conname AS name, c.conrelid FROM pg_constraint AS c WHERE c.contype IN ('c', 'f', 'u') AND c.conparentid = 0
          UNION
          SELECT x.indexrelid::regclass::text, x.indrelid FROM pg_index AS x WHERE x.indisunique AND x.indpred IS NOT NULL
      ) AS k
      INNER JOIN fresh AS f ON ('billing.' || f.table_name)::regclass = k.conrelid
      WHERE replace(k.name, 'billing.', '') NOT IN (SELECT b.promise FROM broken AS b)
        AND replace(k.name, 'billing.', '') <> 'at_most_one_open_attempt_per_invoice'$$,
    'no promise of these tables was left out'
);

SELECT * FROM finish();
ROLLBACK;
