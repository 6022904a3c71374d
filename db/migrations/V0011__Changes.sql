-- Changes of plan and quantity, pauses, and what is carried to the next invoice.

CREATE SEQUENCE billing.change_id_seq INCREMENT BY 64 MINVALUE 0 START WITH 64;
CREATE SEQUENCE billing.pending_line_id_seq INCREMENT BY 64 MINVALUE 0 START WITH 64;

ALTER TABLE billing.subscription
ADD COLUMN pending_price_id bigint,
ADD COLUMN pending_quantity integer,
ADD COLUMN pending_from timestamptz,
ADD COLUMN pause_at_period_end boolean NOT NULL DEFAULT false,
ADD COLUMN paused_seconds_left bigint,
ADD COLUMN paused_seconds_total bigint,
ADD COLUMN paused_invoice_id bigint,
ADD CONSTRAINT pending_change_is_to_a_price FOREIGN KEY (pending_price_id) REFERENCES billing.price (price_id),
ADD CONSTRAINT pending_change_is_whole CHECK (
    (pending_price_id IS NULL) = (pending_quantity IS NULL)
    AND (pending_from IS NULL OR pending_price_id IS NOT NULL)
    AND (pending_quantity IS NULL OR pending_quantity BETWEEN 1 AND 1000000)
),
ADD CONSTRAINT only_an_active_subscription_is_to_pause CHECK (
    NOT pause_at_period_end OR status IN ('ACTIVE', 'PAST_DUE')
),
ADD CONSTRAINT paused_subscription_keeps_what_is_left CHECK (
    (status = 'PAUSED') = (paused_seconds_left IS NOT NULL) OR status IN ('CANCELED', 'EXPIRED')
),
ADD CONSTRAINT time_left_names_its_invoice CHECK (
    (paused_seconds_left > 0) IS NOT TRUE OR (paused_invoice_id IS NOT NULL AND paused_seconds_total > 0)
);

COMMENT ON COLUMN billing.subscription.pending_price_id IS
'Price that takes effect at the next boundary (on or after pending_from); NULL = none.';
COMMENT ON COLUMN billing.subscription.pending_quantity IS 'Quantity that takes effect with pending_price_id.';
COMMENT ON COLUMN billing.subscription.pending_from IS
'Earliest boundary at which the pending change takes effect; NULL = the next one.';
COMMENT ON COLUMN billing.subscription.pause_at_period_end IS 'True: it pauses at current_period_end instead of renewing.';
COMMENT ON COLUMN billing.subscription.paused_seconds_left IS
'Seconds of the paid period that were left when it paused, used up after it resumes.';
COMMENT ON COLUMN billing.subscription.paused_seconds_total IS
'Length in seconds of that period as it was priced, for prorating what is left.';
COMMENT ON COLUMN billing.subscription.paused_invoice_id IS 'Invoice that covers the time that is left.';

CREATE TABLE billing.subscription_change (
    customer_id bigint NOT NULL,
    change_id bigint NOT NULL DEFAULT nextval('billing.change_id_seq'),
    subscription_id bigint NOT NULL,
    status text NOT NULL,
    timing text NOT NULL,
    payment_behavior text NOT NULL,
    from_price_id bigint NOT NULL,
    from_quantity integer NOT NULL,
    to_price_id bigint NOT NULL,
    to_quantity integer NOT NULL,
    opens_period boolean NOT NULL,
    base_invoice_id bigint,
    effective_at timestamptz NOT NULL,
    created_at timestamptz NOT NULL,
    ended_at timestamptz,
    CONSTRAINT subscription_change_pkey PRIMARY KEY (customer_id, change_id),
    CONSTRAINT change_is_of_a_subscription_of_its_customer FOREIGN KEY (customer_id, subscription_id)
    REFERENCES billing.subscription (customer_id, subscription_id),
    CONSTRAINT change_is_from_a_price FOREIGN KEY (from_price_id) REFERENCES billing.price (price_id),
    CONSTRAINT change_is_to_a_price FOREIGN KEY (to_price_id) REFERENCES billing.price (price_id),
    CONSTRAINT change_status_is_known CHECK (status IN ('PENDING', 'APPLIED', 'VOID')),
    CONSTRAINT change_timing_is_known CHECK (timing IN ('IMMEDIATE', 'NEXT_INVOICE', 'AT_PERIOD_END')),
    CONSTRAINT change_behavior_is_known CHECK (payment_behavior IN ('PAY_FIRST', 'GRANT_FIRST')),
    CONSTRAINT only_an_ended_change_has_an_end CHECK ((status = 'PENDING') = (ended_at IS NULL))
);
CREATE UNIQUE INDEX only_one_change_waits_for_payment ON billing.subscription_change (customer_id, subscription_id)
WHERE status = 'PENDING';
CREATE INDEX subscription_change_by_base ON billing.subscription_change (customer_id, base_invoice_id);
CREATE INDEX subscription_change_by_subscription ON billing.subscription_change (customer_id, subscription_id);

COMMENT ON TABLE billing.subscription_change IS
'Changes of plan or quantity within a period. PENDING until their invoice is paid where payment comes first.';
COMMENT ON COLUMN billing.subscription_change.customer_id IS 'Customer.';
COMMENT ON COLUMN billing.subscription_change.change_id IS 'Change.';
COMMENT ON COLUMN billing.subscription_change.subscription_id IS 'Subscription.';
COMMENT ON COLUMN billing.subscription_change.status IS 'PENDING, APPLIED, or VOID (declined, withdrawn, or overtaken by a boundary).';
COMMENT ON COLUMN billing.subscription_change.timing IS 'IMMEDIATE or NEXT_INVOICE.';
COMMENT ON COLUMN billing.subscription_change.payment_behavior IS 'PAY_FIRST or GRANT_FIRST.';
COMMENT ON COLUMN billing.subscription_change.from_price_id IS 'Price before.';
COMMENT ON COLUMN billing.subscription_change.from_quantity IS 'Quantity before.';
COMMENT ON COLUMN billing.subscription_change.to_price_id IS 'Price after.';
COMMENT ON COLUMN billing.subscription_change.to_quantity IS 'Quantity after.';
COMMENT ON COLUMN billing.subscription_change.opens_period IS 'True where the interval changes: the old period ends, a new one begins.';
COMMENT ON COLUMN billing.subscription_change.base_invoice_id IS 'Invoice of the period that it changes; NULL in a trial.';
COMMENT ON COLUMN billing.subscription_change.effective_at IS 'Instant from which old and new price are prorated.';
COMMENT ON COLUMN billing.subscription_change.created_at IS 'Business time of the call.';
COMMENT ON COLUMN billing.subscription_change.ended_at IS 'Business time at which it took effect or became void.';

ALTER TABLE billing.invoice
ADD COLUMN change_id bigint,
ADD COLUMN base_invoice_id bigint,
ADD CONSTRAINT invoice_is_of_a_change_of_its_customer FOREIGN KEY (customer_id, change_id)
REFERENCES billing.subscription_change (customer_id, change_id),
ADD CONSTRAINT change_invoice_names_its_change CHECK (kind <> 'CHANGE' OR change_id IS NOT NULL);
CREATE UNIQUE INDEX one_change_is_billed_once ON billing.invoice (customer_id, change_id) WHERE change_id IS NOT NULL;
CREATE INDEX invoice_by_base ON billing.invoice (customer_id, base_invoice_id) WHERE base_invoice_id IS NOT NULL;

COMMENT ON COLUMN billing.invoice.change_id IS 'Change that a CHANGE invoice bills.';
COMMENT ON COLUMN billing.invoice.base_invoice_id IS
'Invoice of the period that a CHANGE invoice adjusts: what both were paid can be credited.';

CREATE TABLE billing.pending_line (
    customer_id bigint NOT NULL,
    pending_line_id bigint NOT NULL DEFAULT nextval('billing.pending_line_id_seq'),
    subscription_id bigint NOT NULL,
    kind text NOT NULL,
    description text NOT NULL,
    amount bigint NOT NULL,
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
    CONSTRAINT pending_line_pkey PRIMARY KEY (customer_id, pending_line_id),
    CONSTRAINT pending_line_is_of_a_subscription_of_its_customer FOREIGN KEY (customer_id, subscription_id)
    REFERENCES billing.subscription (customer_id, subscription_id),
    CONSTRAINT pending_line_kind_is_known CHECK (kind IN ('PRORATION', 'CARRIED')),
    CONSTRAINT pending_line_goes_one_way CHECK (billed_on_invoice_id IS NULL OR dropped_at IS NULL)
);
CREATE INDEX pending_line_waiting ON billing.pending_line (customer_id, subscription_id)
WHERE billed_on_invoice_id IS NULL AND dropped_at IS NULL;

COMMENT ON TABLE billing.pending_line IS
'Lines that wait for the next renewal: of changes with timing NEXT_INVOICE, and amounts below the minimum of a gateway.';
COMMENT ON COLUMN billing.pending_line.customer_id IS 'Customer.';
COMMENT ON COLUMN billing.pending_line.pending_line_id IS 'Line.';
COMMENT ON COLUMN billing.pending_line.subscription_id IS 'Subscription on whose next invoice it will stand.';
COMMENT ON COLUMN billing.pending_line.kind IS 'PRORATION or CARRIED.';
COMMENT ON COLUMN billing.pending_line.description IS 'Text for people.';
COMMENT ON COLUMN billing.pending_line.amount IS 'Minor units, negative for a credit.';
COMMENT ON COLUMN billing.pending_line.price_id IS 'Price version.';
COMMENT ON COLUMN billing.pending_line.unit_amount IS 'Price per unit in minor units.';
COMMENT ON COLUMN billing.pending_line.quantity IS 'Quantity.';
COMMENT ON COLUMN billing.pending_line.seconds_billed IS 'Numerator of the proration in seconds.';
COMMENT ON COLUMN billing.pending_line.seconds_total IS 'Denominator of the proration in seconds.';
COMMENT ON COLUMN billing.pending_line.period_start IS 'Start of the time paid for.';
COMMENT ON COLUMN billing.pending_line.period_end IS 'End of the time paid for, exclusive.';
COMMENT ON COLUMN billing.pending_line.created_at IS 'Business time at which it arose.';
COMMENT ON COLUMN billing.pending_line.billed_on_invoice_id IS 'Invoice that took it up; NULL while it waits.';
COMMENT ON COLUMN billing.pending_line.dropped_at IS 'When it was dropped because the subscription ended; NULL = not.';

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

INSERT INTO billing.error_code (sqlstate, name, http_status, meaning) VALUES
('SB320', 'invoice_open', 409, 'An invoice of the subscription is open. Settle or void it first, or change at the end of the period.'),
('SB321', 'change_pending', 409, 'A change waits for its payment. Wait for it, or take it back with undo_change.'),
('SB322', 'no_change_pending', 409, 'There is no pending change to take back.'),
('SB323', 'period_not_begun', 409, 'The current period was renewed early and has not begun. Try again once it has.');

CREATE TYPE billing.period_value AS (
    base_invoice_id bigint,
    currency text,
    seconds_left bigint,
    seconds_total bigint,
    unit_amount bigint,
    quantity integer,
    creditable bigint
);
COMMENT ON TYPE billing.period_value IS
'What is left of a billed period: seconds, price per unit in minor units, quantity, and how much may be credited at most.';

CREATE TYPE billing.priced_line AS (
    line_no integer,
    kind text,
    description text,
    amount bigint,
    price_id bigint,
    unit_amount bigint,
    quantity integer,
    seconds_billed bigint,
    seconds_total bigint,
    period_start timestamptz,
    period_end timestamptz
);
COMMENT ON TYPE billing.priced_line IS 'A line before it stands on an invoice, with what its amount was computed from.';

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

CREATE TABLE billing.attempt_cap (
    brand text NOT NULL,
    span interval NOT NULL,
    most integer NOT NULL,
    CONSTRAINT attempt_cap_pkey PRIMARY KEY (brand, span),
    CONSTRAINT cap_is_positive CHECK (most > 0 AND span > '0 seconds')
);
COMMENT ON TABLE billing.attempt_cap IS
'How often card networks let a declined charge be tried again. Filled from db/reference/attempt_cap.sql.';
COMMENT ON COLUMN billing.attempt_cap.brand IS 'Card brand in lower case; "*" for a brand that is not listed or not known.';
COMMENT ON COLUMN billing.attempt_cap.span IS 'Any span of this length.';
COMMENT ON COLUMN billing.attempt_cap.most IS 'Most declined tries of one invoice on one method within it.';

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

CREATE TYPE billing.explained_line AS (
    line_no integer,
    description text,
    amount bigint,
    formula text,
    recomputed bigint
);
COMMENT ON TYPE billing.explained_line IS
'A line of an invoice with the formula that gives its amount and the result of computing it again; both in minor units.';
