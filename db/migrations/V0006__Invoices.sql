-- What is owed, and the credit that pays some of it.

CREATE SEQUENCE billing.invoice_id_seq INCREMENT BY 64 MINVALUE 0 START WITH 64;

CREATE TABLE billing.invoice (
    customer_id bigint NOT NULL,
    invoice_id bigint NOT NULL DEFAULT nextval('billing.invoice_id_seq'),
    subscription_id bigint,
    resource_id bigint,
    kind text NOT NULL,
    status text NOT NULL DEFAULT 'OPEN',
    currency text NOT NULL,
    total bigint NOT NULL,
    credit_applied bigint NOT NULL DEFAULT 0,
    amount_paid bigint NOT NULL DEFAULT 0,
    carried bigint NOT NULL DEFAULT 0,
    amount_due bigint NOT NULL GENERATED ALWAYS AS (total - credit_applied - amount_paid - carried) STORED,
    amount_refunded bigint NOT NULL DEFAULT 0,
    period_start timestamptz,
    period_end timestamptz,
    opens_period boolean NOT NULL,
    drives_status boolean NOT NULL,
    plan_code text,
    price_id bigint,
    unit_amount bigint,
    quantity integer,
    lane text NOT NULL,
    gateway_account_id integer,
    gateway_intent_id text,
    payment_method_id bigint,
    next_attempt_at timestamptz,
    held_until timestamptz,
    attempt_count integer NOT NULL DEFAULT 0,
    failure_count integer NOT NULL DEFAULT 0,
    first_failed_at timestamptz,
    last_failed_at timestamptz,
    dunning_ends_at timestamptz,
    dunning_policy_id bigint,
    look_up_first boolean NOT NULL DEFAULT false,
    opened_seq bigint,
    change_id bigint,
    base_invoice_id bigint,
    issued_at timestamptz NOT NULL,
    paid_at timestamptz,
    failed_at timestamptz,
    voided_at timestamptz,
    forgiven_by text,
    CONSTRAINT invoice_pkey PRIMARY KEY (customer_id, invoice_id),
    CONSTRAINT invoice_belongs_to_a_customer FOREIGN KEY (customer_id) REFERENCES billing.customer (customer_id),
    CONSTRAINT invoice_is_of_a_subscription_of_its_customer FOREIGN KEY (customer_id, subscription_id)
    REFERENCES billing.subscription (customer_id, subscription_id),
    CONSTRAINT invoice_is_paid_with_a_method_of_its_customer FOREIGN KEY (customer_id, payment_method_id)
    REFERENCES billing.payment_method (customer_id, payment_method_id),
    CONSTRAINT manual_invoice_follows_a_dunning_policy FOREIGN KEY (dunning_policy_id)
    REFERENCES billing.dunning_policy (dunning_policy_id),
    CONSTRAINT invoice_kind_is_known CHECK (kind IN ('INITIAL', 'RENEWAL', 'CHANGE', 'MANUAL')),
    CONSTRAINT invoice_status_is_known CHECK (status IN ('DRAFT', 'OPEN', 'PAID', 'FAILED', 'VOID')),
    CONSTRAINT lane_is_known CHECK (lane IN ('INTERACTIVE', 'BACKLOG')),
    CONSTRAINT only_a_manual_invoice_is_without_subscription CHECK (
        (kind = 'MANUAL') = (subscription_id IS NULL) AND (subscription_id IS NULL) = (resource_id IS NULL)
    ),
    CONSTRAINT invoice_that_opens_a_period_names_it CHECK (
        NOT opens_period OR (kind <> 'MANUAL' AND period_start IS NOT NULL AND period_end IS NOT NULL)
    ),
    CONSTRAINT manual_invoice_never_moves_the_subscription CHECK (kind <> 'MANUAL' OR NOT drives_status),
    CONSTRAINT invoiced_period_is_not_empty CHECK (period_end > period_start),
    CONSTRAINT invoice_amounts_are_not_negative CHECK (
        total >= 0 AND credit_applied >= 0 AND amount_paid >= 0 AND carried >= 0
    ),
    CONSTRAINT invoice_total_is_sum_of_parts CHECK (amount_due >= 0),
    CONSTRAINT paid_invoice_owes_nothing CHECK (status <> 'PAID' OR amount_due = 0),
    CONSTRAINT invoice_status_has_its_instant CHECK (
        (status = 'PAID') = (paid_at IS NOT NULL)
        AND (status = 'VOID') = (voided_at IS NOT NULL)
        AND (status <> 'FAILED' OR failed_at IS NOT NULL)
    ),
    CONSTRAINT only_an_open_invoice_or_a_debt_is_attempted CHECK (
        next_attempt_at IS NULL OR status = 'OPEN' OR (status = 'FAILED' AND lane = 'INTERACTIVE')
    ),
    CONSTRAINT no_more_is_refunded_than_was_paid CHECK (amount_refunded BETWEEN 0 AND amount_paid),
    CONSTRAINT only_a_manual_invoice_has_its_own_policy CHECK ((kind = 'MANUAL') = (dunning_policy_id IS NOT NULL)),
    CONSTRAINT only_a_void_invoice_is_forgiven CHECK (forgiven_by IS NULL OR status = 'VOID'),
    CONSTRAINT failures_have_instants CHECK (
        failure_count >= 0 AND (failure_count = 0) = (first_failed_at IS NULL)
        AND (first_failed_at IS NULL) = (last_failed_at IS NULL)
    ),
    CONSTRAINT dunning_of_an_open_invoice_ends CHECK (dunning_ends_at IS NULL OR status = 'OPEN'),
    CONSTRAINT invoice_is_of_a_change_of_its_customer FOREIGN KEY (customer_id, change_id)
    REFERENCES billing.subscription_change (customer_id, change_id),
    CONSTRAINT change_invoice_names_its_change CHECK (kind <> 'CHANGE' OR change_id IS NOT NULL)
);
CREATE INDEX invoice_by_id ON billing.invoice (invoice_id);
CREATE UNIQUE INDEX one_period_is_billed_once ON billing.invoice (customer_id, subscription_id, period_start)
WHERE opens_period AND (status <> 'VOID' OR forgiven_by IS NOT NULL);
CREATE INDEX invoice_due ON billing.invoice (gateway_account_id, lane, next_attempt_at)
WHERE status = 'OPEN' AND next_attempt_at IS NOT NULL;
CREATE INDEX invoice_debt_due ON billing.invoice (gateway_account_id, next_attempt_at)
WHERE status = 'FAILED' AND next_attempt_at IS NOT NULL;
CREATE INDEX invoice_open_by_subscription ON billing.invoice (customer_id, subscription_id) WHERE status = 'OPEN';
CREATE UNIQUE INDEX one_change_is_billed_once ON billing.invoice (customer_id, change_id) WHERE change_id IS NOT NULL;
CREATE INDEX invoice_by_base ON billing.invoice (customer_id, base_invoice_id) WHERE base_invoice_id IS NOT NULL;
CREATE INDEX invoice_by_intent ON billing.invoice (gateway_account_id, gateway_intent_id)
WHERE gateway_intent_id IS NOT NULL;
CREATE INDEX invoice_dunning_over ON billing.invoice (dunning_ends_at)
WHERE status = 'OPEN' AND dunning_ends_at IS NOT NULL;

COMMENT ON TABLE billing.invoice IS
'What is owed for a period or a change, with a snapshot of the terms. total = credit_applied + amount_paid + carried + amount_due.';
COMMENT ON COLUMN billing.invoice.customer_id IS 'Customer who owes it.';
COMMENT ON COLUMN billing.invoice.invoice_id IS 'Invoice.';
COMMENT ON COLUMN billing.invoice.subscription_id IS 'Subscription; NULL for a MANUAL invoice.';
COMMENT ON COLUMN billing.invoice.resource_id IS 'Resource of the subscription, repeated so that settling can compare it.';
COMMENT ON COLUMN billing.invoice.kind IS 'INITIAL, RENEWAL, CHANGE or MANUAL.';
COMMENT ON COLUMN billing.invoice.status IS 'DRAFT, OPEN, PAID, FAILED (given up) or VOID.';
COMMENT ON COLUMN billing.invoice.currency IS 'Currency, ISO 4217.';
COMMENT ON COLUMN billing.invoice.total IS 'Sum of the lines in minor units, never negative.';
COMMENT ON COLUMN billing.invoice.credit_applied IS 'Paid from the credit of the customer, in minor units.';
COMMENT ON COLUMN billing.invoice.amount_paid IS 'Paid through a gateway, in minor units.';
COMMENT ON COLUMN billing.invoice.carried IS 'Below the minimum of the gateway and carried to the next invoice, in minor units.';
COMMENT ON COLUMN billing.invoice.amount_due IS 'What remains, in minor units.';
COMMENT ON COLUMN billing.invoice.amount_refunded IS 'Of amount_paid, what has gone back through the gateway, in minor units.';
COMMENT ON COLUMN billing.invoice.period_start IS
'Start of the service period; provisional while the subscription is INCOMPLETE.';
COMMENT ON COLUMN billing.invoice.period_end IS 'End of the service period, exclusive.';
COMMENT ON COLUMN billing.invoice.opens_period IS
'True for INITIAL, RENEWAL and a change of interval: one period is billed by one such invoice.';
COMMENT ON COLUMN billing.invoice.drives_status IS
'True: its decline makes the subscription PAST_DUE and its payment recovers it. False: pay-first and MANUAL invoices.';
COMMENT ON COLUMN billing.invoice.plan_code IS 'Plan at issue.';
COMMENT ON COLUMN billing.invoice.price_id IS 'Price version at issue.';
COMMENT ON COLUMN billing.invoice.unit_amount IS 'Price per unit at issue, in minor units.';
COMMENT ON COLUMN billing.invoice.quantity IS 'Quantity at issue.';
COMMENT ON COLUMN billing.invoice.lane IS 'INTERACTIVE: somebody is waiting. BACKLOG: everything else.';
COMMENT ON COLUMN billing.invoice.gateway_account_id IS
'Gateway account of the payment method; rewritten when the method changes and no attempt is open. NULL = no method.';
COMMENT ON COLUMN billing.invoice.gateway_intent_id IS 'Intent at the gateway that all attempts share, where it has such a thing.';
COMMENT ON COLUMN billing.invoice.payment_method_id IS
'Method chosen for this invoice by retry_invoice; NULL = that of the subscription, else the default.';
COMMENT ON COLUMN billing.invoice.next_attempt_at IS
'Business time from which it may be attempted (or its open attempt sent again); NULL = not now.';
COMMENT ON COLUMN billing.invoice.held_until IS 'Wall clock before which the gateway asked not to be called; NULL = none.';
COMMENT ON COLUMN billing.invoice.attempt_count IS 'Number of attempts, and the number of the last one.';
COMMENT ON COLUMN billing.invoice.failure_count IS 'Steps of the retry ladder taken: declines and rungs that passed untried.';
COMMENT ON COLUMN billing.invoice.first_failed_at IS 'Business time of the first failure.';
COMMENT ON COLUMN billing.invoice.last_failed_at IS 'Business time of the last failure.';
COMMENT ON COLUMN billing.invoice.dunning_ends_at IS
'Retries are spent; the policy ends the subscription at this time. NULL = the ladder goes on.';
COMMENT ON COLUMN billing.invoice.dunning_policy_id IS
'Policy of a MANUAL invoice; NULL = that of the subscription.';
COMMENT ON COLUMN billing.invoice.look_up_first IS
'True after a restore: its next try may have been made by the database that was lost, so it is looked up before it is sent.';
COMMENT ON COLUMN billing.invoice.opened_seq IS
'Event number under which a renewal issued it, kept also where its period is cut away; NULL where the log has the number.';
COMMENT ON COLUMN billing.invoice.change_id IS 'Change that a CHANGE invoice bills.';
COMMENT ON COLUMN billing.invoice.base_invoice_id IS
'Invoice of the period that a CHANGE invoice adjusts: what both were paid can be credited.';
COMMENT ON COLUMN billing.invoice.issued_at IS 'Business time of issue.';
COMMENT ON COLUMN billing.invoice.paid_at IS 'Business time of payment.';
COMMENT ON COLUMN billing.invoice.failed_at IS 'Business time of giving up; kept when it is paid late.';
COMMENT ON COLUMN billing.invoice.voided_at IS 'Business time of voiding.';
COMMENT ON COLUMN billing.invoice.forgiven_by IS
'Who voided it by hand: its period counts as covered and is not billed again. NULL = not.';

CREATE FUNCTION billing.guard_invoice()
RETURNS trigger
LANGUAGE plpgsql
SET search_path = ''
AS $function$
-- Locks:      nothing
-- Writes:     nothing
-- Raises:     SB307 status change not allowed, SB901 issued terms changed
-- Idempotent: yes
BEGIN
    IF (new.customer_id, new.invoice_id, new.kind, new.currency, new.total, new.opens_period, new.drives_status, new.issued_at)
        IS DISTINCT FROM
        (old.customer_id, old.invoice_id, old.kind, old.currency, old.total, old.opens_period, old.drives_status, old.issued_at)
        OR new.subscription_id IS DISTINCT FROM old.subscription_id
    THEN
        RAISE EXCEPTION USING
            ERRCODE = 'SB901',
            MESSAGE = format('terms of invoice %s were to be changed after issue', old.invoice_id);
    END IF;
    IF old.status = 'VOID' OR (old.status = 'FAILED' AND new.status NOT IN ('PAID', 'VOID'))
        OR (old.status = 'PAID' AND (new.status <> 'VOID' OR new.forgiven_by IS NULL OR old.amount_paid + old.carried > 0))
    THEN
        RAISE EXCEPTION USING
            ERRCODE = 'SB307',
            MESSAGE = format('invoice %s cannot go from %s to %s', old.invoice_id, old.status, new.status);
    END IF;
    RETURN new;
END;
$function$;

COMMENT ON FUNCTION billing.guard_invoice IS
'Trigger: issued terms never change; VOID is final, FAILED may only be paid late or forgiven, PAID only forgiven where credit alone paid it.';

CREATE TRIGGER invoice_keeps_its_terms BEFORE UPDATE ON billing.invoice
FOR EACH ROW WHEN (
    old.status IS DISTINCT FROM new.status
    OR old.total <> new.total OR old.currency <> new.currency OR old.kind <> new.kind
    OR old.subscription_id IS DISTINCT FROM new.subscription_id OR old.issued_at <> new.issued_at
    OR old.opens_period <> new.opens_period OR old.drives_status <> new.drives_status
)
EXECUTE FUNCTION billing.guard_invoice();
CREATE TRIGGER settled_invoice_keeps_its_amounts BEFORE UPDATE ON billing.invoice
FOR EACH ROW WHEN (
    old.status IN ('PAID', 'VOID') AND new.status = old.status
    AND (old.amount_paid <> new.amount_paid OR old.credit_applied <> new.credit_applied OR old.carried <> new.carried)
)
EXECUTE FUNCTION billing.refuse_change();
CREATE TRIGGER invoice_is_never_deleted BEFORE DELETE ON billing.invoice
FOR EACH ROW EXECUTE FUNCTION billing.refuse_change();
CREATE TRIGGER invoice_is_never_truncated BEFORE TRUNCATE ON billing.invoice
FOR EACH STATEMENT EXECUTE FUNCTION billing.refuse_change();

CREATE TABLE billing.invoice_line (
    customer_id bigint NOT NULL,
    invoice_id bigint NOT NULL,
    line_no integer NOT NULL,
    kind text NOT NULL,
    description text NOT NULL,
    amount bigint NOT NULL,
    at_most bigint,
    base_invoice_id bigint,
    price_id bigint,
    unit_amount bigint,
    quantity integer,
    seconds_billed bigint,
    seconds_total bigint,
    period_start timestamptz,
    period_end timestamptz,
    carried_from_invoice_id bigint,
    CONSTRAINT invoice_line_pkey PRIMARY KEY (customer_id, invoice_id, line_no),
    CONSTRAINT line_belongs_to_an_invoice FOREIGN KEY (customer_id, invoice_id)
    REFERENCES billing.invoice (customer_id, invoice_id),
    CONSTRAINT line_kind_is_known CHECK (kind IN ('PERIOD', 'PRORATION', 'CREDIT', 'CARRIED', 'MANUAL')),
    CONSTRAINT proration_says_how_it_was_computed CHECK (
        (seconds_billed IS NULL) = (seconds_total IS NULL)
        AND (seconds_total IS NULL OR seconds_billed BETWEEN 0 AND seconds_total)
        AND (kind <> 'PRORATION' OR seconds_total IS NOT NULL)
    ),
    CONSTRAINT only_a_credit_is_limited CHECK (at_most IS NULL OR amount = -at_most),
    CONSTRAINT carried_line_says_from_where CHECK ((kind = 'CARRIED') = (carried_from_invoice_id IS NOT NULL))
);
CREATE INDEX invoice_line_by_base ON billing.invoice_line (customer_id, base_invoice_id) WHERE base_invoice_id IS NOT NULL;

COMMENT ON TABLE billing.invoice_line IS 'Lines of an invoice, each with what its amount was computed from.';
COMMENT ON COLUMN billing.invoice_line.customer_id IS 'Customer.';
COMMENT ON COLUMN billing.invoice_line.invoice_id IS 'Invoice.';
COMMENT ON COLUMN billing.invoice_line.line_no IS 'Number within the invoice, from 1.';
COMMENT ON COLUMN billing.invoice_line.kind IS
'PERIOD (a full period), PRORATION (part of one), CREDIT (balances a negative net), CARRIED (from an earlier invoice) or MANUAL.';
COMMENT ON COLUMN billing.invoice_line.description IS 'Text for people.';
COMMENT ON COLUMN billing.invoice_line.amount IS
'Minor units, negative for a credit: floor(unit_amount x quantity x seconds_billed / seconds_total).';
COMMENT ON COLUMN billing.invoice_line.at_most IS
'Limit of a credit in minor units, where it was less than the formula gives: what had been paid for the period and not given back. NULL = none.';
COMMENT ON COLUMN billing.invoice_line.base_invoice_id IS
'Invoice of the period that the line is about; NULL = the period of its own invoice.';
COMMENT ON COLUMN billing.invoice_line.price_id IS 'Price version.';
COMMENT ON COLUMN billing.invoice_line.unit_amount IS 'Price per unit in minor units.';
COMMENT ON COLUMN billing.invoice_line.quantity IS 'Quantity.';
COMMENT ON COLUMN billing.invoice_line.seconds_billed IS 'Numerator of the proration in seconds; NULL = a full period.';
COMMENT ON COLUMN billing.invoice_line.seconds_total IS 'Denominator: length of the full period as priced, in seconds.';
COMMENT ON COLUMN billing.invoice_line.period_start IS 'Start of the time paid for.';
COMMENT ON COLUMN billing.invoice_line.period_end IS 'End of the time paid for, exclusive.';
COMMENT ON COLUMN billing.invoice_line.carried_from_invoice_id IS
'Of a line that is CARRIED: the invoice on which the amount was below the minimum of the gateway.';

CREATE TRIGGER invoice_line_is_append_only BEFORE UPDATE OR DELETE ON billing.invoice_line
FOR EACH ROW EXECUTE FUNCTION billing.refuse_change();
CREATE TRIGGER invoice_line_is_never_truncated BEFORE TRUNCATE ON billing.invoice_line
FOR EACH STATEMENT EXECUTE FUNCTION billing.refuse_change();

CREATE TABLE billing.credit_balance (
    customer_id bigint NOT NULL,
    currency text NOT NULL,
    balance bigint NOT NULL DEFAULT 0,
    entry_seq bigint NOT NULL DEFAULT 0,
    CONSTRAINT credit_balance_pkey PRIMARY KEY (customer_id, currency),
    CONSTRAINT credit_belongs_to_a_customer FOREIGN KEY (customer_id) REFERENCES billing.customer (customer_id),
    CONSTRAINT credit_is_in_a_known_currency FOREIGN KEY (currency) REFERENCES billing.currency (code),
    CONSTRAINT credit_is_never_overdrawn CHECK (balance >= 0)
);
CREATE INDEX credit_balance_by_currency ON billing.credit_balance (currency);

COMMENT ON TABLE billing.credit_balance IS
'Credit of a customer per currency. Locked before it is read by everything that draws on it, last in the lock order.';
COMMENT ON COLUMN billing.credit_balance.customer_id IS 'Customer.';
COMMENT ON COLUMN billing.credit_balance.currency IS 'Currency, ISO 4217.';
COMMENT ON COLUMN billing.credit_balance.balance IS 'Credit left, in minor units; the sum of the ledger.';
COMMENT ON COLUMN billing.credit_balance.entry_seq IS 'Number of the last ledger entry.';

CREATE TABLE billing.credit_entry (
    customer_id bigint NOT NULL,
    currency text NOT NULL,
    entry_seq bigint NOT NULL,
    kind text NOT NULL,
    amount bigint NOT NULL,
    balance_after bigint NOT NULL,
    invoice_id bigint,
    attempt_id bigint,
    reason text NOT NULL,
    actor text NOT NULL,
    as_of timestamptz NOT NULL,
    recorded_at timestamptz NOT NULL DEFAULT clock_timestamp(),
    CONSTRAINT credit_entry_pkey PRIMARY KEY (customer_id, currency, entry_seq),
    CONSTRAINT entry_belongs_to_a_balance FOREIGN KEY (customer_id, currency)
    REFERENCES billing.credit_balance (customer_id, currency),
    CONSTRAINT entry_is_for_an_invoice_of_its_customer FOREIGN KEY (customer_id, invoice_id)
    REFERENCES billing.invoice (customer_id, invoice_id),
    CONSTRAINT credit_entry_kind_is_known CHECK (
        kind IN ('GRANTED', 'DRAWN', 'RETURNED', 'SURPLUS', 'LATE_PAYMENT', 'UNUSED_TIME')
    ),
    CONSTRAINT drawing_is_negative_all_else_positive CHECK (CASE WHEN kind = 'DRAWN' THEN amount < 0 ELSE amount > 0 END),
    CONSTRAINT balance_after_is_never_negative CHECK (balance_after >= 0)
);
CREATE INDEX credit_entry_by_invoice ON billing.credit_entry (customer_id, invoice_id) WHERE invoice_id IS NOT NULL;

COMMENT ON TABLE billing.credit_entry IS 'Append-only credit ledger.';
COMMENT ON COLUMN billing.credit_entry.customer_id IS 'Customer.';
COMMENT ON COLUMN billing.credit_entry.currency IS 'Currency, ISO 4217.';
COMMENT ON COLUMN billing.credit_entry.entry_seq IS
'Number within the balance; the key refuses two entries computed from the same balance.';
COMMENT ON COLUMN billing.credit_entry.kind IS
'GRANTED, DRAWN (for an invoice), RETURNED (the invoice was voided), SURPLUS, LATE_PAYMENT or UNUSED_TIME.';
COMMENT ON COLUMN billing.credit_entry.amount IS 'Minor units, negative for DRAWN.';
COMMENT ON COLUMN billing.credit_entry.balance_after IS 'Balance after this entry, in minor units.';
COMMENT ON COLUMN billing.credit_entry.invoice_id IS 'Invoice concerned, or NULL.';
COMMENT ON COLUMN billing.credit_entry.attempt_id IS 'Payment attempt concerned, or NULL.';
COMMENT ON COLUMN billing.credit_entry.reason IS 'Why, for people.';
COMMENT ON COLUMN billing.credit_entry.actor IS 'Who: the caller, as set in billing.actor, else the database role.';
COMMENT ON COLUMN billing.credit_entry.as_of IS 'Business time.';
COMMENT ON COLUMN billing.credit_entry.recorded_at IS 'Wall clock.';

CREATE TRIGGER credit_entry_is_append_only BEFORE UPDATE OR DELETE ON billing.credit_entry
FOR EACH ROW EXECUTE FUNCTION billing.refuse_change();
CREATE TRIGGER credit_entry_is_never_truncated BEFORE TRUNCATE ON billing.credit_entry
FOR EACH STATEMENT EXECUTE FUNCTION billing.refuse_change();

CREATE SEQUENCE billing.pending_line_id_seq INCREMENT BY 64 MINVALUE 0 START WITH 64;

CREATE TABLE billing.pending_line (
    customer_id bigint NOT NULL,
    pending_line_id bigint NOT NULL DEFAULT nextval('billing.pending_line_id_seq'),
    subscription_id bigint NOT NULL,
    kind text NOT NULL,
    description text NOT NULL,
    amount bigint NOT NULL,
    at_most bigint,
    base_invoice_id bigint NOT NULL,
    price_id bigint,
    unit_amount bigint,
    quantity integer,
    seconds_billed bigint,
    seconds_total bigint,
    period_start timestamptz,
    period_end timestamptz,
    created_at timestamptz NOT NULL,
    billed_on_invoice_id bigint,
    dropped_at timestamptz,
    carried_from_invoice_id bigint,
    CONSTRAINT pending_line_pkey PRIMARY KEY (customer_id, pending_line_id),
    CONSTRAINT pending_line_is_of_a_subscription_of_its_customer FOREIGN KEY (customer_id, subscription_id)
    REFERENCES billing.subscription (customer_id, subscription_id),
    CONSTRAINT pending_line_is_about_a_period_of_its_customer FOREIGN KEY (customer_id, base_invoice_id)
    REFERENCES billing.invoice (customer_id, invoice_id),
    CONSTRAINT pending_line_kind_is_known CHECK (kind IN ('PRORATION', 'CARRIED')),
    CONSTRAINT pending_line_goes_one_way CHECK (billed_on_invoice_id IS NULL OR dropped_at IS NULL),
    CONSTRAINT carried_pending_line_says_from_where CHECK ((kind = 'CARRIED') = (carried_from_invoice_id IS NOT NULL))
);
CREATE INDEX pending_line_waiting ON billing.pending_line (customer_id, subscription_id)
WHERE billed_on_invoice_id IS NULL AND dropped_at IS NULL;
CREATE INDEX pending_line_by_base ON billing.pending_line (customer_id, base_invoice_id);
CREATE INDEX pending_line_billed ON billing.pending_line (customer_id, billed_on_invoice_id)
WHERE billed_on_invoice_id IS NOT NULL;

COMMENT ON TABLE billing.pending_line IS
'Lines that wait for the next invoice that opens a period: of changes with timing NEXT_INVOICE, and amounts below the minimum of a gateway.';
COMMENT ON COLUMN billing.pending_line.customer_id IS 'Customer.';
COMMENT ON COLUMN billing.pending_line.pending_line_id IS 'Line.';
COMMENT ON COLUMN billing.pending_line.subscription_id IS 'Subscription on whose next invoice it will stand.';
COMMENT ON COLUMN billing.pending_line.kind IS 'PRORATION or CARRIED.';
COMMENT ON COLUMN billing.pending_line.description IS 'Text for people.';
COMMENT ON COLUMN billing.pending_line.amount IS 'Minor units, negative for a credit.';
COMMENT ON COLUMN billing.pending_line.at_most IS 'Limit of a credit, as on an invoice line.';
COMMENT ON COLUMN billing.pending_line.base_invoice_id IS 'Invoice of the period that it is about.';
COMMENT ON COLUMN billing.pending_line.price_id IS 'Price version.';
COMMENT ON COLUMN billing.pending_line.unit_amount IS 'Price per unit in minor units.';
COMMENT ON COLUMN billing.pending_line.quantity IS 'Quantity.';
COMMENT ON COLUMN billing.pending_line.seconds_billed IS 'Numerator of the proration in seconds.';
COMMENT ON COLUMN billing.pending_line.seconds_total IS 'Denominator of the proration in seconds.';
COMMENT ON COLUMN billing.pending_line.period_start IS 'Start of the time paid for.';
COMMENT ON COLUMN billing.pending_line.period_end IS 'End of the time paid for, exclusive.';
COMMENT ON COLUMN billing.pending_line.created_at IS 'Business time at which it arose.';
COMMENT ON COLUMN billing.pending_line.billed_on_invoice_id IS 'Invoice that took it up; NULL while it waits.';
COMMENT ON COLUMN billing.pending_line.dropped_at IS 'When it was dropped because the subscription ended, or because nobody was served in the period that it is of; NULL = not.';
COMMENT ON COLUMN billing.pending_line.carried_from_invoice_id IS 'As on an invoice line.';
