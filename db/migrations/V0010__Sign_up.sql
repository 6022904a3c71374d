-- The composite types that the steps of sign-up and cancellation pass to one another.

CREATE TYPE billing.first_period AS (
    anchor_at timestamp without time zone,
    period_no integer,
    period_start timestamptz,
    period_end timestamptz,
    full_start timestamptz
);
COMMENT ON TYPE billing.first_period IS
'The first billed period. anchor_at is local; period_end is boundary period_no of it. full_start is where the full period begins that period_end ends: before period_start it makes the first period a stub, which is prorated by seconds.';

CREATE TYPE billing.sign_up AS (
    customer_id bigint,
    resource_id bigint,
    status text,
    plan_id bigint,
    plan_code text,
    plan_name text,
    trial_scope text,
    price_id bigint,
    unit_amount bigint,
    currency text,
    period_length interval,
    quantity integer,
    time_zone text,
    anchor_day smallint,
    auto_renew boolean,
    term_periods integer,
    term_end_at timestamptz,
    dunning_policy_id bigint,
    payment_method_id bigint,
    trial_end timestamptz,
    first billing.first_period,
    as_of timestamptz
);
COMMENT ON TYPE billing.sign_up IS
'The terms of a new subscription, all decided: status INCOMPLETE (pay first), TRIALING or ACTIVE (grant first), price in minor units, first billed period. trial_end is NULL without a trial.';

CREATE TYPE billing.placement AS (
    subscription_id bigint,
    is_new boolean
);
COMMENT ON TYPE billing.placement IS
'Where a sign-up went: into a new subscription, or into an open checkout with the same terms.';

CREATE TYPE billing.unused_time AS (
    invoice_id bigint,
    currency text,
    amount bigint
);
COMMENT ON TYPE billing.unused_time IS
'What an invoice was paid for time that will not be used, in minor units, never more than was paid and not yet given back.';
