-- Keys of those who call over HTTP. The database knows a key by its hash only.

CREATE SEQUENCE billing.api_key_id_seq INCREMENT BY 64 MINVALUE 0 START WITH 64;

CREATE TABLE billing.api_key (
    api_key_id bigint NOT NULL DEFAULT nextval('billing.api_key_id_seq'),
    name text NOT NULL,
    scopes text[] NOT NULL,
    customer_id bigint,
    replaces_api_key_id bigint,
    created_at timestamptz NOT NULL DEFAULT clock_timestamp(),
    created_by text NOT NULL,
    rotated_at timestamptz,
    expires_at timestamptz,
    revoked_at timestamptz,
    revoked_by text,
    key_hash bytea NOT NULL,
    CONSTRAINT api_key_pkey PRIMARY KEY (api_key_id),
    CONSTRAINT api_key_hash_is_unique UNIQUE (key_hash),
    CONSTRAINT api_key_hash_is_sha256 CHECK (octet_length(key_hash) = 32),
    CONSTRAINT api_key_has_known_scopes CHECK (
        scopes <@ ARRAY['read', 'write', 'operate'] AND cardinality(scopes) > 0
    ),
    CONSTRAINT operator_is_bound_to_no_customer CHECK (customer_id IS NULL OR NOT scopes @> ARRAY['operate']),
    CONSTRAINT rotated_api_key_expires CHECK (rotated_at IS NULL OR expires_at IS NOT NULL),
    CONSTRAINT revoked_api_key_says_by_whom CHECK ((revoked_at IS NULL) = (revoked_by IS NULL)),
    CONSTRAINT api_key_is_bound_to_a_customer FOREIGN KEY (customer_id) REFERENCES billing.customer (customer_id),
    CONSTRAINT rotated_api_key_has_a_predecessor FOREIGN KEY (replaces_api_key_id) REFERENCES billing.api_key (api_key_id)
);
CREATE UNIQUE INDEX only_one_current_api_key_per_name ON billing.api_key (name)
WHERE rotated_at IS NULL AND revoked_at IS NULL;
CREATE INDEX api_key_by_customer ON billing.api_key (customer_id) WHERE customer_id IS NOT NULL;
CREATE INDEX api_key_by_replaced ON billing.api_key (replaces_api_key_id);

COMMENT ON TABLE billing.api_key IS
'Who may call over HTTP. All its times are of the wall clock: a key is a matter of people and machines, not of billing.';
COMMENT ON COLUMN billing.api_key.api_key_id IS 'Key; says nothing about its secret.';
COMMENT ON COLUMN billing.api_key.name IS 'Who calls with it: stands in the logs. A rotated key leaves its name to its successor.';
COMMENT ON COLUMN billing.api_key.scopes IS
'read, write, operate; with operate calls are made as billing_operator, else as billing_app.';
COMMENT ON COLUMN billing.api_key.customer_id IS 'The one customer whose things it reaches; NULL = all.';
COMMENT ON COLUMN billing.api_key.replaces_api_key_id IS 'The key that it was rotated from; NULL = none.';
COMMENT ON COLUMN billing.api_key.created_at IS 'When it was created.';
COMMENT ON COLUMN billing.api_key.created_by IS 'Who created it.';
COMMENT ON COLUMN billing.api_key.rotated_at IS 'Since when a newer key bears its name; NULL = it is the newest.';
COMMENT ON COLUMN billing.api_key.expires_at IS 'From when on it is refused; NULL = never.';
COMMENT ON COLUMN billing.api_key.revoked_at IS 'Since when it is refused, whatever else is said here; NULL = not.';
COMMENT ON COLUMN billing.api_key.revoked_by IS 'Who revoked it.';
COMMENT ON COLUMN billing.api_key.key_hash IS 'SHA-256 of the key, which has 256 random bits and is stored nowhere.';

CREATE TYPE billing.api_caller AS (
    api_key_id bigint,
    key_name text,
    is_allowed boolean,
    role_name text,
    actor text,
    customer_scope text
);
COMMENT ON TYPE billing.api_caller IS
'Who a key belongs to, whether it has the scope asked for, and the settings with which its calls are made.';

CREATE TYPE billing.metric AS (
    name text,
    labels jsonb,
    value numeric
);
COMMENT ON TYPE billing.metric IS 'One figure for a monitoring system: its name, its labels, and the value.';

INSERT INTO billing.error_code (sqlstate, name, http_status, meaning) VALUES
('SB261', 'unknown_api_key', 404, 'No such API key.'),
('SB361', 'api_key_ended', 409, 'The API key was rotated, has expired or is revoked.');
