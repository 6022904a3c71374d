-- Efforts to collect invoices, what gateways said about them, and what needs a person.

CREATE SEQUENCE billing.attempt_id_seq INCREMENT BY 64 MINVALUE 0 START WITH 64;
CREATE SEQUENCE billing.payment_report_id_seq INCREMENT BY 64 MINVALUE 0 START WITH 64;
CREATE SEQUENCE billing.refund_id_seq INCREMENT BY 64 MINVALUE 0 START WITH 64;
CREATE SEQUENCE billing.refund_report_id_seq INCREMENT BY 64 MINVALUE 0 START WITH 64;
CREATE SEQUENCE billing.webhook_event_id_seq INCREMENT BY 64 MINVALUE 0 START WITH 64;
CREATE SEQUENCE billing.case_id_seq INCREMENT BY 64 MINVALUE 0 START WITH 64;

CREATE TABLE billing.payment_attempt (
    customer_id bigint NOT NULL,
    attempt_id bigint NOT NULL DEFAULT nextval('billing.attempt_id_seq'),
    invoice_id bigint NOT NULL,
    attempt_no integer NOT NULL,
    status text NOT NULL DEFAULT 'STARTED',
    amount bigint NOT NULL,
    currency text NOT NULL,
    idempotency_key text NOT NULL,
    gateway_account_id integer,
    payment_method_id bigint,
    payment_method_token text,
    description text NOT NULL,
    gateway_intent_id text,
    gateway_payment_id text,
    captured_amount bigint,
    booked_amount bigint,
    decline_code text,
    decline_class text,
    action_expires_at timestamptz,
    claim_epoch integer NOT NULL DEFAULT 1,
    claimed_by text,
    lease_until timestamptz,
    send_count integer NOT NULL DEFAULT 0,
    refusal_count integer NOT NULL DEFAULT 0,
    last_sent_at timestamptz,
    lookup_count integer NOT NULL DEFAULT 0,
    not_found_count integer NOT NULL DEFAULT 0,
    not_found_rounds integer NOT NULL DEFAULT 0,
    next_lookup_at timestamptz,
    started_at timestamptz NOT NULL,
    ended_at timestamptz,
    recorded_at timestamptz NOT NULL DEFAULT clock_timestamp(),
    CONSTRAINT payment_attempt_pkey PRIMARY KEY (customer_id, attempt_id),
    CONSTRAINT attempt_number_is_unique_per_invoice UNIQUE (customer_id, invoice_id, attempt_no),
    CONSTRAINT gateway_key_is_used_once UNIQUE (idempotency_key),
    CONSTRAINT attempt_collects_an_invoice_of_its_customer FOREIGN KEY (customer_id, invoice_id)
    REFERENCES billing.invoice (customer_id, invoice_id),
    CONSTRAINT attempt_uses_a_method_of_its_customer FOREIGN KEY (customer_id, payment_method_id)
    REFERENCES billing.payment_method (customer_id, payment_method_id),
    CONSTRAINT attempt_status_is_known CHECK (
        status IN ('STARTED', 'UNKNOWN', 'REQUIRES_ACTION', 'PROCESSING', 'SUCCEEDED', 'DECLINED', 'ABANDONED')
    ),
    CONSTRAINT attempt_amount_is_positive CHECK (amount > 0),
    CONSTRAINT attempt_has_a_method_unless_there_is_none CHECK (
        (payment_method_id IS NULL) = (payment_method_token IS NULL)
        AND (payment_method_id IS NULL) = (gateway_account_id IS NULL)
    ),
    CONSTRAINT only_an_ended_attempt_has_an_end CHECK (
        (status IN ('SUCCEEDED', 'DECLINED', 'ABANDONED')) = (ended_at IS NOT NULL)
    ),
    CONSTRAINT declined_attempt_says_why CHECK (
        (decline_code IS NULL) = (decline_class IS NULL) AND (status <> 'DECLINED' OR decline_code IS NOT NULL)
    ),
    CONSTRAINT attempt_decline_class_is_known CHECK (decline_class IN ('SOFT', 'HARD', 'CUSTOMER')),
    CONSTRAINT only_a_success_captures_money CHECK (
        (status = 'SUCCEEDED') = (captured_amount IS NOT NULL)
        AND (captured_amount IS NULL) = (booked_amount IS NULL)
        AND booked_amount BETWEEN 0 AND captured_amount
    ),
    CONSTRAINT action_has_an_expiry CHECK (status <> 'REQUIRES_ACTION' OR action_expires_at IS NOT NULL),
    CONSTRAINT ended_attempt_is_not_looked_up CHECK (ended_at IS NULL OR (next_lookup_at IS NULL AND lease_until IS NULL))
);
CREATE INDEX payment_attempt_by_id ON billing.payment_attempt (attempt_id);
CREATE UNIQUE INDEX at_most_one_open_attempt_per_invoice ON billing.payment_attempt (customer_id, invoice_id)
WHERE status IN ('STARTED', 'UNKNOWN', 'REQUIRES_ACTION', 'PROCESSING');
CREATE UNIQUE INDEX gateway_payment_is_booked_once ON billing.payment_attempt (gateway_account_id, gateway_payment_id)
WHERE gateway_payment_id IS NOT NULL;
CREATE INDEX payment_attempt_to_look_up ON billing.payment_attempt (gateway_account_id, next_lookup_at)
WHERE next_lookup_at IS NOT NULL;
CREATE INDEX payment_attempt_leased ON billing.payment_attempt (lease_until) WHERE lease_until IS NOT NULL;
CREATE INDEX payment_attempt_by_start ON billing.payment_attempt USING brin (started_at);
CREATE INDEX payment_attempt_by_method ON billing.payment_attempt (customer_id, payment_method_id);

COMMENT ON TABLE billing.payment_attempt IS
'One effort to collect one invoice. Committed before anything is sent; what was sent is repeated byte by byte. Open: STARTED, UNKNOWN, REQUIRES_ACTION, PROCESSING. Ended: SUCCEEDED, DECLINED, ABANDONED; an ended attempt is rewritten by nothing but a success, since money that moved is recorded whoever reports it.';
COMMENT ON COLUMN billing.payment_attempt.customer_id IS 'Customer.';
COMMENT ON COLUMN billing.payment_attempt.attempt_id IS 'Payment attempt.';
COMMENT ON COLUMN billing.payment_attempt.invoice_id IS 'Invoice to collect.';
COMMENT ON COLUMN billing.payment_attempt.attempt_no IS 'Number of the try within the invoice, from 1; moves only after a definite answer.';
COMMENT ON COLUMN billing.payment_attempt.status IS
'Rank: STARTED < UNKNOWN < REQUIRES_ACTION < PROCESSING < DECLINED < SUCCEEDED; ABANDONED ends an attempt that was never charged.';
COMMENT ON COLUMN billing.payment_attempt.amount IS 'Amount sent, in minor units.';
COMMENT ON COLUMN billing.payment_attempt.currency IS 'Currency sent, ISO 4217.';
COMMENT ON COLUMN billing.payment_attempt.idempotency_key IS
'<prefix>-inv-<invoice id>-try-<n>: key and reference at the gateway, unique in the world.';
COMMENT ON COLUMN billing.payment_attempt.gateway_account_id IS 'Gateway account; NULL where there was no payment method.';
COMMENT ON COLUMN billing.payment_attempt.payment_method_id IS 'Payment method; NULL where there was none.';
COMMENT ON COLUMN billing.payment_attempt.payment_method_token IS 'Token sent; ''erased'' once the customer is.';
COMMENT ON COLUMN billing.payment_attempt.description IS 'Text sent.';
COMMENT ON COLUMN billing.payment_attempt.gateway_intent_id IS
'Intent of an earlier try that this one confirms again; NULL where it makes one, or where the gateway has none.';
COMMENT ON COLUMN billing.payment_attempt.gateway_payment_id IS 'Payment at the gateway, once known; unique per account.';
COMMENT ON COLUMN billing.payment_attempt.captured_amount IS
'What moved, as the gateway said, in minor units; NULL unless SUCCEEDED.';
COMMENT ON COLUMN billing.payment_attempt.booked_amount IS
'Of that, what paid the invoice; the rest was late or too much, and became credit, a refund or a case.';
COMMENT ON COLUMN billing.payment_attempt.decline_code IS 'Code of the decline.';
COMMENT ON COLUMN billing.payment_attempt.decline_class IS 'SOFT, HARD or CUSTOMER.';
COMMENT ON COLUMN billing.payment_attempt.action_expires_at IS 'Until when the customer may complete the required action.';
COMMENT ON COLUMN billing.payment_attempt.claim_epoch IS
'Grows with every claim for a send or a look-up; a report with an older epoch is stale, unless it is a success.';
COMMENT ON COLUMN billing.payment_attempt.claimed_by IS 'Worker of the last claim.';
COMMENT ON COLUMN billing.payment_attempt.lease_until IS
'Wall clock until which the claim holds; a STARTED attempt past it is UNKNOWN. NULL = not claimed.';
COMMENT ON COLUMN billing.payment_attempt.send_count IS 'Claims for a send, the first included.';
COMMENT ON COLUMN billing.payment_attempt.refusal_count IS 'Sends in a row that were definitely not executed (429, connection refused).';
COMMENT ON COLUMN billing.payment_attempt.last_sent_at IS 'Business time of the last claim for a send.';
COMMENT ON COLUMN billing.payment_attempt.lookup_count IS 'Claims for a look-up.';
COMMENT ON COLUMN billing.payment_attempt.not_found_count IS 'Look-ups in a row, after the settle window, that found nothing.';
COMMENT ON COLUMN billing.payment_attempt.not_found_rounds IS 'Times it returned to the queue because nothing was found.';
COMMENT ON COLUMN billing.payment_attempt.next_lookup_at IS 'Business time of the next look-up; NULL = none.';
COMMENT ON COLUMN billing.payment_attempt.started_at IS 'Business time of the first commit, from which the life of the key counts.';
COMMENT ON COLUMN billing.payment_attempt.ended_at IS 'Business time of the definite answer.';
COMMENT ON COLUMN billing.payment_attempt.recorded_at IS 'Wall clock at which it was started.';

CREATE FUNCTION billing.guard_attempt()
RETURNS trigger
LANGUAGE plpgsql
SET search_path = ''
AS $function$
-- Locks:      nothing
-- Writes:     nothing
-- Raises:     SB901 a stored request or an ended attempt was to be changed
-- Idempotent: yes
BEGIN
    -- Nothing is sent for it any more, and its customer is erased.
    IF old.ended_at IS NOT NULL AND new.payment_method_token = 'erased'
        AND to_jsonb(new) - 'payment_method_token' = to_jsonb(old) - 'payment_method_token'
    THEN
        RETURN new;
    END IF;
    IF (new.invoice_id, new.attempt_no, new.amount, new.currency, new.idempotency_key, new.description, new.started_at)
        IS DISTINCT FROM
        (old.invoice_id, old.attempt_no, old.amount, old.currency, old.idempotency_key, old.description, old.started_at)
        OR (new.payment_method_id, new.payment_method_token, new.gateway_account_id, new.gateway_intent_id)
        IS DISTINCT FROM
        (old.payment_method_id, old.payment_method_token, old.gateway_account_id, old.gateway_intent_id)
    THEN
        RAISE EXCEPTION USING
            ERRCODE = 'SB901',
            MESSAGE = format('the stored request of attempt %s was to be changed', old.attempt_id);
    END IF;
    IF old.ended_at IS NOT NULL AND NOT (new.status = 'SUCCEEDED' AND old.status <> 'SUCCEEDED') THEN
        RAISE EXCEPTION USING
            ERRCODE = 'SB901',
            MESSAGE = format('attempt %s has ended (%s) and was to be overwritten', old.attempt_id, old.status);
    END IF;
    RETURN new;
END;
$function$;

COMMENT ON FUNCTION billing.guard_attempt IS
'Trigger: what was sent never changes; an ended attempt is rewritten by nothing but a success. Erasure takes the token of an ended one.';

CREATE TRIGGER attempt_keeps_what_was_sent BEFORE UPDATE ON billing.payment_attempt
FOR EACH ROW WHEN (
    old.ended_at IS NOT NULL
    OR old.invoice_id <> new.invoice_id OR old.attempt_no <> new.attempt_no
    OR old.amount <> new.amount OR old.currency <> new.currency
    OR old.idempotency_key <> new.idempotency_key OR old.description <> new.description
    OR old.started_at <> new.started_at
    OR old.payment_method_id IS DISTINCT FROM new.payment_method_id
    OR old.payment_method_token IS DISTINCT FROM new.payment_method_token
    OR old.gateway_account_id IS DISTINCT FROM new.gateway_account_id
    OR old.gateway_intent_id IS DISTINCT FROM new.gateway_intent_id
)
EXECUTE FUNCTION billing.guard_attempt();
CREATE TRIGGER attempt_is_never_deleted BEFORE DELETE ON billing.payment_attempt
FOR EACH ROW EXECUTE FUNCTION billing.refuse_change();
CREATE TRIGGER attempt_is_never_truncated BEFORE TRUNCATE ON billing.payment_attempt
FOR EACH STATEMENT EXECUTE FUNCTION billing.refuse_change();

CREATE TABLE billing.payment_report (
    customer_id bigint NOT NULL,
    payment_report_id bigint NOT NULL DEFAULT nextval('billing.payment_report_id_seq'),
    attempt_id bigint NOT NULL,
    source text NOT NULL,
    claim_epoch integer,
    outcome text NOT NULL,
    verdict text NOT NULL,
    gateway_payment_id text,
    amount bigint,
    currency text,
    code text,
    as_of timestamptz NOT NULL,
    recorded_at timestamptz NOT NULL DEFAULT clock_timestamp(),
    CONSTRAINT payment_report_pkey PRIMARY KEY (customer_id, payment_report_id),
    CONSTRAINT report_is_about_an_attempt FOREIGN KEY (customer_id, attempt_id)
    REFERENCES billing.payment_attempt (customer_id, attempt_id),
    CONSTRAINT report_source_is_known CHECK (source IN ('SEND', 'LOOKUP', 'WEBHOOK', 'ENGINE')),
    CONSTRAINT report_outcome_is_known CHECK (
        outcome IN (
            'SUCCEEDED', 'DECLINED', 'REQUIRES_ACTION', 'PROCESSING', 'NOT_ATTEMPTED', 'UNKNOWN', 'NOT_FOUND'
        )
    ),
    CONSTRAINT report_verdict_is_known CHECK (verdict IN ('APPLIED', 'STALE', 'DUPLICATE', 'REJECTED'))
);
CREATE INDEX payment_report_by_attempt ON billing.payment_report (customer_id, attempt_id);

COMMENT ON TABLE billing.payment_report IS
'Everything that was said about an attempt, by an answer, a look-up, a webhook or the engine itself, whether it was applied or not.';
COMMENT ON COLUMN billing.payment_report.customer_id IS 'Customer.';
COMMENT ON COLUMN billing.payment_report.payment_report_id IS 'Report.';
COMMENT ON COLUMN billing.payment_report.attempt_id IS 'Attempt.';
COMMENT ON COLUMN billing.payment_report.source IS 'SEND, LOOKUP, WEBHOOK, or ENGINE where no gateway was asked.';
COMMENT ON COLUMN billing.payment_report.claim_epoch IS 'Epoch of the claim that it answers; NULL for a webhook.';
COMMENT ON COLUMN billing.payment_report.outcome IS
'SUCCEEDED, DECLINED, REQUIRES_ACTION, PROCESSING, NOT_ATTEMPTED, UNKNOWN or NOT_FOUND.';
COMMENT ON COLUMN billing.payment_report.verdict IS
'APPLIED, STALE (older epoch or lower rank), DUPLICATE (says what is known) or REJECTED (binding failed, a case is open).';
COMMENT ON COLUMN billing.payment_report.gateway_payment_id IS 'Payment at the gateway as reported.';
COMMENT ON COLUMN billing.payment_report.amount IS 'Amount as reported, in minor units.';
COMMENT ON COLUMN billing.payment_report.currency IS 'Currency as reported.';
COMMENT ON COLUMN billing.payment_report.code IS 'Decline or error code as reported.';
COMMENT ON COLUMN billing.payment_report.as_of IS 'Business time.';
COMMENT ON COLUMN billing.payment_report.recorded_at IS 'Wall clock.';

CREATE TRIGGER payment_report_is_append_only BEFORE UPDATE OR DELETE ON billing.payment_report
FOR EACH ROW EXECUTE FUNCTION billing.refuse_change();
CREATE TRIGGER payment_report_is_never_truncated BEFORE TRUNCATE ON billing.payment_report
FOR EACH STATEMENT EXECUTE FUNCTION billing.refuse_change();

CREATE TABLE billing.refund (
    customer_id bigint NOT NULL,
    refund_id bigint NOT NULL DEFAULT nextval('billing.refund_id_seq'),
    invoice_id bigint NOT NULL,
    attempt_id bigint NOT NULL,
    refund_no integer NOT NULL,
    purpose text NOT NULL,
    status text NOT NULL DEFAULT 'REQUESTED',
    amount bigint NOT NULL,
    currency text NOT NULL,
    idempotency_key text NOT NULL,
    gateway_account_id integer NOT NULL,
    gateway_payment_id text NOT NULL,
    gateway_refund_id text,
    failure_code text,
    claim_epoch integer NOT NULL DEFAULT 0,
    claimed_by text,
    lease_until timestamptz,
    send_count integer NOT NULL DEFAULT 0,
    refusal_count integer NOT NULL DEFAULT 0,
    first_sent_at timestamptz,
    last_sent_at timestamptz,
    next_send_at timestamptz,
    held_until timestamptz,
    lookup_count integer NOT NULL DEFAULT 0,
    not_found_count integer NOT NULL DEFAULT 0,
    not_found_rounds integer NOT NULL DEFAULT 0,
    next_lookup_at timestamptz,
    requested_by text NOT NULL,
    requested_at timestamptz NOT NULL,
    ended_at timestamptz,
    CONSTRAINT refund_pkey PRIMARY KEY (customer_id, refund_id),
    CONSTRAINT refund_number_is_unique_per_invoice UNIQUE (customer_id, invoice_id, refund_no),
    CONSTRAINT refund_key_is_used_once UNIQUE (idempotency_key),
    CONSTRAINT refund_is_of_an_invoice_of_its_customer FOREIGN KEY (customer_id, invoice_id)
    REFERENCES billing.invoice (customer_id, invoice_id),
    CONSTRAINT refund_gives_back_what_an_attempt_captured FOREIGN KEY (customer_id, attempt_id)
    REFERENCES billing.payment_attempt (customer_id, attempt_id),
    CONSTRAINT refund_purpose_is_known CHECK (purpose IN ('REQUESTED', 'UNUSED_TIME', 'LATE_PAYMENT')),
    CONSTRAINT refund_status_is_known CHECK (
        status IN ('REQUESTED', 'STARTED', 'UNKNOWN', 'PROCESSING', 'SUCCEEDED', 'FAILED')
    ),
    CONSTRAINT refund_amount_is_positive CHECK (amount > 0),
    CONSTRAINT only_an_ended_refund_has_an_end CHECK ((status IN ('SUCCEEDED', 'FAILED')) = (ended_at IS NOT NULL)),
    CONSTRAINT failed_refund_says_why CHECK (status <> 'FAILED' OR failure_code IS NOT NULL),
    CONSTRAINT ended_refund_is_not_sent CHECK (ended_at IS NULL OR next_send_at IS NULL)
);
CREATE INDEX refund_by_id ON billing.refund (refund_id);
CREATE UNIQUE INDEX gateway_refund_is_booked_once ON billing.refund (gateway_account_id, gateway_refund_id)
WHERE gateway_refund_id IS NOT NULL;
CREATE INDEX refund_to_send ON billing.refund (gateway_account_id, next_send_at) WHERE next_send_at IS NOT NULL;
CREATE INDEX refund_to_look_up ON billing.refund (gateway_account_id, next_lookup_at) WHERE next_lookup_at IS NOT NULL;
CREATE INDEX refund_leased ON billing.refund (lease_until) WHERE lease_until IS NOT NULL;
CREATE INDEX refund_by_attempt ON billing.refund (customer_id, attempt_id);

COMMENT ON TABLE billing.refund IS
'Money on its way back: an intent, committed before anything is sent, then the protocol of an attempt. Open: REQUESTED, STARTED, UNKNOWN, PROCESSING. Ended: SUCCEEDED, FAILED; one becomes the other where the gateway, asked once more, says so, since a bank may send a refund back days later.';
COMMENT ON COLUMN billing.refund.customer_id IS 'Customer.';
COMMENT ON COLUMN billing.refund.refund_id IS 'Refund.';
COMMENT ON COLUMN billing.refund.invoice_id IS 'Invoice that the money was paid for.';
COMMENT ON COLUMN billing.refund.attempt_id IS 'Attempt that captured it.';
COMMENT ON COLUMN billing.refund.refund_no IS 'Number within the invoice, from 1.';
COMMENT ON COLUMN billing.refund.purpose IS
'REQUESTED by a caller, UNUSED_TIME of a cancelled subscription, or LATE_PAYMENT: money that never paid the invoice.';
COMMENT ON COLUMN billing.refund.status IS
'REQUESTED (to be sent), STARTED (claimed for a send), UNKNOWN, PROCESSING (accepted by the gateway), SUCCEEDED or FAILED.';
COMMENT ON COLUMN billing.refund.amount IS 'Amount to send back, in minor units.';
COMMENT ON COLUMN billing.refund.currency IS 'Currency, ISO 4217.';
COMMENT ON COLUMN billing.refund.idempotency_key IS
'<prefix>-inv-<invoice id>-refund-<n>: key and reference at the gateway, unique in the world.';
COMMENT ON COLUMN billing.refund.gateway_account_id IS 'Gateway account that captured the payment.';
COMMENT ON COLUMN billing.refund.gateway_payment_id IS 'Payment at the gateway.';
COMMENT ON COLUMN billing.refund.gateway_refund_id IS 'Refund at the gateway, once known; unique per account.';
COMMENT ON COLUMN billing.refund.failure_code IS 'Why the gateway refused it for good.';
COMMENT ON COLUMN billing.refund.claim_epoch IS
'Grows with every claim for a send or a look-up; a report with an older epoch is stale, unless it is a success.';
COMMENT ON COLUMN billing.refund.claimed_by IS 'Worker of the last claim.';
COMMENT ON COLUMN billing.refund.lease_until IS
'Wall clock until which the claim holds; a STARTED refund past it is UNKNOWN. NULL = not claimed.';
COMMENT ON COLUMN billing.refund.send_count IS 'Claims for a send.';
COMMENT ON COLUMN billing.refund.refusal_count IS 'Sends in a row that were definitely not executed.';
COMMENT ON COLUMN billing.refund.first_sent_at IS
'Business time of the first claim for a send, from which the life of the key counts.';
COMMENT ON COLUMN billing.refund.last_sent_at IS 'Business time of the last claim for a send.';
COMMENT ON COLUMN billing.refund.next_send_at IS 'Business time from which the stored request may be sent; NULL = not now.';
COMMENT ON COLUMN billing.refund.held_until IS 'Wall clock before which the gateway asked not to be called; NULL = none.';
COMMENT ON COLUMN billing.refund.lookup_count IS 'Claims for a look-up.';
COMMENT ON COLUMN billing.refund.not_found_count IS 'Look-ups in a row, after the settle window, that found nothing.';
COMMENT ON COLUMN billing.refund.not_found_rounds IS 'Times it returned to the queue because nothing was found.';
COMMENT ON COLUMN billing.refund.next_lookup_at IS 'Business time of the next look-up; NULL = none.';
COMMENT ON COLUMN billing.refund.requested_by IS 'Who asked for it.';
COMMENT ON COLUMN billing.refund.requested_at IS 'Business time of the request.';
COMMENT ON COLUMN billing.refund.ended_at IS 'Business time of the definite answer.';

CREATE FUNCTION billing.guard_refund()
RETURNS trigger
LANGUAGE plpgsql
SET search_path = ''
AS $function$
-- Locks:      nothing
-- Writes:     nothing
-- Raises:     SB901 a stored request or an ended refund was to be changed
-- Idempotent: yes
BEGIN
    IF (new.customer_id, new.invoice_id, new.attempt_id, new.refund_no, new.amount, new.currency, new.idempotency_key)
        IS DISTINCT FROM
        (old.customer_id, old.invoice_id, old.attempt_id, old.refund_no, old.amount, old.currency, old.idempotency_key)
        OR (new.gateway_account_id, new.gateway_payment_id)
        IS DISTINCT FROM (old.gateway_account_id, old.gateway_payment_id)
    THEN
        RAISE EXCEPTION USING
            ERRCODE = 'SB901',
            MESSAGE = format('the stored request of refund %s was to be changed', old.refund_id);
    END IF;
    IF old.ended_at IS NOT NULL AND (
        new.ended_at IS NULL
        OR (
            new.status = old.status
            AND (new.gateway_refund_id, new.failure_code, new.ended_at)
            IS DISTINCT FROM (old.gateway_refund_id, old.failure_code, old.ended_at)
        )
    ) THEN
        RAISE EXCEPTION USING
            ERRCODE = 'SB901',
            MESSAGE = format('refund %s has ended (%s) and was to be overwritten', old.refund_id, old.status);
    END IF;
    RETURN new;
END;
$function$;

COMMENT ON FUNCTION billing.guard_refund IS
'Trigger: what is sent never changes; an ended refund never opens again, and is rewritten by nothing but the other end.';

CREATE TRIGGER refund_keeps_what_was_asked BEFORE UPDATE ON billing.refund
FOR EACH ROW EXECUTE FUNCTION billing.guard_refund();
CREATE TRIGGER refund_is_never_deleted BEFORE DELETE ON billing.refund
FOR EACH ROW EXECUTE FUNCTION billing.refuse_change();
CREATE TRIGGER refund_is_never_truncated BEFORE TRUNCATE ON billing.refund
FOR EACH STATEMENT EXECUTE FUNCTION billing.refuse_change();

CREATE TABLE billing.refund_report (
    customer_id bigint NOT NULL,
    refund_report_id bigint NOT NULL DEFAULT nextval('billing.refund_report_id_seq'),
    refund_id bigint NOT NULL,
    source text NOT NULL,
    claim_epoch integer,
    outcome text NOT NULL,
    verdict text NOT NULL,
    gateway_refund_id text,
    amount bigint,
    currency text,
    code text,
    as_of timestamptz NOT NULL,
    recorded_at timestamptz NOT NULL DEFAULT clock_timestamp(),
    CONSTRAINT refund_report_pkey PRIMARY KEY (customer_id, refund_report_id),
    CONSTRAINT report_is_about_a_refund FOREIGN KEY (customer_id, refund_id)
    REFERENCES billing.refund (customer_id, refund_id),
    CONSTRAINT refund_report_source_is_known CHECK (source IN ('SEND', 'LOOKUP', 'WEBHOOK')),
    CONSTRAINT refund_report_outcome_is_known CHECK (
        outcome IN ('SUCCEEDED', 'DECLINED', 'PROCESSING', 'NOT_ATTEMPTED', 'UNKNOWN', 'NOT_FOUND')
    ),
    CONSTRAINT refund_report_verdict_is_known CHECK (verdict IN ('APPLIED', 'STALE', 'DUPLICATE', 'REJECTED'))
);
CREATE INDEX refund_report_by_refund ON billing.refund_report (customer_id, refund_id);

COMMENT ON TABLE billing.refund_report IS 'Everything that was said about a refund, whether it was applied or not.';
COMMENT ON COLUMN billing.refund_report.customer_id IS 'Customer.';
COMMENT ON COLUMN billing.refund_report.refund_report_id IS 'Report.';
COMMENT ON COLUMN billing.refund_report.refund_id IS 'Refund.';
COMMENT ON COLUMN billing.refund_report.source IS 'SEND, LOOKUP or WEBHOOK.';
COMMENT ON COLUMN billing.refund_report.claim_epoch IS 'Epoch of the claim that it answers; NULL for a webhook.';
COMMENT ON COLUMN billing.refund_report.outcome IS
'SUCCEEDED, DECLINED, PROCESSING, NOT_ATTEMPTED, UNKNOWN or NOT_FOUND.';
COMMENT ON COLUMN billing.refund_report.verdict IS
'APPLIED, STALE (older epoch or lower rank), DUPLICATE (says what is known) or REJECTED (binding failed, a case is open).';
COMMENT ON COLUMN billing.refund_report.gateway_refund_id IS 'Refund at the gateway as reported.';
COMMENT ON COLUMN billing.refund_report.amount IS 'Amount as reported, in minor units.';
COMMENT ON COLUMN billing.refund_report.currency IS 'Currency as reported.';
COMMENT ON COLUMN billing.refund_report.code IS 'Error code as reported.';
COMMENT ON COLUMN billing.refund_report.as_of IS 'Business time.';
COMMENT ON COLUMN billing.refund_report.recorded_at IS 'Wall clock.';

CREATE TRIGGER refund_report_is_append_only BEFORE UPDATE OR DELETE ON billing.refund_report
FOR EACH ROW EXECUTE FUNCTION billing.refuse_change();
CREATE TRIGGER refund_report_is_never_truncated BEFORE TRUNCATE ON billing.refund_report
FOR EACH STATEMENT EXECUTE FUNCTION billing.refuse_change();

CREATE TABLE billing.webhook_event (
    webhook_event_id bigint NOT NULL DEFAULT nextval('billing.webhook_event_id_seq'),
    gateway_account_id integer NOT NULL,
    event_id text NOT NULL,
    event_type text NOT NULL,
    payload jsonb,
    status text NOT NULL DEFAULT 'RECEIVED',
    customer_id bigint,
    attempt_id bigint,
    refund_id bigint,
    failure_count integer NOT NULL DEFAULT 0,
    last_error text,
    next_try_at timestamptz NOT NULL DEFAULT clock_timestamp(),
    received_at timestamptz NOT NULL,
    received_wall_at timestamptz NOT NULL DEFAULT clock_timestamp(),
    processed_at timestamptz,
    CONSTRAINT webhook_event_pkey PRIMARY KEY (webhook_event_id),
    CONSTRAINT webhook_event_is_stored_once UNIQUE (gateway_account_id, event_id),
    CONSTRAINT webhook_comes_from_a_gateway_account FOREIGN KEY (gateway_account_id)
    REFERENCES billing.gateway_account (gateway_account_id),
    CONSTRAINT webhook_matched_an_attempt FOREIGN KEY (customer_id, attempt_id)
    REFERENCES billing.payment_attempt (customer_id, attempt_id),
    CONSTRAINT webhook_matched_a_refund FOREIGN KEY (customer_id, refund_id)
    REFERENCES billing.refund (customer_id, refund_id),
    CONSTRAINT webhook_status_is_known CHECK (
        status IN ('RECEIVED', 'APPLIED', 'DUPLICATE', 'IGNORED', 'LOOKUP', 'UNMATCHED', 'REJECTED', 'CASE')
    ),
    CONSTRAINT webhook_event_id_is_short CHECK (length(event_id) BETWEEN 1 AND 255)
);
CREATE INDEX webhook_event_to_process ON billing.webhook_event (next_try_at)
WHERE status IN ('RECEIVED', 'UNMATCHED');
CREATE INDEX webhook_event_by_attempt ON billing.webhook_event (customer_id, attempt_id) WHERE attempt_id IS NOT NULL;

COMMENT ON TABLE billing.webhook_event IS 'Inbox of gateway events: stored before they are acknowledged, processed by a job.';
COMMENT ON COLUMN billing.webhook_event.webhook_event_id IS 'Webhook event.';
COMMENT ON COLUMN billing.webhook_event.gateway_account_id IS 'Account on whose endpoint, and with whose signature, it came.';
COMMENT ON COLUMN billing.webhook_event.event_id IS 'Id given by the gateway, unique per account.';
COMMENT ON COLUMN billing.webhook_event.event_type IS 'Type given by the gateway.';
COMMENT ON COLUMN billing.webhook_event.payload IS
'paymentId, refundId, reference, outcome, amount, currency, code as the adapter read them; dropped after 45 days.';
COMMENT ON COLUMN billing.webhook_event.status IS
'RECEIVED, APPLIED, DUPLICATE (said what is known), IGNORED (of no concern), LOOKUP (caused a look-up), UNMATCHED (tried again), REJECTED (another account) or CASE.';
COMMENT ON COLUMN billing.webhook_event.customer_id IS 'Customer of the attempt that it matched.';
COMMENT ON COLUMN billing.webhook_event.attempt_id IS 'Attempt that it matched.';
COMMENT ON COLUMN billing.webhook_event.refund_id IS 'Refund that it matched.';
COMMENT ON COLUMN billing.webhook_event.failure_count IS 'Times that processing failed.';
COMMENT ON COLUMN billing.webhook_event.last_error IS 'SQLSTATE and message of the last failure.';
COMMENT ON COLUMN billing.webhook_event.next_try_at IS 'Wall clock of the next try.';
COMMENT ON COLUMN billing.webhook_event.received_at IS 'Business time of receipt.';
COMMENT ON COLUMN billing.webhook_event.received_wall_at IS 'Wall clock of receipt.';
COMMENT ON COLUMN billing.webhook_event.processed_at IS 'Business time of the final status.';

CREATE TABLE billing.reconciliation_case (
    case_id bigint NOT NULL DEFAULT nextval('billing.case_id_seq'),
    kind text NOT NULL,
    customer_id bigint,
    invoice_id bigint,
    attempt_id bigint,
    refund_id bigint,
    webhook_event_id bigint,
    amount bigint,
    currency text,
    detail jsonb NOT NULL DEFAULT '{}',
    opened_at timestamptz NOT NULL,
    resolved_at timestamptz,
    resolved_by text,
    resolution text,
    CONSTRAINT reconciliation_case_pkey PRIMARY KEY (case_id),
    CONSTRAINT case_is_about_an_attempt_of_its_customer FOREIGN KEY (customer_id, attempt_id)
    REFERENCES billing.payment_attempt (customer_id, attempt_id),
    CONSTRAINT case_is_about_an_invoice_of_its_customer FOREIGN KEY (customer_id, invoice_id)
    REFERENCES billing.invoice (customer_id, invoice_id),
    CONSTRAINT case_is_about_a_refund_of_its_customer FOREIGN KEY (customer_id, refund_id)
    REFERENCES billing.refund (customer_id, refund_id),
    CONSTRAINT case_is_about_a_stored_webhook FOREIGN KEY (webhook_event_id)
    REFERENCES billing.webhook_event (webhook_event_id),
    CONSTRAINT case_kind_is_known CHECK (
        kind IN (
            'UNKNOWN_OUTCOME', 'AMOUNT_MISMATCH', 'CURRENCY_MISMATCH', 'BINDING_MISMATCH', 'LATE_PAYMENT',
            'UNMATCHED_WEBHOOK', 'AMBIGUOUS_WEBHOOK', 'BANK_REVERSAL', 'DISPUTE', 'REFUND_FAILED', 'REFUND_MISMATCH',
            'REFUND_UNKNOWN', 'MISSING_AT_GATEWAY', 'MISSING_HERE', 'SETTLEMENT_MISMATCH'
        )
    ),
    CONSTRAINT resolved_case_says_by_whom_and_how CHECK (
        (resolved_at IS NULL) = (resolved_by IS NULL) AND (resolved_at IS NULL) = (resolution IS NULL)
    )
);
CREATE INDEX case_open ON billing.reconciliation_case (opened_at) WHERE resolved_at IS NULL;
CREATE UNIQUE INDEX one_open_case_per_attempt_and_kind ON billing.reconciliation_case (customer_id, attempt_id, kind)
WHERE resolved_at IS NULL AND attempt_id IS NOT NULL;
CREATE UNIQUE INDEX one_open_case_per_refund_and_kind ON billing.reconciliation_case (customer_id, refund_id, kind)
WHERE resolved_at IS NULL AND refund_id IS NOT NULL;
CREATE INDEX case_by_invoice ON billing.reconciliation_case (customer_id, invoice_id) WHERE invoice_id IS NOT NULL;
CREATE INDEX case_by_webhook ON billing.reconciliation_case (webhook_event_id) WHERE webhook_event_id IS NOT NULL;

COMMENT ON TABLE billing.reconciliation_case IS 'What needs a person: unmatched or unexpected money, an outcome that stays unknown.';
COMMENT ON COLUMN billing.reconciliation_case.case_id IS 'Case.';
COMMENT ON COLUMN billing.reconciliation_case.kind IS
'UNKNOWN_OUTCOME, AMOUNT_MISMATCH, CURRENCY_MISMATCH, BINDING_MISMATCH, LATE_PAYMENT, UNMATCHED_WEBHOOK, AMBIGUOUS_WEBHOOK, BANK_REVERSAL, DISPUTE; of a refund REFUND_FAILED, REFUND_MISMATCH, REFUND_UNKNOWN; from a settlement report MISSING_AT_GATEWAY (we have it, they do not), MISSING_HERE (they have it, we do not) or SETTLEMENT_MISMATCH.';
COMMENT ON COLUMN billing.reconciliation_case.customer_id IS 'Customer, if known.';
COMMENT ON COLUMN billing.reconciliation_case.invoice_id IS 'Invoice, if known.';
COMMENT ON COLUMN billing.reconciliation_case.attempt_id IS 'Attempt, if known.';
COMMENT ON COLUMN billing.reconciliation_case.refund_id IS 'Refund, if known.';
COMMENT ON COLUMN billing.reconciliation_case.webhook_event_id IS 'Webhook event, if one caused it.';
COMMENT ON COLUMN billing.reconciliation_case.amount IS 'Amount in question, in minor units.';
COMMENT ON COLUMN billing.reconciliation_case.currency IS 'Currency in question.';
COMMENT ON COLUMN billing.reconciliation_case.detail IS 'What was expected and what was found.';
COMMENT ON COLUMN billing.reconciliation_case.opened_at IS 'Business time of opening.';
COMMENT ON COLUMN billing.reconciliation_case.resolved_at IS 'Business time of resolution; NULL = open.';
COMMENT ON COLUMN billing.reconciliation_case.resolved_by IS 'Who resolved it.';
COMMENT ON COLUMN billing.reconciliation_case.resolution IS 'How and why.';

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

CREATE TRIGGER webhook_event_is_never_deleted BEFORE DELETE ON billing.webhook_event
FOR EACH ROW EXECUTE FUNCTION billing.refuse_change();
