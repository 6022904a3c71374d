CREATE OR REPLACE VIEW billing_ops.outbox_lag AS
SELECT
    l.partition,
    CASE WHEN l.leased_until > clock_timestamp() THEN l.relay END AS relay,
    l.lease_epoch,
    l.leased_until,
    count(e.outbox_event_id) AS unpublished,
    count(e.blocked_at) AS blocked,
    count(e.retry_at) AS to_be_retried,
    min(e.created_at) AS oldest_created_at,
    clock_timestamp() - min(e.created_at) AS lag
FROM billing.outbox_lease AS l
LEFT JOIN billing.outbox_event AS e ON l.partition = e.partition AND e.published_at IS NULL
GROUP BY l.partition;

COMMENT ON VIEW billing_ops.outbox_lag IS
'How far the relays are behind: one row per partition of the outbox. A growing lag with a relay means a broker in trouble, without one that no relay runs.';
COMMENT ON COLUMN billing_ops.outbox_lag.partition IS '0 to 15.';
COMMENT ON COLUMN billing_ops.outbox_lag.relay IS 'Relay that holds the lease; NULL = nobody.';
COMMENT ON COLUMN billing_ops.outbox_lag.lease_epoch IS 'How often the partition has changed hands.';
COMMENT ON COLUMN billing_ops.outbox_lag.leased_until IS 'End of the lease by the wall clock.';
COMMENT ON COLUMN billing_ops.outbox_lag.unpublished IS 'Events not yet acknowledged by the broker, blocked ones and those behind them included.';
COMMENT ON COLUMN billing_ops.outbox_lag.blocked IS 'Events given up; see billing_ops.blocked_event.';
COMMENT ON COLUMN billing_ops.outbox_lag.to_be_retried IS 'Events refused by the broker that are to be tried again.';
COMMENT ON COLUMN billing_ops.outbox_lag.oldest_created_at IS 'When the oldest unpublished event was written.';
COMMENT ON COLUMN billing_ops.outbox_lag.lag IS 'Age of the oldest unpublished event.';
