-- What is sold, and what happens when it is not paid.

CREATE SEQUENCE billing.plan_id_seq INCREMENT BY 64 MINVALUE 0 START WITH 64;
CREATE SEQUENCE billing.price_id_seq INCREMENT BY 64 MINVALUE 0 START WITH 64;
CREATE SEQUENCE billing.dunning_policy_id_seq INCREMENT BY 64 MINVALUE 0 START WITH 64;

CREATE TABLE billing.plan (
    plan_id bigint NOT NULL DEFAULT nextval('billing.plan_id_seq'),
    code text NOT NULL,
    name text NOT NULL,
    trial_once_per text NOT NULL DEFAULT 'CUSTOMER',
    grant_first_allowed boolean NOT NULL DEFAULT false,
    created_at timestamptz NOT NULL,
    CONSTRAINT plan_pkey PRIMARY KEY (plan_id),
    CONSTRAINT plan_code_is_unique UNIQUE (code),
    CONSTRAINT plan_code_is_plain CHECK (code ~ '^[A-Za-z0-9][A-Za-z0-9_.-]{0,62}$'),
    CONSTRAINT trial_scope_is_known CHECK (trial_once_per IN ('CUSTOMER', 'PLAN', 'RESOURCE'))
);

COMMENT ON TABLE billing.plan IS 'What can be subscribed to.';
COMMENT ON COLUMN billing.plan.plan_id IS 'Plan.';
COMMENT ON COLUMN billing.plan.code IS 'Code used by callers, unique.';
COMMENT ON COLUMN billing.plan.name IS 'Name for people, printed on invoice lines.';
COMMENT ON COLUMN billing.plan.trial_once_per IS 'A trial is given once per CUSTOMER, PLAN or RESOURCE.';
COMMENT ON COLUMN billing.plan.grant_first_allowed IS
'True: any caller may sign up with GRANT_FIRST; false: only an operator may.';
COMMENT ON COLUMN billing.plan.created_at IS 'Business time of creation.';

CREATE TABLE billing.price (
    price_id bigint NOT NULL DEFAULT nextval('billing.price_id_seq'),
    plan_id bigint NOT NULL,
    amount bigint NOT NULL,
    currency text NOT NULL,
    interval_unit text NOT NULL,
    interval_count integer NOT NULL DEFAULT 1,
    period_length interval NOT NULL GENERATED ALWAYS AS (
        CASE interval_unit
            WHEN 'DAY' THEN make_interval(days => interval_count)
            WHEN 'WEEK' THEN make_interval(weeks => interval_count)
            WHEN 'MONTH' THEN make_interval(months => interval_count)
            ELSE make_interval(years => interval_count)
        END
    ) STORED,
    trial_days integer NOT NULL DEFAULT 0,
    effective_from timestamptz NOT NULL,
    created_at timestamptz NOT NULL,
    CONSTRAINT price_pkey PRIMARY KEY (price_id),
    CONSTRAINT price_version_is_unique UNIQUE (plan_id, currency, effective_from),
    CONSTRAINT price_belongs_to_a_plan FOREIGN KEY (plan_id) REFERENCES billing.plan (plan_id),
    CONSTRAINT price_is_in_a_known_currency FOREIGN KEY (currency) REFERENCES billing.currency (code),
    CONSTRAINT price_is_not_negative_nor_absurd CHECK (amount BETWEEN 0 AND 1000000000000000),
    CONSTRAINT interval_unit_is_known CHECK (interval_unit IN ('DAY', 'WEEK', 'MONTH', 'YEAR')),
    CONSTRAINT interval_is_at_most_ten_years CHECK (
        interval_count >= 1
        AND interval_count <= CASE interval_unit WHEN 'DAY' THEN 3650 WHEN 'WEEK' THEN 520 WHEN 'MONTH' THEN 120 ELSE 10 END
    ),
    CONSTRAINT trial_is_at_most_two_years CHECK (trial_days BETWEEN 0 AND 730)
);
CREATE INDEX price_by_currency ON billing.price (currency);

COMMENT ON TABLE billing.price IS 'Immutable price versions of a plan. A subscription pins one.';
COMMENT ON COLUMN billing.price.price_id IS 'Price version.';
COMMENT ON COLUMN billing.price.plan_id IS 'Plan.';
COMMENT ON COLUMN billing.price.amount IS 'Amount per unit and period in minor units of the currency.';
COMMENT ON COLUMN billing.price.currency IS 'Currency, ISO 4217.';
COMMENT ON COLUMN billing.price.interval_unit IS 'DAY, WEEK, MONTH or YEAR.';
COMMENT ON COLUMN billing.price.interval_count IS 'How many of the unit make one period.';
COMMENT ON COLUMN billing.price.period_length IS 'Calendar length of one period, made of unit and count.';
COMMENT ON COLUMN billing.price.trial_days IS 'Days of trial for a new subscription, 0 = none.';
COMMENT ON COLUMN billing.price.effective_from IS 'From when new subscriptions get this version.';
COMMENT ON COLUMN billing.price.created_at IS 'Business time of creation.';

CREATE FUNCTION billing.refuse_change()
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
        MESSAGE = format('%s of billing.%s is refused', tg_op, tg_table_name),
        HINT = 'These rows are history. Correct them with a new row through billing_api or billing_ops.';
END;
$function$;

COMMENT ON FUNCTION billing.refuse_change IS 'Trigger that refuses the operation it is bound to, with SB901.';

CREATE TRIGGER price_is_immutable BEFORE UPDATE OR DELETE ON billing.price
FOR EACH ROW EXECUTE FUNCTION billing.refuse_change();
CREATE TRIGGER price_is_never_truncated BEFORE TRUNCATE ON billing.price
FOR EACH STATEMENT EXECUTE FUNCTION billing.refuse_change();

CREATE TABLE billing.dunning_policy (
    dunning_policy_id bigint NOT NULL DEFAULT nextval('billing.dunning_policy_id_seq'),
    code text NOT NULL,
    retry_after interval[] NOT NULL,
    counted_from text NOT NULL,
    jitter_minutes integer NOT NULL DEFAULT 0,
    grace interval,
    final_status text NOT NULL DEFAULT 'CANCELED',
    suspend_resource boolean NOT NULL DEFAULT false,
    past_due_renewal text NOT NULL DEFAULT 'HOLD',
    created_at timestamptz NOT NULL,
    CONSTRAINT dunning_policy_pkey PRIMARY KEY (dunning_policy_id),
    CONSTRAINT dunning_policy_code_is_unique UNIQUE (code),
    CONSTRAINT dunning_policy_code_is_plain CHECK (code ~ '^[a-z0-9][a-z0-9_-]{0,62}$'),
    CONSTRAINT retries_are_counted_from_a_failure CHECK (counted_from IN ('PREVIOUS_FAILURE', 'FIRST_FAILURE')),
    CONSTRAINT ladder_has_at_most_20_rungs CHECK (cardinality(retry_after) <= 20 AND array_position(retry_after, NULL) IS NULL),
    CONSTRAINT ladder_is_counted_from_one CHECK (array_ndims(retry_after) = 1 AND array_lower(retry_after, 1) = 1),
    CONSTRAINT jitter_is_at_most_a_day CHECK (jitter_minutes BETWEEN 0 AND 1440),
    CONSTRAINT final_status_is_terminal CHECK (final_status IN ('CANCELED', 'EXPIRED')),
    CONSTRAINT past_due_renewal_is_known CHECK (past_due_renewal IN ('HOLD', 'CONTINUE')),
    CONSTRAINT grace_is_positive CHECK (grace > '0 seconds')
);

COMMENT ON TABLE billing.dunning_policy IS
'Retry ladder after a declined payment, and what follows it. Policies are immutable; make a new one instead.';
COMMENT ON COLUMN billing.dunning_policy.dunning_policy_id IS 'Dunning policy.';
COMMENT ON COLUMN billing.dunning_policy.code IS 'Code used by callers, unique.';
COMMENT ON COLUMN billing.dunning_policy.retry_after IS
'One span per retry. After the n-th failure the n-th span counts; when there is none, the ladder has ended.';
COMMENT ON COLUMN billing.dunning_policy.counted_from IS 'PREVIOUS_FAILURE or FIRST_FAILURE of the invoice.';
COMMENT ON COLUMN billing.dunning_policy.jitter_minutes IS
'Most minutes added to a retry; how many is derived from the invoice and the failure, so a replay gives the same instant.';
COMMENT ON COLUMN billing.dunning_policy.grace IS
'How long access lasts, from the later of period start and issue; also the earliest end. NULL = while PAST_DUE.';
COMMENT ON COLUMN billing.dunning_policy.final_status IS 'CANCELED or EXPIRED once retries are spent and grace is over.';
COMMENT ON COLUMN billing.dunning_policy.suspend_resource IS 'True: the end of dunning suspends the resource.';
COMMENT ON COLUMN billing.dunning_policy.past_due_renewal IS
'HOLD: no period opens while PAST_DUE. CONTINUE: renewals go on.';
COMMENT ON COLUMN billing.dunning_policy.created_at IS 'Business time of creation.';

CREATE TRIGGER dunning_policy_is_immutable BEFORE UPDATE OR DELETE ON billing.dunning_policy
FOR EACH ROW EXECUTE FUNCTION billing.refuse_change();
CREATE TRIGGER dunning_policy_is_never_truncated BEFORE TRUNCATE ON billing.dunning_policy
FOR EACH STATEMENT EXECUTE FUNCTION billing.refuse_change();

INSERT INTO billing.dunning_policy
(code, retry_after, counted_from, jitter_minutes, grace, final_status, suspend_resource, created_at)
VALUES
('standard', '{24:00,72:00,120:00}', 'PREVIOUS_FAILURE', 120, NULL, 'CANCELED', false, billing.now()),
('fixed_1357', '{24:00,72:00,120:00,168:00}', 'FIRST_FAILURE', 0, NULL, 'CANCELED', false, billing.now()),
('store_grace', '{24:00,72:00,120:00}', 'FIRST_FAILURE', 0, '168:00', 'EXPIRED', true, billing.now()),
('exponential', '{24:00,48:00,96:00,192:00}', 'PREVIOUS_FAILURE', 0, NULL, 'CANCELED', false, billing.now());

CREATE TRIGGER time_zone_is_never_deleted BEFORE DELETE ON billing.time_zone
FOR EACH ROW EXECUTE FUNCTION billing.refuse_change();
