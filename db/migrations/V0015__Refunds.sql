-- Recovery and refunds: their errors, and the composite types that the steps of a refund pass to one another.

INSERT INTO billing.error_code (sqlstate, name, http_status, meaning) VALUES
('SB210', 'unknown_resource', 404, 'No such resource of this customer.'),
('SB330', 'refund_exceeds_remaining', 409,
 'More was to be refunded than was paid and has not gone back yet. What is left stands in DETAIL, in minor units.'),
('SB331', 'refund_in_progress', 409, 'A refund of this invoice is on its way. Wait for its outcome.'),
('SB332', 'invoice_under_review', 409, 'A case about the money of this invoice is open; its id stands in DETAIL.'),
('SB333', 'attempts_capped', 409, 'The payment method was declined as often as its card network allows. Use another one.'),
('SB334', 'case_resolved', 409, 'The case was resolved before; how stands in DETAIL.'),
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
