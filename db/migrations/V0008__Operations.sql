-- Callers' idempotency, renewal runs, switches, and the composite types that the steps pass to one another.

CREATE SEQUENCE billing.billing_run_id_seq INCREMENT BY 64 MINVALUE 0 START WITH 64;

CREATE TABLE billing.idempotency_key (
    customer_id bigint NOT NULL,
    operation text NOT NULL,
    idempotency_key text NOT NULL,
    request_hash text NOT NULL,
    response jsonb,
    created_at timestamptz NOT NULL,
    keep_for_ever boolean NOT NULL DEFAULT false,
    CONSTRAINT idempotency_key_pkey PRIMARY KEY (customer_id, operation, idempotency_key),
    CONSTRAINT idempotency_key_is_short CHECK (length(idempotency_key) BETWEEN 1 AND 255)
);
CREATE INDEX idempotency_key_by_age ON billing.idempotency_key (created_at) WHERE NOT keep_for_ever;

COMMENT ON TABLE billing.idempotency_key IS
'Keys of callers with the stored answer, committed together with the effect.';
COMMENT ON COLUMN billing.idempotency_key.customer_id IS 'Customer; 0 for an operation without one.';
COMMENT ON COLUMN billing.idempotency_key.operation IS 'Name of the function.';
COMMENT ON COLUMN billing.idempotency_key.idempotency_key IS 'Key sent by the caller.';
COMMENT ON COLUMN billing.idempotency_key.request_hash IS
'Hash of the arguments without key, p_as_of and p_expected_version.';
COMMENT ON COLUMN billing.idempotency_key.response IS 'The row that was returned; NULL while the first call runs.';
COMMENT ON COLUMN billing.idempotency_key.created_at IS 'Business time of the first call.';
COMMENT ON COLUMN billing.idempotency_key.keep_for_ever IS
'True for operations that move money by themselves; the others are dropped after 30 days.';

CREATE TABLE billing.billing_run (
    billing_run_id bigint NOT NULL DEFAULT nextval('billing.billing_run_id_seq'),
    status text NOT NULL DEFAULT 'RUNNING',
    as_of timestamptz NOT NULL,
    worker text NOT NULL,
    due_at_start bigint NOT NULL,
    renewed bigint NOT NULL DEFAULT 0,
    ended bigint NOT NULL DEFAULT 0,
    parked bigint NOT NULL DEFAULT 0,
    limit_reached bigint NOT NULL DEFAULT 0,
    started_wall_at timestamptz NOT NULL DEFAULT clock_timestamp(),
    last_batch_wall_at timestamptz NOT NULL DEFAULT clock_timestamp(),
    ended_wall_at timestamptz,
    CONSTRAINT billing_run_pkey PRIMARY KEY (billing_run_id),
    CONSTRAINT billing_run_status_is_known CHECK (status IN ('RUNNING', 'DONE', 'STOPPED')),
    CONSTRAINT ended_run_has_an_end CHECK ((status = 'RUNNING') = (ended_wall_at IS NULL))
);
CREATE INDEX billing_run_running ON billing.billing_run (started_wall_at) WHERE status = 'RUNNING';

COMMENT ON TABLE billing.billing_run IS
'One renewal run. Updated by every batch in the transaction of the batch, so that it is visible while it runs.';
COMMENT ON COLUMN billing.billing_run.billing_run_id IS 'Run.';
COMMENT ON COLUMN billing.billing_run.status IS 'RUNNING, DONE, or STOPPED because too many renewals were parked.';
COMMENT ON COLUMN billing.billing_run.as_of IS 'Business time of its start.';
COMMENT ON COLUMN billing.billing_run.worker IS 'Who runs it.';
COMMENT ON COLUMN billing.billing_run.due_at_start IS 'Subscriptions due when it began, counted up to 100,000.';
COMMENT ON COLUMN billing.billing_run.renewed IS 'Periods opened so far.';
COMMENT ON COLUMN billing.billing_run.ended IS 'Subscriptions cancelled or expired at their boundary so far.';
COMMENT ON COLUMN billing.billing_run.parked IS 'Renewals that failed on their data and were set aside so far.';
COMMENT ON COLUMN billing.billing_run.limit_reached IS
'Subscriptions that reached three periods in this run and wait for the next one.';
COMMENT ON COLUMN billing.billing_run.started_wall_at IS 'Wall clock of its start.';
COMMENT ON COLUMN billing.billing_run.last_batch_wall_at IS 'Wall clock of its last batch.';
COMMENT ON COLUMN billing.billing_run.ended_wall_at IS 'Wall clock of its end.';

CREATE TABLE billing.operator_switch (
    name text NOT NULL,
    thrown_at timestamptz,
    thrown_by text,
    CONSTRAINT operator_switch_pkey PRIMARY KEY (name),
    CONSTRAINT switch_is_known CHECK (name IN ('RENEWING', 'COLLECTING')),
    CONSTRAINT thrown_switch_says_by_whom CHECK ((thrown_at IS NULL) = (thrown_by IS NULL))
);

COMMENT ON TABLE billing.operator_switch IS 'Emergency stops for the whole database.';
COMMENT ON COLUMN billing.operator_switch.name IS 'RENEWING or COLLECTING.';
COMMENT ON COLUMN billing.operator_switch.thrown_at IS 'Since when an operator has stopped it, by the wall clock; NULL = running.';
COMMENT ON COLUMN billing.operator_switch.thrown_by IS 'Who stopped it.';

INSERT INTO billing.operator_switch (name) VALUES ('RENEWING'), ('COLLECTING');

CREATE TYPE billing.subscription_key AS (
    customer_id bigint,
    subscription_id bigint
);
COMMENT ON TYPE billing.subscription_key IS 'Key of a subscription, passed between steps in (customer_id, subscription_id) order.';

CREATE TYPE billing.renewal AS (
    customer_id bigint,
    subscription_id bigint,
    resource_id bigint,
    verdict text,
    from_status text,
    to_status text,
    reason text,
    version bigint,
    event_seq bigint,
    event_count integer,
    invoice_id bigint,
    price_id bigint,
    plan_code text,
    plan_name text,
    quantity integer,
    unit_amount bigint,
    currency text,
    period_amount bigint,
    total bigint,
    overflow bigint,
    credit bigint,
    credit_seq bigint,
    credit_balance bigint,
    payment_method_id bigint,
    gateway_account_id integer,
    anchor_at timestamp without time zone,
    period_no integer,
    full_start timestamptz,
    period_start timestamptz,
    period_end timestamptz,
    next_renewal_at timestamptz,
    from_plan_code text,
    from_quantity integer
);
COMMENT ON TYPE billing.renewal IS
'What renew_due has decided about one subscription. verdict: RENEW, CANCEL, EXPIRE, PAUSE or REST (no new period, dunning goes on). version and event_seq are those before; event_count is how many numbers it takes. full_start before period_start makes a prorated stub. overflow is credit of waiting lines beyond the amount of the period. from_plan_code is set where a pending change takes effect.';

CREATE TYPE billing.renewal_outcome AS (
    renewed integer,
    ended integer,
    parked integer,
    limit_reached integer
);
COMMENT ON TYPE billing.renewal_outcome IS
'What one batch did: periods opened, subscriptions ended at their boundary, renewals parked, subscriptions at the limit of this run.';

CREATE TYPE billing.happening AS (
    customer_id bigint,
    subscription_id bigint,
    event_seq bigint,
    event_type text,
    from_status text,
    to_status text,
    invoice_id bigint,
    attempt_id bigint,
    detail jsonb,
    published boolean
);
COMMENT ON TYPE billing.happening IS
'One numbered event of a subscription on its way into the log and, where published, into the outbox.';

CREATE TYPE billing.charge_request AS (
    customer_id bigint,
    attempt_id bigint,
    claim_epoch integer,
    idempotency_key text,
    amount bigint,
    currency text,
    payment_method_token text,
    description text,
    lane text,
    gateway_account text,
    gateway_payment_id text,
    send_no integer,
    gateway_intent_id text,
    previous_payment_id text,
    awaits_action boolean
);
COMMENT ON TYPE billing.charge_request IS
'What the shell sends to, or asks of, a gateway. amount in minor units; idempotency_key is also our reference there. gateway_intent_id where an earlier try made the intent that this one confirms, with the last payment under it that is known; awaits_action where its customer had to act, so that the intent is known to have been confirmed for it.';

CREATE TYPE billing.attempt_intent AS (
    customer_id bigint,
    attempt_id bigint,
    gateway_intent_id text
);
COMMENT ON TYPE billing.attempt_intent IS 'The intent that an attempt has made at a gateway, for the later tries of its invoice.';

CREATE TYPE billing.charge_result AS (
    customer_id bigint,
    attempt_id bigint,
    claim_epoch integer,
    outcome text,
    gateway_payment_id text,
    amount bigint,
    currency text,
    code text,
    retry_after numeric,
    action_expires_at timestamptz,
    source text
);
COMMENT ON TYPE billing.charge_result IS
'What a gateway said. outcome: SUCCEEDED, DECLINED, REQUIRES_ACTION, PROCESSING, NOT_ATTEMPTED, UNKNOWN, or NOT_FOUND from a look-up. amount in minor units, retry_after in seconds, source SEND, LOOKUP, WEBHOOK or ENGINE. claim_epoch NULL from a webhook.';

CREATE TYPE billing.settlement AS (
    customer_id bigint,
    attempt_id bigint,
    outcome text,
    verdict text,
    attempt_status text,
    invoice_id bigint,
    invoice_status text,
    subscription_status text
);
COMMENT ON TYPE billing.settlement IS
'What settle_attempts made of one result: verdict APPLIED, STALE, DUPLICATE or REJECTED, and the statuses afterwards.';

CREATE TYPE billing.ending AS (
    customer_id bigint,
    subscription_id bigint,
    to_status text,
    reason text,
    ended_at timestamptz
);
COMMENT ON TYPE billing.ending IS
'One subscription that is to end, for billing.end_subscriptions: CANCELED or EXPIRED, why, and at which instant of business time.';

CREATE TYPE billing.judgement AS (
    customer_id bigint,
    attempt_id bigint,
    invoice_id bigint,
    subscription_id bigint,
    source text,
    claim_epoch integer,
    outcome text,
    verdict text,
    attempt_status text,
    gateway_payment_id text,
    amount bigint,
    currency text,
    code text,
    decline_class text,
    action_expires_at timestamptz,
    hold_seconds numeric,
    resend_at timestamptz,
    next_lookup_at timestamptz,
    not_found_count integer,
    not_found_rounds integer,
    captured bigint,
    unexpected bigint,
    case_kind text,
    action_is_news boolean
);
COMMENT ON TYPE billing.judgement IS
'What was decided about one result of a gateway, or about an invoice that needs none (attempt_id NULL). outcome as in charge_result, or PASSED for a rung that may not be tried. captured goes to the invoice, unexpected does not; both in minor units. resend_at is when the same request may be sent again, case_kind what needs a person; action_is_news says that the customer was not told to act before, or until another time.';

CREATE TYPE billing.priced_renewal AS (
    customer_id bigint,
    subscription_id bigint,
    resource_id bigint,
    status text,
    version bigint,
    event_seq bigint,
    verdict text,
    reason text,
    price_id bigint,
    plan_code text,
    plan_name text,
    quantity integer,
    unit_amount bigint,
    currency text,
    anchor_at timestamp without time zone,
    period_no integer,
    full_start timestamptz,
    period_start timestamptz,
    period_end timestamptz,
    period_amount bigint,
    total bigint,
    overflow bigint,
    payment_method_id bigint,
    gateway_account_id integer,
    balance bigint,
    entry_seq bigint,
    from_plan_code text,
    from_quantity integer
);
COMMENT ON TYPE billing.priced_renewal IS
'A claimed subscription with its verdict, its next period and what that costs; amounts in minor units.';

CREATE TYPE billing.closed_invoice AS (
    customer_id bigint,
    subscription_id bigint,
    invoice_id bigint,
    status text
);
COMMENT ON TYPE billing.closed_invoice IS 'An open invoice that became VOID or FAILED because its subscription ended.';

CREATE TYPE billing.invoice_key AS (
    customer_id bigint,
    invoice_id bigint
);
COMMENT ON TYPE billing.invoice_key IS 'Key of an invoice, passed between steps.';

CREATE TYPE billing.status_move AS (
    customer_id bigint,
    subscription_id bigint,
    from_status text,
    to_status text
);
COMMENT ON TYPE billing.status_move IS 'A change of status that payments brought about.';

CREATE TYPE billing.invoice_happening AS (
    customer_id bigint,
    subscription_id bigint,
    place integer,
    event_type text,
    invoice_id bigint,
    attempt_id bigint,
    detail jsonb
);
COMMENT ON TYPE billing.invoice_happening IS
'An event about an invoice before it is numbered; place orders the events of one subscription in one transaction.';

CREATE TYPE billing.triage AS (
    customer_id bigint,
    invoice_id bigint,
    subscription_id bigint,
    way text,
    payment_method_id bigint,
    gateway_account_id integer
);
COMMENT ON TYPE billing.triage IS
'Which way a due invoice goes: SEND, BUSY (its attempt is claimed or in other hands), KEY_LAPSED (only look-ups now), LOOK_UP_DUE (asked before it is sent again), NEVER_SENT (a new try takes its place), CREDIT, NO_METHOD, OTHER_ACCOUNT, CARRY (below the minimum of the gateway), PASS (its method is blocked) or ASK (looked up before it is sent, after a restore).';

CREATE TYPE billing.due_count AS (
    interactive integer,
    backlog integer
);
COMMENT ON TYPE billing.due_count IS 'Due invoices per lane.';

CREATE TYPE billing.webhook_match AS (
    webhook_event_id bigint,
    customer_id bigint,
    attempt_id bigint,
    way text,
    result billing.charge_result
);
COMMENT ON TYPE billing.webhook_match IS
'What a webhook is about. way: SETTLE, LOOKUP, IGNORED, UNMATCHED, REJECTED (another account) or AMBIGUOUS; result where it is to be settled.';

CREATE TYPE billing.next_period AS (
    customer_id bigint,
    subscription_id bigint,
    resource_id bigint,
    status text,
    version bigint,
    event_seq bigint,
    verdict text,
    reason text,
    price_id bigint,
    amount bigint,
    currency text,
    quantity integer,
    changes boolean,
    old_price_id bigint,
    old_quantity integer,
    payment_method_id bigint,
    gateway_account_id integer,
    anchor_at timestamp without time zone,
    period_no integer,
    full_start timestamptz,
    period_start timestamptz,
    period_end timestamptz
);
COMMENT ON TYPE billing.next_period IS
'A claimed subscription with its verdict, the terms from its boundary on (changes: a pending change takes effect) and the period that would follow. full_start before period_start makes a stub.';

CREATE TYPE billing.plan_change AS (
    customer_id bigint,
    subscription_id bigint,
    change_id bigint,
    timing text,
    payment_behavior text,
    from_price_id bigint,
    from_plan_code text,
    from_unit_amount bigint,
    from_quantity integer,
    to_price_id bigint,
    to_plan_code text,
    to_plan_name text,
    to_unit_amount bigint,
    to_quantity integer,
    currency text,
    opens_period boolean,
    base_invoice_id bigint,
    effective_at timestamptz,
    period_end timestamptz,
    seconds_left bigint,
    seconds_total bigint,
    creditable bigint
);
COMMENT ON TYPE billing.plan_change IS
'A change of plan or quantity, all decided: prices in minor units, seconds of the period that are left and its length as priced, and how much may be credited at most.';

CREATE TYPE billing.anchoring AS (
    anchor_at timestamp without time zone,
    anchor_day smallint,
    period_no integer,
    term_end_at timestamptz
);
COMMENT ON TYPE billing.anchoring IS
'What the boundaries of a subscription are counted from: local anchor, day of the month of calendar billing, number of the boundary that ends the current period, end of a fixed term.';

CREATE TYPE billing.period_value AS (
    base_invoice_id bigint,
    currency text,
    seconds_left bigint,
    seconds_total bigint,
    unit_amount bigint,
    quantity integer,
    creditable bigint,
    waiting bigint,
    owed bigint
);
COMMENT ON TYPE billing.period_value IS
'What is left of a billed period: seconds, price per unit in minor units, quantity, what was paid and may be credited, what lines that wait for an invoice would add to that, and what open invoices would still collect.';

CREATE TYPE billing.priced_line AS (
    line_no integer,
    kind text,
    description text,
    amount bigint,
    at_most bigint,
    base_invoice_id bigint,
    price_id bigint,
    unit_amount bigint,
    quantity integer,
    seconds_billed bigint,
    seconds_total bigint,
    period_start timestamptz,
    period_end timestamptz,
    carried_from_invoice_id bigint
);
COMMENT ON TYPE billing.priced_line IS 'A line before it stands on an invoice, with what its amount was computed from.';

CREATE TYPE billing.described_invoice AS (
    invoice_id bigint,
    kind text,
    described jsonb
);
COMMENT ON TYPE billing.described_invoice IS 'An invoice as JSON, as its public row with its lines; amounts in minor units.';

CREATE TYPE billing.price_migration AS (
    currency text,
    subscriptions bigint,
    amount_before numeric,
    amount_after numeric,
    difference numeric
);
COMMENT ON TYPE billing.price_migration IS
'What a price migration means per currency: subscriptions, and sums per period in minor units.';

CREATE TYPE billing.price_migrant AS (
    customer_id bigint,
    subscription_id bigint,
    currency text,
    quantity integer,
    old_amount bigint,
    new_price_id bigint,
    new_amount bigint
);
COMMENT ON TYPE billing.price_migrant IS 'A subscription that a price migration takes along, with both prices in minor units.';

CREATE TYPE billing.timeline_entry AS (
    at timestamptz,
    event_seq bigint,
    what text,
    actor text,
    invoice_id bigint,
    attempt_id bigint,
    amount bigint,
    currency text,
    detail jsonb
);
COMMENT ON TYPE billing.timeline_entry IS
'One entry of the history of a subscription: at in business time, amount in minor units, event_seq where it has a number.';

CREATE TYPE billing.history_entry AS (
    at timestamptz,
    event_seq bigint,
    what text,
    actor text,
    invoice_id bigint,
    attempt_id bigint,
    amount bigint,
    currency text,
    detail jsonb,
    recorded_at timestamptz
);
COMMENT ON TYPE billing.history_entry IS
'An entry of the history of a subscription before it is put in order: one with a number, or one of which only the wall clock is known.';

CREATE TYPE billing.explained_line AS (
    line_no integer,
    description text,
    amount bigint,
    formula text,
    recomputed bigint
);
COMMENT ON TYPE billing.explained_line IS
'A line of an invoice with the formula that gives its amount and the result of computing it again; both in minor units.';
CREATE TYPE billing.violation AS (
    check_name text,
    severity text,
    customer_id bigint,
    object text,
    detail text
);
COMMENT ON TYPE billing.violation IS
'One broken promise. severity: BROKEN (money or service is wrong), STUCK (something waits that nothing will move) or WARNING.';
