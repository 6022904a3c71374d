CREATE OR REPLACE VIEW billing_ops.renewal_backlog AS
SELECT
    date_trunc('hour', s.next_renewal_at, 'UTC') AS due_hour,
    count(*) AS subscriptions,
    min(s.next_renewal_at) AS oldest_due_at,
    max((SELECT billing.now())) - min(s.next_renewal_at) AS lag
FROM billing.subscription AS s
WHERE
    s.next_renewal_at <= (SELECT billing.now())
    AND date_bin('1 hour', s.next_renewal_at, '2000-01-01 00:00:00+00') <= (SELECT billing.now())
GROUP BY date_trunc('hour', s.next_renewal_at, 'UTC');

COMMENT ON VIEW billing_ops.renewal_backlog IS
'Subscriptions that are due and not renewed yet, per hour of their due time. Empty is healthy; a row older than an hour means that renewing stands or cannot keep up.';
COMMENT ON COLUMN billing_ops.renewal_backlog.due_hour IS 'Hour in which they became due.';
COMMENT ON COLUMN billing_ops.renewal_backlog.subscriptions IS 'How many are still to be renewed.';
COMMENT ON COLUMN billing_ops.renewal_backlog.oldest_due_at IS 'The earliest of their due times.';
COMMENT ON COLUMN billing_ops.renewal_backlog.lag IS 'How long the oldest waits, in business time.';
