-- Recovery, refunds and settlement reports: their errors, tables, and the composite types that steps pass to one another.

INSERT INTO billing.error_code (sqlstate, name, http_status, meaning) VALUES
('SB210', 'unknown_resource', 404, 'No such resource of this customer.'),
('SB330', 'refund_exceeds_remaining', 409,
 'More was to be refunded than was paid and has not gone back yet. What is left stands in DETAIL, in minor units.'),
('SB331', 'refund_in_progress', 409, 'A refund of this invoice is on its way. Wait for its outcome.'),
('SB332', 'invoice_under_review', 409, 'A case about the money of this invoice is open; its id stands in DETAIL.'),
('SB333', 'attempts_capped', 409, 'The payment method was declined as often as its card network allows. Use another one.'),
('SB334', 'case_resolved', 409, 'The case was resolved before; how stands in DETAIL.'),
('SB211', 'unknown_settlement_report', 404, 'No such settlement report, or it has been compared already.'),
('SB335', 'attempt_not_open', 409, 'The attempt of the case has an outcome, so that none can be decided.');

CREATE TYPE billing.refund_request AS (
    customer_id bigint,
    refund_id bigint,
    claim_epoch integer,
    idempotency_key text,
    gateway_payment_id text,
    amount bigint,
    currency text,
    gateway_account text,
    gateway_refund_id text,
    send_no integer
);
COMMENT ON TYPE billing.refund_request IS
'What the shell sends to, or asks of, a gateway about a refund. amount in minor units; idempotency_key is also our reference there.';

CREATE TYPE billing.refund_result AS (
    customer_id bigint,
    refund_id bigint,
    claim_epoch integer,
    outcome text,
    gateway_refund_id text,
    amount bigint,
    currency text,
    code text,
    retry_after numeric,
    source text
);
COMMENT ON TYPE billing.refund_result IS
'What a gateway said about a refund. outcome: SUCCEEDED, DECLINED (refused for good), PROCESSING, NOT_ATTEMPTED, UNKNOWN, or NOT_FOUND from a look-up. amount in minor units, retry_after in seconds, source SEND, LOOKUP or WEBHOOK. claim_epoch NULL from a webhook.';

CREATE TYPE billing.refund_judgement AS (
    customer_id bigint,
    refund_id bigint,
    invoice_id bigint,
    source text,
    claim_epoch integer,
    outcome text,
    verdict text,
    refund_status text,
    gateway_refund_id text,
    amount bigint,
    currency text,
    code text,
    hold_seconds numeric,
    next_send_at timestamptz,
    next_lookup_at timestamptz,
    not_found_count integer,
    not_found_rounds integer,
    case_kind text
);
COMMENT ON TYPE billing.refund_judgement IS
'What was decided about one result of a refund; amount in minor units, case_kind what needs a person.';

CREATE TYPE billing.refund_settlement AS (
    customer_id bigint,
    refund_id bigint,
    outcome text,
    verdict text,
    refund_status text
);
COMMENT ON TYPE billing.refund_settlement IS
'What settle_refunds made of one result: verdict APPLIED, STALE, DUPLICATE or REJECTED, and the status afterwards.';

CREATE TYPE billing.refund_match AS (
    webhook_event_id bigint,
    customer_id bigint,
    refund_id bigint,
    way text,
    result billing.refund_result
);
COMMENT ON TYPE billing.refund_match IS
'Which refund a webhook is about. way: SETTLE, LOOKUP, IGNORED, UNMATCHED, REJECTED (another account) or AMBIGUOUS; result where it is to be settled.';

CREATE SEQUENCE billing.settlement_report_id_seq INCREMENT BY 64 MINVALUE 0 START WITH 64;

CREATE TABLE billing.settlement_report (
    settlement_report_id bigint NOT NULL DEFAULT nextval('billing.settlement_report_id_seq'),
    gateway_account_id integer NOT NULL,
    covers_from timestamptz NOT NULL,
    covers_to timestamptz NOT NULL,
    loaded_by text NOT NULL,
    is_fetched boolean NOT NULL DEFAULT false,
    opened_at timestamptz NOT NULL,
    compared_at timestamptz,
    CONSTRAINT settlement_report_pkey PRIMARY KEY (settlement_report_id),
    CONSTRAINT settlement_report_is_of_a_gateway_account FOREIGN KEY (gateway_account_id)
    REFERENCES billing.gateway_account (gateway_account_id),
    CONSTRAINT settlement_report_covers_some_time CHECK (covers_to > covers_from)
);
CREATE INDEX settlement_report_by_account ON billing.settlement_report (gateway_account_id, covers_to);
CREATE UNIQUE INDEX settlement_day_is_fetched_once ON billing.settlement_report (gateway_account_id, covers_from)
WHERE is_fetched;

COMMENT ON TABLE billing.settlement_report IS
'What a gateway says that it has settled within some time, loaded to be compared with what this database knows.';
COMMENT ON COLUMN billing.settlement_report.settlement_report_id IS 'Settlement report.';
COMMENT ON COLUMN billing.settlement_report.gateway_account_id IS 'Gateway account.';
COMMENT ON COLUMN billing.settlement_report.covers_from IS 'Start of what it covers, inclusive.';
COMMENT ON COLUMN billing.settlement_report.covers_to IS 'End of what it covers, exclusive.';
COMMENT ON COLUMN billing.settlement_report.loaded_by IS 'Who loaded it.';
COMMENT ON COLUMN billing.settlement_report.is_fetched IS
'True where a worker asks the gateway for it, a whole day of UTC each; false for a file that somebody has loaded.';
COMMENT ON COLUMN billing.settlement_report.opened_at IS 'Business time of loading.';
COMMENT ON COLUMN billing.settlement_report.compared_at IS 'Business time of comparing; NULL = lines may still be added.';

CREATE TABLE billing.settlement_line (
    settlement_report_id bigint NOT NULL,
    kind text NOT NULL,
    gateway_id text NOT NULL,
    reference text,
    amount bigint NOT NULL,
    currency text NOT NULL,
    CONSTRAINT settlement_line_pkey PRIMARY KEY (settlement_report_id, kind, gateway_id),
    CONSTRAINT settlement_line_is_of_a_report FOREIGN KEY (settlement_report_id)
    REFERENCES billing.settlement_report (settlement_report_id),
    CONSTRAINT settlement_line_kind_is_known CHECK (kind IN ('CHARGE', 'REFUND')),
    CONSTRAINT settlement_line_amount_is_positive CHECK (amount > 0)
);
CREATE INDEX settlement_line_by_reference ON billing.settlement_line (settlement_report_id, reference)
WHERE reference IS NOT NULL;

COMMENT ON TABLE billing.settlement_line IS 'One charge or refund of a settlement report.';
COMMENT ON COLUMN billing.settlement_line.settlement_report_id IS 'Settlement report.';
COMMENT ON COLUMN billing.settlement_line.kind IS 'CHARGE or REFUND.';
COMMENT ON COLUMN billing.settlement_line.gateway_id IS 'Payment or refund at the gateway.';
COMMENT ON COLUMN billing.settlement_line.reference IS 'Our reference as the gateway has it, or NULL.';
COMMENT ON COLUMN billing.settlement_line.amount IS 'Amount in minor units, positive for refunds as well.';
COMMENT ON COLUMN billing.settlement_line.currency IS 'Currency, ISO 4217.';

CREATE TYPE billing.settled_item AS (
    kind text,
    gateway_id text,
    reference text,
    amount bigint,
    currency text
);
COMMENT ON TYPE billing.settled_item IS
'One line of a settlement report: CHARGE or REFUND, its id at the gateway, our reference, amount in minor units, currency.';

CREATE TYPE billing.settlement_difference AS (
    kind text,
    item text,
    gateway_id text,
    customer_id bigint,
    invoice_id bigint,
    attempt_id bigint,
    refund_id bigint,
    amount bigint,
    currency text,
    detail jsonb
);
COMMENT ON TYPE billing.settlement_difference IS
'A difference between a settlement report and this database. kind: MISSING_AT_GATEWAY (we have it, they do not), MISSING_HERE (they have it, we do not) or SETTLEMENT_MISMATCH; item: CHARGE or REFUND; amounts in minor units.';
