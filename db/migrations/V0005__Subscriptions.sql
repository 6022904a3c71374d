-- The subscription, its service timeline and its log.

CREATE SEQUENCE billing.subscription_id_seq INCREMENT BY 64 MINVALUE 0 START WITH 64;

CREATE TABLE billing.subscription_transition (
    from_status text NOT NULL,
    to_status text NOT NULL,
    meaning text NOT NULL,
    CONSTRAINT subscription_transition_pkey PRIMARY KEY (from_status, to_status)
);

COMMENT ON TABLE billing.subscription_transition IS
'Every change of status that a subscription may make. Anything else raises SB303 and changes nothing.';
COMMENT ON COLUMN billing.subscription_transition.from_status IS 'Status before.';
COMMENT ON COLUMN billing.subscription_transition.to_status IS 'Status after.';
COMMENT ON COLUMN billing.subscription_transition.meaning IS 'What brings it about.';

INSERT INTO billing.subscription_transition (from_status, to_status, meaning) VALUES
('INCOMPLETE', 'ACTIVE', 'the first payment settles'),
('INCOMPLETE', 'EXPIRED', 'checkout restarted with other terms, too old, or its action expired'),
('INCOMPLETE', 'CANCELED', 'cancelled by the customer before the first payment'),
('TRIALING', 'ACTIVE', 'the trial has ended and its first invoice is paid'),
('TRIALING', 'PAST_DUE', 'the first invoice after the trial is declined'),
('TRIALING', 'CANCELED', 'cancelled, or the trial ended without a payment method'),
('TRIALING', 'EXPIRED', 'the fixed term ended'),
('ACTIVE', 'PAST_DUE', 'a driving invoice is declined'),
('ACTIVE', 'PAUSED', 'paused'),
('ACTIVE', 'CANCELED', 'cancelled now, or at the end of the period'),
('ACTIVE', 'EXPIRED', 'the fixed term ended'),
('PAST_DUE', 'ACTIVE', 'no driving invoice is open any more'),
('PAST_DUE', 'CANCELED', 'cancelled, or a ladder ended'),
('PAST_DUE', 'EXPIRED', 'a ladder ended, by policy'),
('PAUSED', 'ACTIVE', 'resumed'),
('PAUSED', 'CANCELED', 'cancelled while paused');

CREATE TABLE billing.subscription (
    customer_id bigint NOT NULL,
    subscription_id bigint NOT NULL DEFAULT nextval('billing.subscription_id_seq'),
    resource_id bigint NOT NULL,
    status text NOT NULL,
    price_id bigint NOT NULL,
    quantity integer NOT NULL DEFAULT 1,
    current_period_kind text,
    current_period_start timestamptz,
    current_period_end timestamptz,
    next_renewal_at timestamptz,
    cancel_at_period_end boolean NOT NULL DEFAULT false,
    auto_renew boolean NOT NULL DEFAULT true,
    term_periods integer,
    term_end_at timestamptz,
    time_zone text NOT NULL,
    anchor_at timestamp without time zone,
    anchor_day smallint,
    period_no integer NOT NULL DEFAULT 0,
    payment_method_id bigint,
    dunning_policy_id bigint NOT NULL,
    past_due_since timestamptz,
    access_until timestamptz,
    ended_at timestamptz,
    end_reason text,
    parked_at timestamptz,
    park_reason text,
    catch_up_run_id bigint,
    catch_up_periods integer NOT NULL DEFAULT 0,
    pending_price_id bigint,
    pending_quantity integer,
    pending_from timestamptz,
    migration_price_id bigint,
    migration_from timestamptz,
    pause_at_period_end boolean NOT NULL DEFAULT false,
    paused_seconds_left bigint,
    paused_seconds_total bigint,
    paused_invoice_id bigint,
    trial_end_told_at timestamptz,
    created_at timestamptz NOT NULL,
    version bigint NOT NULL DEFAULT 1,
    event_seq bigint NOT NULL DEFAULT 0,
    CONSTRAINT subscription_pkey PRIMARY KEY (customer_id, subscription_id),
    CONSTRAINT subscription_covers_a_resource_of_its_customer FOREIGN KEY (customer_id, resource_id)
    REFERENCES billing.resource (customer_id, resource_id),
    CONSTRAINT subscription_pins_a_price FOREIGN KEY (price_id) REFERENCES billing.price (price_id),
    CONSTRAINT subscription_follows_a_dunning_policy FOREIGN KEY (dunning_policy_id)
    REFERENCES billing.dunning_policy (dunning_policy_id),
    CONSTRAINT subscription_pays_with_a_method_of_its_customer FOREIGN KEY (customer_id, payment_method_id)
    REFERENCES billing.payment_method (customer_id, payment_method_id),
    CONSTRAINT subscription_lives_in_a_known_zone FOREIGN KEY (time_zone) REFERENCES billing.time_zone (name),
    CONSTRAINT subscription_status_is_known CHECK (
        status IN ('INCOMPLETE', 'TRIALING', 'ACTIVE', 'PAST_DUE', 'PAUSED', 'CANCELED', 'EXPIRED')
    ),
    CONSTRAINT quantity_is_positive CHECK (quantity BETWEEN 1 AND 1000000),
    CONSTRAINT period_kind_is_known CHECK (current_period_kind IN ('TRIAL', 'BILLED', 'PAUSED')),
    CONSTRAINT begun_subscription_has_a_period CHECK (
        status IN ('INCOMPLETE', 'CANCELED', 'EXPIRED')
        OR (current_period_kind IS NOT NULL AND current_period_start IS NOT NULL AND current_period_end IS NOT NULL
            AND anchor_at IS NOT NULL)
    ),
    CONSTRAINT incomplete_subscription_has_no_period CHECK (
        status <> 'INCOMPLETE'
        OR (current_period_kind IS NULL AND current_period_start IS NULL AND current_period_end IS NULL)
    ),
    CONSTRAINT current_period_is_not_empty CHECK (current_period_end > current_period_start),
    CONSTRAINT only_a_renewable_subscription_is_due CHECK (
        next_renewal_at IS NULL OR (status IN ('TRIALING', 'ACTIVE', 'PAST_DUE') AND parked_at IS NULL)
    ),
    CONSTRAINT renewal_is_due_at_the_end_of_the_period CHECK (next_renewal_at = current_period_end),
    CONSTRAINT running_subscription_is_due_or_parked CHECK (
        status NOT IN ('TRIALING', 'ACTIVE') OR next_renewal_at IS NOT NULL OR parked_at IS NOT NULL
    ),
    CONSTRAINT ended_subscription_says_when_and_why CHECK (
        (status IN ('CANCELED', 'EXPIRED')) = (ended_at IS NOT NULL)
        AND (ended_at IS NULL) = (end_reason IS NULL)
    ),
    CONSTRAINT past_due_subscription_says_since_when CHECK ((status = 'PAST_DUE') = (past_due_since IS NOT NULL)),
    CONSTRAINT only_past_due_access_is_limited CHECK (access_until IS NULL OR status = 'PAST_DUE'),
    CONSTRAINT parked_subscription_says_why CHECK ((parked_at IS NULL) = (park_reason IS NULL)),
    CONSTRAINT term_is_for_those_that_do_not_renew CHECK (auto_renew = (term_periods IS NULL)),
    CONSTRAINT term_is_positive CHECK (term_periods BETWEEN 1 AND 1200),
    CONSTRAINT anchor_day_is_a_day_of_the_month CHECK (anchor_day BETWEEN 1 AND 31),
    CONSTRAINT pending_change_is_to_a_price FOREIGN KEY (pending_price_id) REFERENCES billing.price (price_id),
    CONSTRAINT pending_change_is_whole CHECK (
        (pending_price_id IS NULL) = (pending_quantity IS NULL)
        AND (pending_price_id IS NULL) = (pending_from IS NULL)
        AND (pending_quantity IS NULL OR pending_quantity BETWEEN 1 AND 1000000)
    ),
    CONSTRAINT migration_is_to_a_price FOREIGN KEY (migration_price_id) REFERENCES billing.price (price_id),
    CONSTRAINT migration_is_whole CHECK ((migration_price_id IS NULL) = (migration_from IS NULL)),
    CONSTRAINT only_an_active_subscription_is_to_pause CHECK (
        NOT pause_at_period_end OR status IN ('ACTIVE', 'PAST_DUE')
    ),
    CONSTRAINT paused_subscription_keeps_what_is_left CHECK (
        (status = 'PAUSED') = (paused_seconds_left IS NOT NULL) OR status IN ('CANCELED', 'EXPIRED')
    ),
    CONSTRAINT time_left_names_its_invoice CHECK (
        (paused_seconds_left > 0) IS NOT TRUE OR (paused_invoice_id IS NOT NULL AND paused_seconds_total > 0)
    )
);
CREATE INDEX subscription_by_id ON billing.subscription (subscription_id);
CREATE UNIQUE INDEX only_one_live_subscription_per_resource ON billing.subscription (customer_id, resource_id)
WHERE status IN ('INCOMPLETE', 'TRIALING', 'ACTIVE', 'PAST_DUE', 'PAUSED');
-- Oldest hour first and in key order within the hour, so that a batch walks heap and indexes once.
CREATE INDEX subscription_due ON billing.subscription
(date_bin('1 hour', next_renewal_at, '2000-01-01 00:00:00+00'), customer_id, subscription_id)
WHERE next_renewal_at IS NOT NULL;
CREATE INDEX subscription_incomplete ON billing.subscription (created_at) WHERE status = 'INCOMPLETE';
CREATE INDEX subscription_trial_to_tell_of ON billing.subscription (current_period_end)
WHERE status = 'TRIALING' AND current_period_kind = 'TRIAL' AND trial_end_told_at IS NULL AND NOT cancel_at_period_end;
CREATE INDEX subscription_parked ON billing.subscription (parked_at) WHERE parked_at IS NOT NULL;

COMMENT ON TABLE billing.subscription IS
'Current state of a subscription, one mutable row; every UPDATE adds one to version. History stands in subscription_period and subscription_event.';
COMMENT ON COLUMN billing.subscription.customer_id IS 'Customer who pays.';
COMMENT ON COLUMN billing.subscription.subscription_id IS 'Subscription.';
COMMENT ON COLUMN billing.subscription.resource_id IS 'What it gives access to.';
COMMENT ON COLUMN billing.subscription.status IS
'INCOMPLETE, TRIALING, ACTIVE, PAST_DUE, PAUSED, CANCELED or EXPIRED. The last two are final.';
COMMENT ON COLUMN billing.subscription.price_id IS 'Pinned price version.';
COMMENT ON COLUMN billing.subscription.quantity IS 'Units, for example seats.';
COMMENT ON COLUMN billing.subscription.current_period_kind IS 'TRIAL, BILLED or PAUSED; NULL before the first period.';
COMMENT ON COLUMN billing.subscription.current_period_start IS 'Start of the last opened period, inclusive.';
COMMENT ON COLUMN billing.subscription.current_period_end IS 'End of the last opened period, exclusive.';
COMMENT ON COLUMN billing.subscription.next_renewal_at IS
'When the renewal run takes it up; NULL = not renewable now: incomplete, paused, held while past due, parked, ended.';
COMMENT ON COLUMN billing.subscription.cancel_at_period_end IS 'True: it ends at current_period_end instead of renewing.';
COMMENT ON COLUMN billing.subscription.auto_renew IS 'False: it ends with its term.';
COMMENT ON COLUMN billing.subscription.term_periods IS 'Billed periods of a fixed term; NULL where it renews by itself.';
COMMENT ON COLUMN billing.subscription.term_end_at IS 'End of the fixed term, known once the first period is.';
COMMENT ON COLUMN billing.subscription.time_zone IS 'IANA zone, copied from the customer at sign-up.';
COMMENT ON COLUMN billing.subscription.anchor_at IS
'Local time from which every boundary is computed: boundary k = anchor + k periods, in time_zone. NULL before the first payment.';
COMMENT ON COLUMN billing.subscription.anchor_day IS
'Calendar billing: day of the month on which periods start at local midnight. NULL = anniversary of sign-up.';
COMMENT ON COLUMN billing.subscription.period_no IS 'k of current_period_end: the boundary that ends the current period.';
COMMENT ON COLUMN billing.subscription.payment_method_id IS 'Chosen payment method; NULL = the default of the customer.';
COMMENT ON COLUMN billing.subscription.dunning_policy_id IS 'What happens after a declined payment.';
COMMENT ON COLUMN billing.subscription.past_due_since IS 'Business time of the first decline that is not recovered.';
COMMENT ON COLUMN billing.subscription.access_until IS 'End of access while PAST_DUE; NULL = as long as it is PAST_DUE.';
COMMENT ON COLUMN billing.subscription.ended_at IS 'Effective end, for a cancellation at period end the boundary itself.';
COMMENT ON COLUMN billing.subscription.end_reason IS
'requested, period_end, term_end, payment_failed, no_payment_method, checkout_restarted, checkout_abandoned.';
COMMENT ON COLUMN billing.subscription.parked_at IS
'Since when a renewal that failed on its data is set aside; access and due date stay. NULL = not.';
COMMENT ON COLUMN billing.subscription.park_reason IS 'SQLSTATE and message of the failed renewal.';
COMMENT ON COLUMN billing.subscription.catch_up_run_id IS 'Last renewal run that advanced it.';
COMMENT ON COLUMN billing.subscription.catch_up_periods IS 'Periods that this run opened for it; a run stops at three.';
COMMENT ON COLUMN billing.subscription.pending_price_id IS
'Price that the customer has chosen for the first boundary on or after pending_from; NULL = none.';
COMMENT ON COLUMN billing.subscription.pending_quantity IS 'Quantity that takes effect with pending_price_id.';
COMMENT ON COLUMN billing.subscription.pending_from IS
'When it was chosen: boundaries that had passed before then are renewed without it.';
COMMENT ON COLUMN billing.subscription.migration_price_id IS
'Price of the same plan to which the seller moves it at the first boundary on or after migration_from; NULL = none.';
COMMENT ON COLUMN billing.subscription.migration_from IS 'Earliest boundary at which the seller''s new price takes effect.';
COMMENT ON COLUMN billing.subscription.pause_at_period_end IS 'True: it pauses at current_period_end instead of renewing.';
COMMENT ON COLUMN billing.subscription.paused_seconds_left IS
'Seconds of the paid period that were left when it paused, used up after it resumes.';
COMMENT ON COLUMN billing.subscription.paused_seconds_total IS
'Length in seconds of that period as it was priced, for prorating what is left.';
COMMENT ON COLUMN billing.subscription.paused_invoice_id IS 'Invoice that covers the time that is left.';
COMMENT ON COLUMN billing.subscription.trial_end_told_at IS
'When SubscriptionTrialEnding was sent for the present end of its trial; NULL = not yet.';
COMMENT ON COLUMN billing.subscription.created_at IS 'Business time of sign-up.';
COMMENT ON COLUMN billing.subscription.version IS 'Number of the row version, for p_expected_version.';
COMMENT ON COLUMN billing.subscription.event_seq IS 'Number of the last event about it and its invoices.';

CREATE FUNCTION billing.guard_subscription_status()
RETURNS trigger
LANGUAGE plpgsql
SET search_path = ''
AS $function$
-- Locks:      nothing
-- Writes:     nothing
-- Raises:     SB302 already ended, SB303 transition not in billing.subscription_transition
-- Idempotent: yes
BEGIN
    IF old.status IN ('CANCELED', 'EXPIRED') THEN
        RAISE EXCEPTION USING
            ERRCODE = 'SB302',
            MESSAGE = format('subscription %s has ended (%s)', old.subscription_id, old.status);
    END IF;
    IF NOT EXISTS (
        SELECT 1 FROM billing.subscription_transition AS t
        WHERE t.from_status = old.status AND t.to_status = new.status
    ) THEN
        RAISE EXCEPTION USING
            ERRCODE = 'SB303',
            MESSAGE = format('subscription %s cannot go from %s to %s', old.subscription_id, old.status, new.status);
    END IF;
    RETURN new;
END;
$function$;

COMMENT ON FUNCTION billing.guard_subscription_status IS
'Trigger: refuses a change of status that billing.subscription_transition does not list.';

CREATE FUNCTION billing.guard_subscription_version()
RETURNS trigger
LANGUAGE plpgsql
SET search_path = ''
AS $function$
-- Locks:      nothing
-- Writes:     nothing
-- Raises:     SB901 always
-- Idempotent: yes
BEGIN
    RAISE EXCEPTION USING
        ERRCODE = 'SB901',
        MESSAGE = format(
            'update of subscription %s moves version from %s to %s and event_seq from %s to %s',
            old.subscription_id, old.version, new.version, old.event_seq, new.event_seq
        );
END;
$function$;

COMMENT ON FUNCTION billing.guard_subscription_version IS
'Trigger, bound with a condition: every update of a subscription adds exactly one to version and never takes event_seq back.';

CREATE TRIGGER subscription_status_follows_the_transitions BEFORE UPDATE ON billing.subscription
FOR EACH ROW WHEN (old.status IS DISTINCT FROM new.status)
EXECUTE FUNCTION billing.guard_subscription_status();
CREATE TRIGGER subscription_version_grows_by_one BEFORE UPDATE ON billing.subscription
FOR EACH ROW WHEN (new.version <> old.version + 1 OR new.event_seq < old.event_seq)
EXECUTE FUNCTION billing.guard_subscription_version();
CREATE TRIGGER subscription_is_never_deleted BEFORE DELETE ON billing.subscription
FOR EACH ROW EXECUTE FUNCTION billing.refuse_change();
CREATE TRIGGER subscription_is_never_truncated BEFORE TRUNCATE ON billing.subscription
FOR EACH STATEMENT EXECUTE FUNCTION billing.refuse_change();

CREATE TABLE billing.subscription_period (
    customer_id bigint NOT NULL,
    subscription_id bigint NOT NULL,
    period_start timestamptz NOT NULL,
    period_end timestamptz NOT NULL,
    prev_end timestamptz,
    kind text NOT NULL,
    invoice_id bigint,
    opened_seq bigint NOT NULL,
    first_of bigint GENERATED ALWAYS AS (CASE WHEN prev_end IS NULL THEN subscription_id END) STORED,
    CONSTRAINT subscription_period_pkey PRIMARY KEY (customer_id, subscription_id, period_start),
    CONSTRAINT period_end_is_unique UNIQUE (customer_id, subscription_id, period_end),
    CONSTRAINT period_is_not_empty CHECK (period_end > period_start),
    CONSTRAINT period_starts_where_the_last_ended CHECK (prev_end = period_start),
    CONSTRAINT period_of_the_timeline_is_of_a_known_kind CHECK (kind IN ('TRIAL', 'BILLED', 'PAUSED')),
    CONSTRAINT billed_period_names_its_invoice CHECK ((kind = 'BILLED') = (invoice_id IS NOT NULL)),
    CONSTRAINT period_chain FOREIGN KEY (customer_id, subscription_id, prev_end)
    REFERENCES billing.subscription_period (customer_id, subscription_id, period_end),
    CONSTRAINT first_period_of_own_subscription FOREIGN KEY (customer_id, first_of)
    REFERENCES billing.subscription (customer_id, subscription_id)
);
CREATE UNIQUE INDEX only_one_first_period ON billing.subscription_period (customer_id, subscription_id)
WHERE prev_end IS NULL;

COMMENT ON TABLE billing.subscription_period IS
'The service timeline. Each row starts where the one before ends, by foreign key, so that a gap, an overlap or a fork cannot be stored.';
COMMENT ON COLUMN billing.subscription_period.customer_id IS 'Customer.';
COMMENT ON COLUMN billing.subscription_period.subscription_id IS 'Subscription.';
COMMENT ON COLUMN billing.subscription_period.period_start IS 'Start, inclusive.';
COMMENT ON COLUMN billing.subscription_period.period_end IS 'End, exclusive.';
COMMENT ON COLUMN billing.subscription_period.prev_end IS 'End of the row before, equal to period_start; NULL for the first row.';
COMMENT ON COLUMN billing.subscription_period.kind IS 'TRIAL, BILLED or PAUSED.';
COMMENT ON COLUMN billing.subscription_period.invoice_id IS
'Invoice that covers a BILLED row; segments around a pause share one.';
COMMENT ON COLUMN billing.subscription_period.opened_seq IS
'Event number under which it was opened. A plain renewal has no other log entry than this row.';
COMMENT ON COLUMN billing.subscription_period.first_of IS
'The subscription, in the first row only: binds the whole chain to it at no cost for later rows.';

CREATE TABLE billing.trial_taken (
    customer_id bigint NOT NULL,
    scope text NOT NULL,
    subscription_id bigint NOT NULL,
    taken_at timestamptz NOT NULL,
    CONSTRAINT trial_is_taken_once PRIMARY KEY (customer_id, scope),
    CONSTRAINT trial_was_of_a_subscription FOREIGN KEY (customer_id, subscription_id)
    REFERENCES billing.subscription (customer_id, subscription_id)
);

COMMENT ON TABLE billing.trial_taken IS 'Trials that customers have had, remembered apart from subscriptions.';
COMMENT ON COLUMN billing.trial_taken.customer_id IS 'Customer.';
COMMENT ON COLUMN billing.trial_taken.scope IS 'customer, plan:<id> or resource:<id>, as plan.trial_once_per says.';
COMMENT ON COLUMN billing.trial_taken.subscription_id IS 'Subscription that had the trial.';
COMMENT ON COLUMN billing.trial_taken.taken_at IS 'Business time of its start.';

CREATE TABLE billing.subscription_event (
    customer_id bigint NOT NULL,
    subscription_id bigint NOT NULL,
    event_seq bigint NOT NULL,
    event_type text NOT NULL,
    from_status text,
    to_status text,
    invoice_id bigint,
    attempt_id bigint,
    detail jsonb NOT NULL DEFAULT '{}',
    row_changes jsonb NOT NULL DEFAULT '{}',
    actor text NOT NULL,
    as_of timestamptz NOT NULL,
    recorded_at timestamptz NOT NULL DEFAULT clock_timestamp(),
    CONSTRAINT subscription_event_pkey PRIMARY KEY (customer_id, subscription_id, event_seq)
);

COMMENT ON TABLE billing.subscription_event IS
'Append-only log of everything about a subscription and its invoices that is not a plain renewal.';
COMMENT ON COLUMN billing.subscription_event.customer_id IS 'Customer.';
COMMENT ON COLUMN billing.subscription_event.subscription_id IS 'Subscription.';
COMMENT ON COLUMN billing.subscription_event.event_seq IS
'Number within the subscription, without holes together with subscription_period.opened_seq; the outbox carries the same numbers.';
COMMENT ON COLUMN billing.subscription_event.event_type IS 'What happened, as in docs/events.md.';
COMMENT ON COLUMN billing.subscription_event.from_status IS 'Status before, where it changed.';
COMMENT ON COLUMN billing.subscription_event.to_status IS 'Status after, where it changed.';
COMMENT ON COLUMN billing.subscription_event.invoice_id IS 'Invoice concerned, or NULL.';
COMMENT ON COLUMN billing.subscription_event.attempt_id IS 'Payment attempt concerned, or NULL.';
COMMENT ON COLUMN billing.subscription_event.detail IS 'What happened and why, as far as the world is told it; no personal data.';
COMMENT ON COLUMN billing.subscription_event.row_changes IS
'Columns of billing.subscription that it set, with their new values. Folded in order, together with the timeline, they give the row.';
COMMENT ON COLUMN billing.subscription_event.actor IS 'Who: the caller, as set in billing.actor, else the database role.';
COMMENT ON COLUMN billing.subscription_event.as_of IS 'Business time.';
COMMENT ON COLUMN billing.subscription_event.recorded_at IS 'Wall clock.';

CREATE TRIGGER subscription_event_is_append_only BEFORE UPDATE OR DELETE ON billing.subscription_event
FOR EACH ROW EXECUTE FUNCTION billing.refuse_change();
CREATE TRIGGER subscription_event_is_never_truncated BEFORE TRUNCATE ON billing.subscription_event
FOR EACH STATEMENT EXECUTE FUNCTION billing.refuse_change();

CREATE SEQUENCE billing.change_id_seq INCREMENT BY 64 MINVALUE 0 START WITH 64;

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
