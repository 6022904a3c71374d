CREATE OR REPLACE VIEW billing_ops.blocked_event AS
SELECT
    e.outbox_event_id,
    e.event_type,
    e.aggregate_type,
    e.aggregate_id,
    e.aggregate_seq,
    e.customer_id,
    e.created_at,
    e.blocked_at,
    e.publish_failures,
    e.last_error,
    octet_length(e.payload::text) AS payload_bytes,
    (
        SELECT count(*)
        FROM billing.outbox_event AS held
        WHERE held.published_at IS NULL
          AND held.partition = e.partition
          AND held.aggregate_type = e.aggregate_type
          AND held.aggregate_id = e.aggregate_id
          AND held.outbox_event_id > e.outbox_event_id
    ) AS held_back
FROM billing.outbox_event AS e
WHERE e.published_at IS NULL
  AND e.publish_failures > 0
  AND e.blocked_at IS NOT NULL;

COMMENT ON VIEW billing_ops.blocked_event IS
'Events that the broker refuses for good, with what waits behind them. Remove the cause, then call billing_ops.replay_event.';
COMMENT ON COLUMN billing_ops.blocked_event.outbox_event_id IS 'Event, for billing_ops.replay_event.';
COMMENT ON COLUMN billing_ops.blocked_event.event_type IS 'What happened.';
COMMENT ON COLUMN billing_ops.blocked_event.aggregate_type IS 'subscription or customer.';
COMMENT ON COLUMN billing_ops.blocked_event.aggregate_id IS 'Id of the subscription or customer.';
COMMENT ON COLUMN billing_ops.blocked_event.aggregate_seq IS 'Number within the aggregate.';
COMMENT ON COLUMN billing_ops.blocked_event.customer_id IS 'Customer.';
COMMENT ON COLUMN billing_ops.blocked_event.created_at IS 'When it was written, by the wall clock.';
COMMENT ON COLUMN billing_ops.blocked_event.blocked_at IS 'Since when it is blocked, by the wall clock.';
COMMENT ON COLUMN billing_ops.blocked_event.publish_failures IS 'How often the broker refused it.';
COMMENT ON COLUMN billing_ops.blocked_event.last_error IS 'What the broker said.';
COMMENT ON COLUMN billing_ops.blocked_event.payload_bytes IS 'Size of the payload, mostly the cause.';
COMMENT ON COLUMN billing_ops.blocked_event.held_back IS 'Later events about the same aggregate that wait for it.';
