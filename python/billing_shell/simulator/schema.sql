-- The simulated gateway's books. Plain SQLite, version 1; every statement may run again.
-- An auditor needs nothing but this page: instants of business are UTC texts with microseconds
-- that sort as instants do, *_us are microseconds since 1970 of the gateway's own clock, amounts
-- are minor units.

-- One process run of the gateway; shows restarts, and under which settings what was seen arose.
CREATE TABLE IF NOT EXISTS runs (
    run_no INTEGER PRIMARY KEY,
    started_us INTEGER NOT NULL,
    process_id INTEGER NOT NULL,
    settings TEXT NOT NULL
) STRICT;

-- One row = one payment that the gateway made or refused. Money moved exactly where
-- status = 'succeeded', and then amount is what moved.
CREATE TABLE IF NOT EXISTS charges (
    charge_no INTEGER PRIMARY KEY,
    payment_id TEXT NOT NULL UNIQUE,
    idempotency_key TEXT,
    reference TEXT NOT NULL,
    amount INTEGER NOT NULL CHECK (amount > 0),
    currency TEXT NOT NULL CHECK (currency GLOB '[A-Z][A-Z][A-Z]'),
    status TEXT NOT NULL
    CHECK (status IN ('succeeded', 'declined', 'requires_action', 'processing')),
    code TEXT CHECK ((code IS NOT NULL) = (status = 'declined')),
    token TEXT NOT NULL,
    description TEXT NOT NULL,
    requested_amount INTEGER NOT NULL,
    created_at TEXT NOT NULL,
    captured_at TEXT CHECK ((captured_at IS NOT NULL) = (status = 'succeeded')),
    expires_at TEXT,
    booked_us INTEGER NOT NULL
) STRICT;
CREATE INDEX IF NOT EXISTS charges_by_reference ON charges (reference);
CREATE INDEX IF NOT EXISTS charges_by_token ON charges (token);
CREATE INDEX IF NOT EXISTS charges_that_wait ON charges (expires_at)
WHERE status = 'requires_action';
CREATE INDEX IF NOT EXISTS charges_by_capture ON charges (captured_at)
WHERE captured_at IS NOT NULL;

-- Money that went back. The sum per payment never exceeds the payment's amount.
CREATE TABLE IF NOT EXISTS refunds (
    refund_no INTEGER PRIMARY KEY,
    refund_id TEXT NOT NULL UNIQUE,
    payment_id TEXT NOT NULL REFERENCES charges (payment_id),
    idempotency_key TEXT,
    reference TEXT NOT NULL,
    amount INTEGER NOT NULL CHECK (amount > 0),
    currency TEXT NOT NULL,
    created_at TEXT NOT NULL,
    booked_us INTEGER NOT NULL
) STRICT;
CREATE INDEX IF NOT EXISTS refunds_by_payment ON refunds (payment_id);
CREATE INDEX IF NOT EXISTS refunds_by_reference ON refunds (reference);
CREATE INDEX IF NOT EXISTS refunds_by_creation ON refunds (created_at);

-- The answers kept under their keys. A key that expired and was used again has several rows; the
-- last one counts, up to and not including its expires_at.
CREATE TABLE IF NOT EXISTS stored_answers (
    answer_no INTEGER PRIMARY KEY,
    operation TEXT NOT NULL,
    idempotency_key TEXT NOT NULL,
    fingerprint TEXT NOT NULL,
    http_status INTEGER NOT NULL,
    body TEXT NOT NULL,
    payment_id TEXT,
    created_at TEXT NOT NULL,
    expires_at TEXT NOT NULL
) STRICT;
CREATE INDEX IF NOT EXISTS stored_answers_by_key ON stored_answers (operation, idempotency_key);

-- Every arrival at an operation of /v1, refused ones as well. arrived_us: when the
-- first byte reached the machine; call_no: in which order they were taken up.
-- http_status: what was answered; NULL = the process died first, or the connection was left
-- hanging and cut. limited = 1: refused by the limit. subject: the idempotency key, without one the
-- reference; of a look-up the reference or payment id asked for. send_no: the n-th send of its
-- subject that was served, NULL where it was refused or met its own key in flight. fault: what went
-- wrong on purpose, and fault_cause: 'injected' by chance, or asked for by a 'token' or 'script'.
CREATE TABLE IF NOT EXISTS calls (
    call_no INTEGER PRIMARY KEY,
    run_no INTEGER NOT NULL REFERENCES runs (run_no),
    arrived_us INTEGER NOT NULL,
    operation TEXT NOT NULL CHECK (operation IN ('charge', 'look_up', 'refund')),
    path TEXT NOT NULL,
    idempotency_key TEXT,
    subject TEXT,
    reference TEXT,
    http_status INTEGER,
    limited INTEGER NOT NULL DEFAULT 0,
    replayed INTEGER NOT NULL DEFAULT 0,
    send_no INTEGER,
    fault TEXT,
    fault_cause TEXT CHECK (fault_cause IN ('injected', 'token', 'script')),
    payment_id TEXT
) STRICT;
CREATE INDEX IF NOT EXISTS calls_by_subject
ON calls (operation, subject) WHERE send_no IS NOT NULL;
CREATE INDEX IF NOT EXISTS calls_by_time ON calls (arrived_us);

-- Outcomes that a test lined up for a token, each used up by one call.
CREATE TABLE IF NOT EXISTS script_outcomes (
    outcome_no INTEGER PRIMARY KEY,
    token TEXT NOT NULL,
    outcome TEXT NOT NULL,
    used_by_call INTEGER REFERENCES calls (call_no)
) STRICT;

-- What the control interface last set: clock, faults, latency, webhooks. JSON values.
CREATE TABLE IF NOT EXISTS controls (
    name TEXT PRIMARY KEY,
    value TEXT NOT NULL
) STRICT;

-- What the gateway has to tell, and how telling it went. Two deliveries of one event = a duplicate
-- on purpose.
CREATE TABLE IF NOT EXISTS webhook_events (
    event_no INTEGER PRIMARY KEY,
    event_id TEXT NOT NULL UNIQUE,
    event_type TEXT NOT NULL,
    payment_id TEXT NOT NULL,
    payload TEXT NOT NULL,
    created_us INTEGER NOT NULL
) STRICT;
CREATE TABLE IF NOT EXISTS webhook_deliveries (
    delivery_no INTEGER PRIMARY KEY,
    event_no INTEGER NOT NULL REFERENCES webhook_events (event_no),
    attempts INTEGER NOT NULL DEFAULT 0,
    last_answer TEXT,
    delivered_us INTEGER,
    given_up_us INTEGER
) STRICT;
CREATE INDEX IF NOT EXISTS webhook_deliveries_open
ON webhook_deliveries (delivery_no) WHERE delivered_us IS NULL AND given_up_us IS NULL;
