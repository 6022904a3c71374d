-- What everything else stands on: the error catalogue, the identity of this database, the business clock, currencies
-- and time zones.

CREATE TABLE billing.error_code (
    sqlstate text NOT NULL,
    name text NOT NULL,
    http_status integer NOT NULL,
    meaning text NOT NULL,
    CONSTRAINT error_code_pkey PRIMARY KEY (sqlstate),
    CONSTRAINT error_name_is_unique UNIQUE (name),
    CONSTRAINT sqlstate_is_in_class_sb CHECK (sqlstate ~ '^SB[12349][0-9]{2}$'),
    CONSTRAINT http_status_follows_the_class CHECK (
        http_status = CASE substr(sqlstate, 3, 1)
            WHEN '1' THEN 422 WHEN '2' THEN 404 WHEN '4' THEN 503 WHEN '9' THEN 500
            -- The one version that a caller over HTTP can expect stands in If-Match, whose refusal has a status of its own.
            ELSE CASE sqlstate WHEN 'SB304' THEN 412 ELSE 409 END
        END
    )
);

COMMENT ON TABLE billing.error_code IS
'Every SQLSTATE that this engine raises. Callers match the code, never the text.';
COMMENT ON COLUMN billing.error_code.sqlstate IS
'Five characters: SB1xx bad argument, SB2xx not found, SB3xx state conflict, SB4xx try again, SB9xx broken invariant.';
COMMENT ON COLUMN billing.error_code.name IS 'Stable name in snake case, used as the problem type over HTTP.';
COMMENT ON COLUMN billing.error_code.http_status IS 'Status code of the HTTP door for this error.';
COMMENT ON COLUMN billing.error_code.meaning IS 'What happened and what the caller can do.';

INSERT INTO billing.error_code (sqlstate, name, http_status, meaning) VALUES
('SB101', 'invalid_argument', 422, 'An argument is NULL, out of range or malformed. Correct the call.'),
('SB102', 'unknown_currency', 422, 'The currency is not an active ISO 4217 code, or the plan has no price in it.'),
('SB103', 'unknown_time_zone', 422, 'The time zone is not an IANA name known to this database.'),
('SB104', 'as_of_out_of_range', 422,
 'p_as_of lies in the future or more than five minutes back. Only the operator role reaches further back.'),
('SB105', 'card_number_refused', 422, 'A text looks like a card number. Card numbers are never stored; send a gateway token.'),
('SB106', 'invalid_amount', 422, 'An amount is negative, zero where it must not be, or beyond 10^15 minor units.'),
('SB107', 'invalid_policy', 422, 'A dunning policy contradicts itself, for example its grace ends before its last retry.'),
('SB201', 'unknown_subscription', 404, 'No such subscription within the scope of the caller.'),
('SB202', 'unknown_customer', 404, 'No such customer within the scope of the caller.'),
('SB203', 'unknown_plan', 404, 'No such plan.'),
('SB204', 'unknown_invoice', 404, 'No such invoice within the scope of the caller.'),
('SB205', 'unknown_payment_method', 404, 'No such payment method for this customer.'),
('SB206', 'unknown_gateway_account', 404, 'No such gateway account.'),
('SB207', 'unknown_dunning_policy', 404, 'No such dunning policy.'),
('SB208', 'unknown_renewal_run', 404, 'No such renewal run, or it has ended.'),
('SB209', 'unknown_case', 404, 'No such reconciliation case.'),
('SB301', 'already_subscribed', 409, 'The resource has a live subscription; its id stands in DETAIL.'),
('SB302', 'already_ended', 409, 'The subscription is CANCELED or EXPIRED. Both are final.'),
('SB303', 'transition_not_allowed', 409, 'The subscription is in a status that does not allow this operation.'),
('SB304', 'version_mismatch', 412, 'p_expected_version is not the current version, which stands in DETAIL. Read again and decide.'),
('SB305', 'idempotency_conflict', 409, 'The idempotency key was used with other arguments.'),
('SB306', 'payment_in_progress', 409, 'A charge for this invoice is in flight. Wait for its outcome.'),
('SB307', 'invoice_not_open', 409, 'The invoice is not OPEN.'),
('SB308', 'trial_already_taken', 409, 'The customer has had a trial.'),
('SB309', 'already_exists', 409, 'A row with this external reference or code exists; its id stands in DETAIL.'),
('SB310', 'resource_suspended', 409, 'The resource is suspended; the reason and the debt stand in DETAIL.'),
('SB311', 'payment_method_in_use', 409, 'The payment method has a charge in flight, or money is owed and it is the last one.'),
('SB312', 'not_a_test_database', 409, 'Only a test database has a clock that can be set.'),
('SB313', 'not_permitted', 409, 'Only an operator, or a plan that allows it, may do this.'),
('SB314', 'customer_not_active', 409, 'The customer is suspended or closed.'),
('SB315', 'no_cancellation_scheduled', 409, 'There is no scheduled cancellation to undo.'),
('SB316', 'customer_in_use', 409,
 'The customer has a live subscription, an open invoice, or a charge or refund on its way, which DETAIL names: end it first. '
 'Or the transaction is not READ COMMITTED.'),
('SB320', 'invoice_open', 409, 'An invoice of the subscription is open. Settle or void it first, or change at the end of the period.'),
('SB321', 'change_pending', 409, 'A change waits for its payment. Wait for it, or take it back with undo_change.'),
('SB322', 'no_change_pending', 409, 'There is no pending change to take back.'),
('SB323', 'period_not_begun', 409, 'The current period was renewed early and has not begun. Try again once it has.'),
('SB401', 'try_again', 503, 'A lock or a resource was not to be had in time. The same call may succeed later.'),
('SB901', 'invariant_broken', 500, 'The engine found its own rows in a state that must not exist. Nothing was changed; call the operator.');

CREATE TABLE billing.database_identity (
    only_one boolean NOT NULL DEFAULT true,
    key_prefix text NOT NULL,
    shard smallint NOT NULL DEFAULT 0,
    is_test boolean NOT NULL DEFAULT false,
    system_identifier bigint NOT NULL,
    created_at timestamptz NOT NULL DEFAULT date_trunc('second', pg_catalog.now()),
    CONSTRAINT database_identity_pkey PRIMARY KEY (only_one),
    CONSTRAINT there_is_one_identity CHECK (only_one),
    CONSTRAINT key_prefix_is_short_and_plain CHECK (key_prefix ~ '^[a-z0-9]{4,16}$'),
    CONSTRAINT shard_is_one_of_64 CHECK (shard BETWEEN 0 AND 63)
);

COMMENT ON TABLE billing.database_identity IS 'Who this database is: one row.';
COMMENT ON COLUMN billing.database_identity.only_one IS 'Always true; keeps the table at one row.';
COMMENT ON COLUMN billing.database_identity.key_prefix IS
'First part of every idempotency key sent to a gateway. Unique per database, so that a clone or a shard never repeats a key of another.';
COMMENT ON COLUMN billing.database_identity.shard IS
'Shard number. Ids step by 64 from it, so that an id names its shard.';
COMMENT ON COLUMN billing.database_identity.is_test IS 'A test database has a clock that can be set, and no live gateway account.';
COMMENT ON COLUMN billing.database_identity.system_identifier IS
'Of the server that it was made or adopted on, from pg_control_system(). On another one it is a copy, and sends nothing until billing_ops.adopt_database says of what kind.';
COMMENT ON COLUMN billing.database_identity.created_at IS 'When the schema was first applied, by the wall clock.';

INSERT INTO billing.database_identity (key_prefix, system_identifier)
SELECT
    substr(md5(gen_random_uuid()::text), 1, 8) AS key_prefix,
    c.system_identifier
FROM pg_catalog.pg_control_system() AS c;

CREATE TABLE billing.test_clock (
    only_one boolean NOT NULL DEFAULT true,
    now_at timestamptz NOT NULL,
    CONSTRAINT test_clock_pkey PRIMARY KEY (only_one),
    CONSTRAINT there_is_one_clock CHECK (only_one),
    CONSTRAINT test_clock_shows_whole_seconds CHECK (now_at = date_trunc('second', now_at, 'UTC'))
);

COMMENT ON TABLE billing.test_clock IS 'The frozen business clock of a test database; empty means the real clock.';
COMMENT ON COLUMN billing.test_clock.only_one IS 'Always true; keeps the table at one row.';
COMMENT ON COLUMN billing.test_clock.now_at IS 'What billing.now() answers, in whole seconds.';

CREATE FUNCTION billing.now()
RETURNS timestamptz
LANGUAGE sql
STABLE
PARALLEL SAFE
SECURITY DEFINER
SET search_path = ''
AS $function$
    SELECT coalesce(
        (SELECT c.now_at FROM billing.test_clock AS c),
        date_trunc('second', pg_catalog.now(), 'UTC')
    );
$function$;

COMMENT ON FUNCTION billing.now IS
'The business clock: the start of the transaction in whole seconds, or the frozen clock of a test database. In filters write (SELECT billing.now()), or it runs once per row.';

GRANT EXECUTE ON FUNCTION billing.now TO
billing_app, billing_worker, billing_relay, billing_operator, billing_readonly;

CREATE TABLE billing.currency (
    code text NOT NULL,
    exponent smallint NOT NULL,
    CONSTRAINT currency_pkey PRIMARY KEY (code),
    CONSTRAINT currency_code_is_iso_4217 CHECK (code ~ '^[A-Z]{3}$'),
    CONSTRAINT exponent_is_0_to_4 CHECK (exponent BETWEEN 0 AND 4)
);

COMMENT ON TABLE billing.currency IS 'Active ISO 4217 currencies. Filled from db/reference/currency.sql.';
COMMENT ON COLUMN billing.currency.code IS 'Three capital letters, ISO 4217.';
COMMENT ON COLUMN billing.currency.exponent IS
'Digits of the minor unit: 2 for USD, 0 for JPY, 3 for KWD. Amounts are whole minor units.';

CREATE TABLE billing.time_zone (
    name text NOT NULL,
    CONSTRAINT time_zone_pkey PRIMARY KEY (name)
);

COMMENT ON TABLE billing.time_zone IS
'IANA time zones of this server. A table, because reading pg_timezone_names takes tens of milliseconds. Filled from db/reference/time_zone.sql.';
COMMENT ON COLUMN billing.time_zone.name IS 'IANA name, for example Europe/Berlin.';
