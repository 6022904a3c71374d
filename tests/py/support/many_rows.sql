-- 24,000 customers with a paid subscription each, of which 1,000 are due; 1,000 others owe an invoice, of which 500 have an
-- attempt in flight and 500 an unknown one to ask about. Written as rows, since only their number matters here.
SET LOCAL timezone = 'UTC';
SET LOCAL session_replication_role = replica;
UPDATE billing.database_identity SET is_test = true;
INSERT INTO billing.test_clock (now_at) VALUES ('2027-03-15T00:00:00Z');
INSERT INTO billing.gateway_account (code, adapter, created_at) VALUES ('simulated', 'simulated', '2027-01-01Z');
INSERT INTO billing.customer (customer_id, external_ref, currency, created_at)
SELECT n * 64, 'customer ' || n, 'USD', '2027-01-01Z' FROM generate_series(1, 24000) AS n;
INSERT INTO billing.resource (customer_id, resource_id, external_ref, created_at)
SELECT c.customer_id, c.customer_id, 'default', '2027-01-01Z' FROM billing.customer AS c;
INSERT INTO billing.payment_method (customer_id, payment_method_id, gateway_account_id, token, is_default, created_at)
SELECT c.customer_id, c.customer_id, 1, 'tok_ok', true, '2027-01-01Z' FROM billing.customer AS c;
INSERT INTO billing.credit_balance (customer_id, currency) SELECT c.customer_id, 'USD' FROM billing.customer AS c;
INSERT INTO billing.plan (code, name, created_at) VALUES ('BASIC', 'Basic', '2027-01-01Z');
INSERT INTO billing.price (plan_id, amount, currency, interval_unit, effective_from, created_at)
SELECT p.plan_id, 3000, 'USD', 'MONTH', '2027-01-01Z', '2027-01-01Z' FROM billing.plan AS p;
INSERT INTO billing.subscription (
    customer_id, subscription_id, resource_id, status, price_id, current_period_kind, current_period_start, current_period_end,
    next_renewal_at, time_zone, anchor_at, period_no, dunning_policy_id, created_at, event_seq
)
SELECT
    c.customer_id, c.customer_id, c.customer_id, 'ACTIVE', pr.price_id, 'BILLED', t.start, t.start + interval '1 month',
    t.start + interval '1 month', 'UTC', t.start AT TIME ZONE 'UTC', 1, d.dunning_policy_id, t.start, 1
FROM billing.customer AS c
CROSS JOIN billing.price AS pr
INNER JOIN billing.dunning_policy AS d ON d.code = 'standard'
CROSS JOIN LATERAL (
    SELECT CASE WHEN c.customer_id <= 64000 THEN timestamptz '2027-02-14Z' ELSE timestamptz '2027-02-16Z' + c.customer_id / 64 * interval '1 minute' END
        AS start
) AS t;
INSERT INTO billing.invoice (
    customer_id, invoice_id, subscription_id, resource_id, kind, status, currency, total, amount_paid, period_start, period_end,
    opens_period, drives_status, lane, gateway_account_id, attempt_count, issued_at, paid_at, next_attempt_at
)
SELECT
    s.customer_id, s.customer_id, s.subscription_id, s.resource_id, 'INITIAL', CASE WHEN o.owes THEN 'OPEN' ELSE 'PAID' END, 'USD', 3000,
    CASE WHEN o.owes THEN 0 ELSE 3000 END, s.current_period_start, s.current_period_end, true, o.owes, 'BACKLOG', 1, 1,
    s.created_at, CASE WHEN NOT o.owes THEN s.created_at END, NULL
FROM billing.subscription AS s
CROSS JOIN LATERAL (SELECT s.customer_id BETWEEN 64064 AND 128000 AS owes) AS o;
INSERT INTO billing.invoice (
    customer_id, invoice_id, subscription_id, resource_id, kind, status, currency, total, period_start, period_end, opens_period,
    drives_status, lane, gateway_account_id, issued_at, next_attempt_at
)
SELECT
    s.customer_id, s.customer_id + 1, s.subscription_id, s.resource_id, 'RENEWAL', 'OPEN', 'USD', 3000, s.current_period_end,
    s.current_period_end + interval '1 month', true, true, 'BACKLOG', 1, '2027-03-14Z', '2027-03-14Z'
FROM billing.subscription AS s
WHERE s.customer_id BETWEEN 128064 AND 192000;
INSERT INTO billing.subscription_period (customer_id, subscription_id, period_start, period_end, kind, invoice_id, opened_seq)
SELECT i.customer_id, i.subscription_id, i.period_start, i.period_end, 'BILLED', i.invoice_id, 1
FROM billing.invoice AS i WHERE i.kind = 'INITIAL';
INSERT INTO billing.payment_attempt (
    customer_id, attempt_id, invoice_id, attempt_no, status, amount, currency, idempotency_key, gateway_account_id, payment_method_id,
    payment_method_token, description, gateway_payment_id, captured_amount, booked_amount, claim_epoch, send_count, last_sent_at,
    lease_until, next_lookup_at, started_at, ended_at
)
SELECT
    i.customer_id, i.invoice_id, i.invoice_id, 1, t.status, 3000, 'USD', 'test-inv-' || i.invoice_id || '-try-1', 1, i.customer_id, 'tok_ok', 'x',
    CASE WHEN t.status = 'SUCCEEDED' THEN 'pay_' || i.invoice_id END, CASE WHEN t.status = 'SUCCEEDED' THEN 3000 END,
    CASE WHEN t.status = 'SUCCEEDED' THEN 3000 END, 1, 1, i.issued_at,
    CASE WHEN t.status = 'STARTED' THEN clock_timestamp() + interval '1 hour' END,
    CASE WHEN t.status = 'UNKNOWN' THEN timestamptz '2027-03-14Z' END, i.issued_at, CASE WHEN t.status = 'SUCCEEDED' THEN i.issued_at END
FROM billing.invoice AS i
CROSS JOIN LATERAL (
    SELECT CASE WHEN i.status = 'PAID' THEN 'SUCCEEDED' WHEN i.customer_id <= 96000 THEN 'STARTED' ELSE 'UNKNOWN' END AS status
) AS t
WHERE i.kind = 'INITIAL';
