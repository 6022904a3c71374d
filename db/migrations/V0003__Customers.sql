-- Who pays, what is sold to them, and through which gateway account they pay.

CREATE FUNCTION billing.looks_like_card_number(
    p_text text
)
RETURNS boolean
LANGUAGE plpgsql
IMMUTABLE
PARALLEL SAFE
SET search_path = ''
AS $function$
-- Locks:      nothing
-- Writes:     nothing
-- Raises:     nothing
-- Idempotent: yes
-- Runs of digits, alone or in groups parted by one space or hyphen; every series of whole groups is tried
-- against issuer prefix, length and the Luhn sum. UUIDs and words that hold letters too are no card numbers,
-- whatever their digits: gateways name payments and tokens by them, and one in thousands would pass all three.
-- Most texts have no 13 digits in a row, and cost no query.
BEGIN
    IF p_text !~ '[0-9](?:[ -]?[0-9]){12}' THEN
        RETURN false;
    END IF;
    RETURN EXISTS (
        SELECT 1
        FROM regexp_matches(
            regexp_replace(
                regexp_replace(p_text, '[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}', 'x', 'gi'),
                '[0-9]*[A-Za-z][0-9A-Za-z]*', 'x', 'g'
            ),
            '[0-9]+(?:[ -][0-9]+)*', 'g'
        ) AS run (part)
        CROSS JOIN LATERAL regexp_split_to_array(run.part[1], '[ -]') AS split (digit_groups)
        CROSS JOIN LATERAL generate_series(1, cardinality(split.digit_groups)) AS first_group (no)
        CROSS JOIN LATERAL generate_series(
            first_group.no, least(cardinality(split.digit_groups), first_group.no + 18)
        ) AS last_group (no)
        CROSS JOIN LATERAL array_to_string(split.digit_groups[first_group.no:last_group.no], '') AS number (digits)
        WHERE length(number.digits) BETWEEN 13 AND 19
          AND number.digits ~ (
              '^(?:4(?:[0-9]{12}|[0-9]{15}|[0-9]{18})'                       -- Visa
              '|(?:5[1-5][0-9]{2}|222[1-9]|22[3-9][0-9]|2[3-6][0-9]{2}|27[01][0-9]|2720)[0-9]{12}'  -- Mastercard
              '|3[47][0-9]{13}'                                              -- American Express
              '|3(?:0[0-5]|[689][0-9])[0-9]{11,16}'                          -- Diners
              '|35(?:2[89]|[3-8][0-9])[0-9]{12,15}'                          -- JCB
              '|(?:6011|64[4-9][0-9]|65[0-9]{2})[0-9]{12,15}'                -- Discover
              '|62[0-9]{14,17}'                                              -- UnionPay
              '|(?:50|5[6-8]|6[0-9])[0-9]{11,17})$'                          -- Maestro
          )
          AND (
              SELECT sum(
                  CASE WHEN d.place % 2 = 0
                       THEN (2 * d.digit) / 10 + (2 * d.digit) % 10
                       ELSE d.digit
                  END
              ) % 10
              FROM (
                  SELECT t.place, t.digit::integer AS digit
                  FROM regexp_split_to_table(reverse(number.digits), '') WITH ORDINALITY AS t (digit, place)
              ) AS d
          ) = 0
    );
END;
$function$;

COMMENT ON FUNCTION billing.looks_like_card_number IS
'True for a text that holds a card number by issuer prefix, length and Luhn sum. Such texts are refused everywhere.';

CREATE SEQUENCE billing.customer_id_seq INCREMENT BY 64 MINVALUE 0 START WITH 64;
CREATE SEQUENCE billing.resource_id_seq INCREMENT BY 64 MINVALUE 0 START WITH 64;
CREATE SEQUENCE billing.payment_method_id_seq INCREMENT BY 64 MINVALUE 0 START WITH 64;

CREATE TABLE billing.customer (
    customer_id bigint NOT NULL DEFAULT nextval('billing.customer_id_seq'),
    external_ref text NOT NULL,
    status text NOT NULL DEFAULT 'ACTIVE',
    currency text NOT NULL,
    time_zone text NOT NULL DEFAULT 'UTC',
    event_seq bigint NOT NULL DEFAULT 0,
    created_at timestamptz NOT NULL,
    CONSTRAINT customer_pkey PRIMARY KEY (customer_id),
    CONSTRAINT customer_external_ref_is_unique UNIQUE (external_ref),
    CONSTRAINT customer_status_is_known CHECK (status IN ('ACTIVE', 'SUSPENDED', 'CLOSED')),
    CONSTRAINT customer_pays_in_a_known_currency FOREIGN KEY (currency) REFERENCES billing.currency (code),
    CONSTRAINT customer_lives_in_a_known_zone FOREIGN KEY (time_zone) REFERENCES billing.time_zone (name)
);
CREATE INDEX customer_by_currency ON billing.customer (currency);
CREATE INDEX customer_by_time_zone ON billing.customer (time_zone);

COMMENT ON TABLE billing.customer IS 'Who pays. Owns payment methods and credit; holds no personal data.';
COMMENT ON COLUMN billing.customer.customer_id IS 'Leads every key of the rows of this customer.';
COMMENT ON COLUMN billing.customer.external_ref IS 'Name of this customer in the calling system, unique.';
COMMENT ON COLUMN billing.customer.status IS 'ACTIVE, SUSPENDED (no access, no recovery of resources) or CLOSED (erased).';
COMMENT ON COLUMN billing.customer.currency IS 'Currency of new subscriptions, ISO 4217.';
COMMENT ON COLUMN billing.customer.time_zone IS 'IANA zone, copied into each subscription at sign-up.';
COMMENT ON COLUMN billing.customer.event_seq IS 'Number of the last event about the customer itself.';
COMMENT ON COLUMN billing.customer.created_at IS 'Business time of creation.';

CREATE TABLE billing.customer_contact (
    customer_id bigint NOT NULL,
    email text,
    CONSTRAINT customer_contact_pkey PRIMARY KEY (customer_id),
    CONSTRAINT contact_belongs_to_a_customer FOREIGN KEY (customer_id) REFERENCES billing.customer (customer_id)
);

COMMENT ON TABLE billing.customer_contact IS 'Personal data of a customer, in a table of its own so that it can be erased.';
COMMENT ON COLUMN billing.customer_contact.customer_id IS 'Customer.';
COMMENT ON COLUMN billing.customer_contact.email IS 'E-mail address, or NULL.';

CREATE TABLE billing.resource (
    customer_id bigint NOT NULL,
    resource_id bigint NOT NULL DEFAULT nextval('billing.resource_id_seq'),
    external_ref text NOT NULL,
    suspended_by_billing_at timestamptz,
    suspended_by_admin_at timestamptz,
    created_at timestamptz NOT NULL,
    CONSTRAINT resource_pkey PRIMARY KEY (customer_id, resource_id),
    CONSTRAINT resource_external_ref_is_unique_per_customer UNIQUE (customer_id, external_ref),
    CONSTRAINT resource_belongs_to_a_customer FOREIGN KEY (customer_id) REFERENCES billing.customer (customer_id)
);

COMMENT ON TABLE billing.resource IS
'What is sold and gets access: a store, a workspace, a licence. At most one live subscription each.';
COMMENT ON COLUMN billing.resource.customer_id IS 'Customer who pays for it.';
COMMENT ON COLUMN billing.resource.resource_id IS 'Resource.';
COMMENT ON COLUMN billing.resource.external_ref IS
'Name in the calling system, unique per customer; "default" where the caller names none.';
COMMENT ON COLUMN billing.resource.suspended_by_billing_at IS
'Since when billing has it suspended after unpaid invoices; lifted by payment. NULL = not.';
COMMENT ON COLUMN billing.resource.suspended_by_admin_at IS
'Since when an administrator has it suspended; never lifted by billing. NULL = not.';
COMMENT ON COLUMN billing.resource.created_at IS 'Business time of creation.';

CREATE TABLE billing.gateway_account (
    gateway_account_id integer NOT NULL GENERATED ALWAYS AS IDENTITY,
    code text NOT NULL,
    adapter text NOT NULL,
    mode text NOT NULL DEFAULT 'TEST',
    request_timeout interval NOT NULL DEFAULT '30 seconds',
    lease_margin interval NOT NULL DEFAULT '60 seconds',
    key_lifetime interval NOT NULL DEFAULT '24 hours',
    settle_window interval NOT NULL DEFAULT '15 minutes',
    processing_deadline interval NOT NULL DEFAULT '14 days',
    confirm_success boolean NOT NULL DEFAULT false,
    collecting_paused_at timestamptz,
    disabled_at timestamptz,
    created_at timestamptz NOT NULL,
    CONSTRAINT gateway_account_pkey PRIMARY KEY (gateway_account_id),
    CONSTRAINT gateway_account_code_is_unique UNIQUE (code),
    CONSTRAINT gateway_account_code_is_plain CHECK (code ~ '^[a-z0-9][a-z0-9_-]{0,62}$'),
    CONSTRAINT gateway_account_mode_is_known CHECK (mode IN ('TEST', 'LIVE')),
    CONSTRAINT gateway_account_spans_are_positive CHECK (
        request_timeout > '0 seconds' AND lease_margin > '0 seconds' AND key_lifetime > '0 seconds'
        AND settle_window >= '0 seconds' AND processing_deadline > '0 seconds'
    )
);

COMMENT ON TABLE billing.gateway_account IS 'One merchant account at one payment gateway, with its limits as data.';
COMMENT ON COLUMN billing.gateway_account.gateway_account_id IS 'Gateway account.';
COMMENT ON COLUMN billing.gateway_account.code IS 'Name used by callers and in addresses, unique.';
COMMENT ON COLUMN billing.gateway_account.adapter IS 'Which adapter of the shell talks to it, for example "simulated".';
COMMENT ON COLUMN billing.gateway_account.mode IS 'TEST or LIVE. A database with a LIVE account has no test clock.';
COMMENT ON COLUMN billing.gateway_account.request_timeout IS 'How long the shell waits for an answer.';
COMMENT ON COLUMN billing.gateway_account.lease_margin IS
'Wall-clock time added to request_timeout for the lease of a claimed attempt.';
COMMENT ON COLUMN billing.gateway_account.key_lifetime IS
'How long the gateway remembers an idempotency key; afterwards the same key would charge again. Sends end at 90 % of it.';
COMMENT ON COLUMN billing.gateway_account.settle_window IS
'How long after a send a "not found" says nothing, because the gateway may still be booking.';
COMMENT ON COLUMN billing.gateway_account.processing_deadline IS 'How long bank money may be under way before it is looked up.';
COMMENT ON COLUMN billing.gateway_account.confirm_success IS
'True: a success counts only once a look-up confirms it, which doubles the calls.';
COMMENT ON COLUMN billing.gateway_account.collecting_paused_at IS 'Since when an operator stopped collecting; NULL = not.';
COMMENT ON COLUMN billing.gateway_account.disabled_at IS
'Since when it is off because this database is a clone: nothing is sent through it and nothing asked. NULL = not.';
COMMENT ON COLUMN billing.gateway_account.created_at IS 'Business time of creation.';

CREATE TABLE billing.gateway_rate (
    gateway_account_id integer NOT NULL,
    operation text NOT NULL,
    per_second integer NOT NULL,
    CONSTRAINT gateway_rate_pkey PRIMARY KEY (gateway_account_id, operation),
    CONSTRAINT rate_belongs_to_a_gateway_account FOREIGN KEY (gateway_account_id)
    REFERENCES billing.gateway_account (gateway_account_id),
    CONSTRAINT rated_operation_is_known CHECK (operation IN ('charge', 'look_up', 'refund')),
    CONSTRAINT rate_is_positive CHECK (per_second BETWEEN 2 AND 100000)
);

COMMENT ON TABLE billing.gateway_rate IS 'Calls per second that a gateway account allows, per operation.';
COMMENT ON COLUMN billing.gateway_rate.gateway_account_id IS 'Gateway account.';
COMMENT ON COLUMN billing.gateway_rate.operation IS 'charge, look_up or refund.';
COMMENT ON COLUMN billing.gateway_rate.per_second IS
'Most calls in any window of one second, wherever it starts.';

CREATE TABLE billing.gateway_minimum (
    gateway_account_id integer NOT NULL,
    currency text NOT NULL,
    amount bigint NOT NULL,
    CONSTRAINT gateway_minimum_pkey PRIMARY KEY (gateway_account_id, currency),
    CONSTRAINT minimum_belongs_to_a_gateway_account FOREIGN KEY (gateway_account_id)
    REFERENCES billing.gateway_account (gateway_account_id),
    CONSTRAINT minimum_is_in_a_known_currency FOREIGN KEY (currency) REFERENCES billing.currency (code),
    CONSTRAINT minimum_is_positive CHECK (amount > 0)
);
CREATE INDEX gateway_minimum_by_currency ON billing.gateway_minimum (currency);

COMMENT ON TABLE billing.gateway_minimum IS 'Smallest amount that a gateway account charges, per currency.';
COMMENT ON COLUMN billing.gateway_minimum.gateway_account_id IS 'Gateway account.';
COMMENT ON COLUMN billing.gateway_minimum.currency IS 'Currency, ISO 4217.';
COMMENT ON COLUMN billing.gateway_minimum.amount IS 'Smallest chargeable amount in minor units.';

CREATE TABLE billing.payment_method (
    customer_id bigint NOT NULL,
    payment_method_id bigint NOT NULL DEFAULT nextval('billing.payment_method_id_seq'),
    gateway_account_id integer NOT NULL,
    token text NOT NULL,
    brand text,
    last4 text,
    exp_month smallint,
    exp_year smallint,
    fingerprint text,
    is_default boolean NOT NULL DEFAULT false,
    blocked_at timestamptz,
    blocked_code text,
    removed_at timestamptz,
    created_at timestamptz NOT NULL,
    CONSTRAINT payment_method_pkey PRIMARY KEY (customer_id, payment_method_id),
    CONSTRAINT method_belongs_to_a_customer FOREIGN KEY (customer_id) REFERENCES billing.customer (customer_id),
    CONSTRAINT method_is_kept_at_a_gateway_account FOREIGN KEY (gateway_account_id)
    REFERENCES billing.gateway_account (gateway_account_id),
    CONSTRAINT token_is_no_card_number CHECK (NOT billing.looks_like_card_number(token)),
    CONSTRAINT token_is_short CHECK (length(token) BETWEEN 1 AND 255),
    CONSTRAINT last4_is_four_digits CHECK (last4 ~ '^[0-9]{4}$'),
    CONSTRAINT expiry_is_a_month CHECK (
        (exp_month IS NULL) = (exp_year IS NULL) AND exp_month BETWEEN 1 AND 12 AND exp_year BETWEEN 2000 AND 2100
        OR exp_month IS NULL AND exp_year IS NULL
    ),
    CONSTRAINT removed_method_is_no_default CHECK (removed_at IS NULL OR NOT is_default),
    CONSTRAINT blocked_method_says_why CHECK ((blocked_at IS NULL) = (blocked_code IS NULL))
);
CREATE UNIQUE INDEX only_one_default_method ON billing.payment_method (customer_id) WHERE is_default;
CREATE UNIQUE INDEX token_is_stored_once_per_customer
ON billing.payment_method (customer_id, gateway_account_id, token) WHERE removed_at IS NULL;
CREATE UNIQUE INDEX fingerprint_is_stored_once_per_customer
ON billing.payment_method (customer_id, gateway_account_id, fingerprint) WHERE removed_at IS NULL;
CREATE INDEX payment_method_by_gateway_account ON billing.payment_method (gateway_account_id);

COMMENT ON TABLE billing.payment_method IS 'A token of a payment method at a gateway; never a card number.';
COMMENT ON COLUMN billing.payment_method.customer_id IS 'Customer who owns it.';
COMMENT ON COLUMN billing.payment_method.payment_method_id IS 'Payment method.';
COMMENT ON COLUMN billing.payment_method.gateway_account_id IS 'Gateway account that knows the token.';
COMMENT ON COLUMN billing.payment_method.token IS 'Token of the gateway; ''erased'' once the customer is.';
COMMENT ON COLUMN billing.payment_method.brand IS 'Card brand for display, or NULL.';
COMMENT ON COLUMN billing.payment_method.last4 IS 'Last four digits for display, or NULL.';
COMMENT ON COLUMN billing.payment_method.exp_month IS 'Expiry month 1 to 12, or NULL.';
COMMENT ON COLUMN billing.payment_method.exp_year IS 'Expiry year, four digits, or NULL.';
COMMENT ON COLUMN billing.payment_method.fingerprint IS
'Fingerprint of the gateway: the same fingerprint is the same method. NULL = unknown.';
COMMENT ON COLUMN billing.payment_method.is_default IS 'Used where the subscription names no method. At most one per customer.';
COMMENT ON COLUMN billing.payment_method.blocked_at IS
'Since when automatic attempts on it are stopped by a HARD or CUSTOMER decline; NULL = not.';
COMMENT ON COLUMN billing.payment_method.blocked_code IS 'Decline code that blocked it.';
COMMENT ON COLUMN billing.payment_method.removed_at IS 'When it was removed; NULL = usable.';
COMMENT ON COLUMN billing.payment_method.created_at IS 'Business time of creation.';

CREATE TABLE billing.decline_code (
    adapter text NOT NULL,
    code text NOT NULL,
    class text NOT NULL,
    CONSTRAINT decline_code_pkey PRIMARY KEY (adapter, code),
    CONSTRAINT decline_class_is_known CHECK (class IN ('SOFT', 'HARD', 'CUSTOMER'))
);

COMMENT ON TABLE billing.decline_code IS
'Class of each decline code per adapter; a code that is not listed is SOFT. Filled from db/reference/decline_code.sql.';
COMMENT ON COLUMN billing.decline_code.adapter IS 'Adapter, as in gateway_account.adapter; "*" for all.';
COMMENT ON COLUMN billing.decline_code.code IS 'Decline code of the gateway, or of this engine.';
COMMENT ON COLUMN billing.decline_code.class IS
'SOFT follows the ladder; HARD (stolen, invalid) and CUSTOMER (expired, authentication) stop automatic attempts on that method.';
