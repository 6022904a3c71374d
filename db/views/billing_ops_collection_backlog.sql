CREATE OR REPLACE VIEW billing_ops.collection_backlog AS
SELECT
    a.code AS gateway_account,
    i.lane,
    i.currency,
    count(*) AS invoices,
    count(*) FILTER (WHERE i.held_until > clock_timestamp()) AS held,
    sum(i.amount_due)::bigint AS amount_due,
    min(i.next_attempt_at) AS oldest_due_at,
    max((SELECT billing.now())) - min(i.next_attempt_at) AS lag,
    a.collecting_paused_at
FROM billing.invoice AS i
LEFT JOIN billing.gateway_account AS a ON i.gateway_account_id = a.gateway_account_id
WHERE i.status = 'OPEN' AND i.next_attempt_at <= (SELECT billing.now())
GROUP BY a.code, a.collecting_paused_at, i.lane, i.currency;

COMMENT ON VIEW billing_ops.collection_backlog IS
'Invoices that may be attempted now and are not yet, per gateway account, lane and currency. At a rate of 200 a second, a million take an hour and a half.';
COMMENT ON COLUMN billing_ops.collection_backlog.gateway_account IS
'Code of the gateway account; NULL = no payment method.';
COMMENT ON COLUMN billing_ops.collection_backlog.lane IS 'INTERACTIVE: somebody is waiting. BACKLOG: everything else.';
COMMENT ON COLUMN billing_ops.collection_backlog.currency IS 'Currency, ISO 4217.';
COMMENT ON COLUMN billing_ops.collection_backlog.invoices IS 'How many are due.';
COMMENT ON COLUMN billing_ops.collection_backlog.held IS
'How many of them wait because the gateway asked for it or did not take the call.';
COMMENT ON COLUMN billing_ops.collection_backlog.amount_due IS 'What they sum up to, in minor units.';
COMMENT ON COLUMN billing_ops.collection_backlog.oldest_due_at IS 'Since when the oldest is due.';
COMMENT ON COLUMN billing_ops.collection_backlog.lag IS 'How long the oldest waits, in business time.';
COMMENT ON COLUMN billing_ops.collection_backlog.collecting_paused_at IS
'Since when an operator stopped this account; NULL = not.';
