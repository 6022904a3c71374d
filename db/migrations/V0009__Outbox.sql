-- What the world is told: events written in the transaction of the change they tell of, and the bookkeeping of the
-- relays that publish them.

INSERT INTO billing.error_code (sqlstate, name, http_status, meaning) VALUES
('SB251', 'unknown_event', 404, 'No such event in the outbox, or its day has been dropped.'),
('SB351', 'event_not_blocked', 409, 'Only a blocked event can be replayed; this one is published or on its way.');

CREATE SEQUENCE billing.outbox_event_id_seq INCREMENT BY 64 MINVALUE 0 START WITH 64;

CREATE TABLE billing.outbox_event (
    outbox_event_id bigint NOT NULL DEFAULT nextval('billing.outbox_event_id_seq'),
    aggregate_type text NOT NULL,
    aggregate_id bigint NOT NULL,
    aggregate_seq bigint NOT NULL,
    event_type text NOT NULL,
    occurred_at timestamptz NOT NULL,
    created_at timestamptz NOT NULL DEFAULT clock_timestamp(),
    published_at timestamptz,
    blocked_at timestamptz,
    publish_failures integer NOT NULL DEFAULT 0,
    retry_at timestamptz,
    last_error text,
    replayed_at timestamptz,
    replayed_by text,
    customer_id bigint NOT NULL,
    -- Ids step by 64, so the division comes before the remainder.
    partition smallint NOT NULL GENERATED ALWAYS AS (((aggregate_id / 64) % 16)::smallint) STORED,
    payload jsonb NOT NULL,
    CONSTRAINT outbox_event_pkey PRIMARY KEY (customer_id, outbox_event_id, created_at),
    CONSTRAINT event_is_about_a_known_aggregate CHECK (aggregate_type IN ('subscription', 'customer')),
    CONSTRAINT aggregate_id_is_not_negative CHECK (aggregate_id >= 0),
    CONSTRAINT aggregate_seq_is_positive CHECK (aggregate_seq > 0),
    CONSTRAINT event_type_is_documented CHECK (event_type IN (
        'SubscriptionCreated', 'SubscriptionActivated', 'SubscriptionTrialEnding', 'SubscriptionRenewed',
        'SubscriptionPlanChanged', 'SubscriptionPastDue', 'SubscriptionRecovered', 'SubscriptionPaused',
        'SubscriptionResumed', 'SubscriptionCancelScheduled', 'SubscriptionCanceled', 'SubscriptionExpired',
        'InvoiceOpened', 'InvoicePaid', 'InvoicePaymentFailed', 'InvoiceActionRequired', 'InvoiceVoided',
        'InvoiceFailed', 'PaymentUnexpected', 'ResourceSuspended', 'ResourceResumed', 'CreditGranted',
        'RefundIssued', 'RefundFailed', 'PriceChangeNotice'
    )),
    CONSTRAINT payload_is_an_object CHECK (jsonb_typeof(payload) = 'object'),
    CONSTRAINT published_event_is_not_blocked CHECK (published_at IS NULL OR blocked_at IS NULL),
    CONSTRAINT failures_are_counted CHECK (publish_failures >= 0),
    CONSTRAINT blocked_event_has_failed CHECK (blocked_at IS NULL OR publish_failures > 0),
    CONSTRAINT failed_event_says_why CHECK (publish_failures = 0 OR last_error IS NOT NULL),
    CONSTRAINT event_to_be_retried_has_failed CHECK (retry_at IS NULL OR publish_failures > 0),
    CONSTRAINT blocked_event_is_not_retried CHECK (retry_at IS NULL OR blocked_at IS NULL),
    CONSTRAINT replay_names_its_operator CHECK ((replayed_at IS NULL) = (replayed_by IS NULL))
) PARTITION BY RANGE (created_at);

CREATE INDEX outbox_event_unpublished ON billing.outbox_event (partition, outbox_event_id)
WHERE published_at IS NULL;
CREATE INDEX outbox_event_in_trouble ON billing.outbox_event (aggregate_type, aggregate_id)
WHERE published_at IS NULL AND publish_failures > 0;

COMMENT ON TABLE billing.outbox_event IS
'Events for the world outside, at least once each and in order per aggregate. One partition per day; old days are dropped once all of them is published.';
COMMENT ON COLUMN billing.outbox_event.outbox_event_id IS
'Id of the event, on which consumers dedupe. Ascends within an aggregate, because it is drawn under the lock of its row.';
COMMENT ON COLUMN billing.outbox_event.aggregate_type IS 'subscription or customer: what the event is about.';
COMMENT ON COLUMN billing.outbox_event.aggregate_id IS 'Id of the subscription or customer; the key of the message.';
COMMENT ON COLUMN billing.outbox_event.aggregate_seq IS
'event_seq of the subscription or customer: may skip, never repeats or goes back.';
COMMENT ON COLUMN billing.outbox_event.event_type IS 'What happened, as in docs/events.md.';
COMMENT ON COLUMN billing.outbox_event.occurred_at IS 'When it happened, in business time.';
COMMENT ON COLUMN billing.outbox_event.created_at IS 'When it was written, by the wall clock; chooses the partition.';
COMMENT ON COLUMN billing.outbox_event.published_at IS
'When the broker was known to have acknowledged it, by the wall clock; NULL = not yet.';
COMMENT ON COLUMN billing.outbox_event.blocked_at IS
'Since when it is given up, with everything later about the same aggregate, until an operator replays it.';
COMMENT ON COLUMN billing.outbox_event.publish_failures IS
'How often the broker refused this very event since it was written or replayed. A broker that is down does not count.';
COMMENT ON COLUMN billing.outbox_event.retry_at IS 'Not to be tried before, by the wall clock.';
COMMENT ON COLUMN billing.outbox_event.last_error IS 'What the broker said last, also after a replay.';
COMMENT ON COLUMN billing.outbox_event.replayed_at IS 'When an operator last replayed it, by the wall clock.';
COMMENT ON COLUMN billing.outbox_event.replayed_by IS 'The operator who did.';
COMMENT ON COLUMN billing.outbox_event.customer_id IS 'Customer whom the event concerns.';
COMMENT ON COLUMN billing.outbox_event.partition IS
'0 to 15, by aggregate: relays lease whole partitions, which keeps an aggregate in one hand.';
COMMENT ON COLUMN billing.outbox_event.payload IS
'The event as consumers see it, by the schema docs/events/<event_type>.schema.json. No personal data.';
COMMENT ON INDEX billing.outbox_event_unpublished IS 'What relays read: no cursor that a late commit could slip past.';
COMMENT ON INDEX billing.outbox_event_in_trouble IS 'Events that hold back what is later about their aggregate.';

CREATE TABLE billing.outbox_event_default PARTITION OF billing.outbox_event DEFAULT;
COMMENT ON TABLE billing.outbox_event_default IS
'Takes the events of days without a partition, so that an insert never fails. Housekeeping moves them to their day.';

CREATE TRIGGER outbox_event_is_never_rewritten
BEFORE UPDATE OF outbox_event_id, aggregate_type, aggregate_id, aggregate_seq, event_type, occurred_at, created_at,
customer_id, payload ON billing.outbox_event
FOR EACH ROW EXECUTE FUNCTION billing.refuse_change();
CREATE TRIGGER outbox_event_is_published_once BEFORE UPDATE ON billing.outbox_event
FOR EACH ROW WHEN (old.published_at IS NOT NULL)
EXECUTE FUNCTION billing.refuse_change();
CREATE TRIGGER outbox_event_is_never_deleted BEFORE DELETE ON billing.outbox_event
FOR EACH ROW EXECUTE FUNCTION billing.refuse_change();
CREATE TRIGGER outbox_event_is_never_truncated BEFORE TRUNCATE ON billing.outbox_event
FOR EACH STATEMENT EXECUTE FUNCTION billing.refuse_change();
CREATE TRIGGER outbox_event_is_never_truncated BEFORE TRUNCATE ON billing.outbox_event_default
FOR EACH STATEMENT EXECUTE FUNCTION billing.refuse_change();

CREATE TABLE billing.outbox_lease (
    partition smallint NOT NULL,
    relay text,
    lease_epoch bigint NOT NULL DEFAULT 0,
    leased_until timestamptz NOT NULL DEFAULT '-infinity',
    CONSTRAINT outbox_lease_pkey PRIMARY KEY (partition),
    CONSTRAINT there_are_16_partitions CHECK (partition BETWEEN 0 AND 15)
);

COMMENT ON TABLE billing.outbox_lease IS 'Which relay publishes which partition of the outbox, and until when.';
COMMENT ON COLUMN billing.outbox_lease.partition IS 'Value of outbox_event.partition.';
COMMENT ON COLUMN billing.outbox_lease.relay IS 'Relay that holds or last held it; NULL = given back.';
COMMENT ON COLUMN billing.outbox_lease.lease_epoch IS
'Grows whenever the partition is taken; what was sent under an earlier one is not marked.';
COMMENT ON COLUMN billing.outbox_lease.leased_until IS 'End of the lease by the wall clock.';

INSERT INTO billing.outbox_lease (partition)
SELECT p.no FROM generate_series(0, 15) AS p (no);

CREATE TABLE billing.outbox_relay (
    relay text NOT NULL,
    seen_at timestamptz NOT NULL,
    CONSTRAINT outbox_relay_pkey PRIMARY KEY (relay)
);

COMMENT ON TABLE billing.outbox_relay IS 'Relays that ask for work; the partitions are shared out among those seen lately.';
COMMENT ON COLUMN billing.outbox_relay.relay IS 'Name of the relay, unique per process.';
COMMENT ON COLUMN billing.outbox_relay.seen_at IS 'When it last asked, by the wall clock, to about ten seconds.';

CREATE TYPE billing.outbox_message AS (
    outbox_event_id bigint,
    created_at timestamptz,
    customer_id bigint,
    partition smallint,
    lease_epoch bigint,
    aggregate_type text,
    aggregate_id bigint,
    aggregate_seq bigint,
    event_type text,
    occurred_at timestamptz,
    payload jsonb,
    publish_failures integer
);

COMMENT ON TYPE billing.outbox_message IS 'An event handed to a relay, with the epoch under which it may be confirmed.';

CREATE TYPE billing.outbox_result AS (
    outbox_event_id bigint,
    created_at timestamptz,
    customer_id bigint,
    partition smallint,
    lease_epoch bigint,
    outcome text,
    error text
);

COMMENT ON TYPE billing.outbox_result IS
'What became of an event: PUBLISHED (acknowledged), FAILED (refused, may be tried again) or REJECTED (would be refused for ever), and the error. Events not sent, or sent to a broker that is down, are not reported.';
