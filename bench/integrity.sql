-- Fills a new database with paid subscriptions for bench/integrity.py, which puts in how many.
SELECT billing_ops.mark_test_database();
SELECT billing_ops.set_clock('2027-04-10T00:00:00Z');
SELECT billing_ops.create_gateway_account('simulated', 'simulated');
SELECT billing_api.create_plan('BASIC', 'Basic', 3000, 'USD', 'MONTH');
SET session_replication_role = replica;
INSERT INTO billing.customer (customer_id, external_ref, currency, created_at)
SELECT 64 * g.no, 'customer ' || g.no, 'USD', '2027-01-01Z' FROM generate_series(1, :subscriptions) AS g (no);
INSERT INTO billing.resource (customer_id, resource_id, external_ref, created_at)
SELECT 64 * g.no, 64 * g.no, 'default', '2027-01-01Z' FROM generate_series(1, :subscriptions) AS g (no);
INSERT INTO billing.payment_method (
    customer_id, payment_method_id, gateway_account_id, token, is_default, created_at
)
SELECT 64 * g.no, 64 * g.no, a.gateway_account_id, 'tok_ok.' || g.no, true, '2027-01-01Z'
FROM generate_series(1, :subscriptions) AS g (no) CROSS JOIN billing.gateway_account AS a;
CREATE UNLOGGED TABLE public.month AS
SELECT
    g.no AS s, k.no AS k, 64 * (3 * (g.no - 1) + k.no) AS id,
    timestamp '2027-01-10' + (k.no - 1) * interval '1 month' + (g.no % 10) * interval '1 day' AS starts,
    timestamp '2027-01-10' + k.no * interval '1 month' + (g.no % 10) * interval '1 day' AS ends
FROM generate_series(1, :subscriptions) AS g (no) CROSS JOIN generate_series(1, 3) AS k (no);
INSERT INTO billing.subscription (
    customer_id, subscription_id, resource_id, status, price_id, current_period_kind,
    current_period_start, current_period_end, next_renewal_at, time_zone, anchor_at, period_no,
    dunning_policy_id, created_at, version, event_seq
)
SELECT
    64 * m.s, 64 * m.s, 64 * m.s, 'ACTIVE', (SELECT max(price_id) FROM billing.price), 'BILLED',
    m.starts AT TIME ZONE 'UTC', m.ends AT TIME ZONE 'UTC', m.ends AT TIME ZONE 'UTC', 'UTC',
    m.starts - interval '2 months', 3, (SELECT min(dunning_policy_id) FROM billing.dunning_policy),
    '2027-01-10Z', 6, 9
FROM public.month AS m WHERE m.k = 3;
INSERT INTO billing.subscription_period (
    customer_id, subscription_id, period_start, period_end, prev_end, kind, invoice_id, opened_seq
)
SELECT
    64 * m.s, 64 * m.s, m.starts AT TIME ZONE 'UTC', m.ends AT TIME ZONE 'UTC',
    CASE WHEN m.k > 1 THEN m.starts AT TIME ZONE 'UTC' END, 'BILLED', m.id, 3 * m.k - 2
FROM public.month AS m;
INSERT INTO billing.invoice (
    customer_id, invoice_id, subscription_id, resource_id, kind, status, currency, total, amount_paid,
    period_start, period_end, opens_period, drives_status, lane, gateway_account_id, attempt_count,
    opened_seq, issued_at, paid_at
)
SELECT
    64 * m.s, m.id, 64 * m.s, 64 * m.s, CASE m.k WHEN 1 THEN 'INITIAL' ELSE 'RENEWAL' END, 'PAID', 'USD',
    3000, 3000, m.starts AT TIME ZONE 'UTC', m.ends AT TIME ZONE 'UTC', true, true, 'BACKLOG', 1, 1,
    3 * m.k - 2, m.starts AT TIME ZONE 'UTC', m.starts AT TIME ZONE 'UTC'
FROM public.month AS m;
INSERT INTO billing.invoice_line (customer_id, invoice_id, line_no, kind, description, amount, unit_amount, quantity)
SELECT 64 * m.s, m.id, 1, 'PERIOD', 'Basic', 3000, 3000, 1 FROM public.month AS m;
INSERT INTO billing.payment_attempt (
    customer_id, attempt_id, invoice_id, attempt_no, status, amount, currency, idempotency_key,
    gateway_account_id, payment_method_id, payment_method_token, description, gateway_payment_id,
    captured_amount, booked_amount, send_count, last_sent_at, started_at, ended_at
)
SELECT
    64 * m.s, m.id, m.id, 1, 'SUCCEEDED', 3000, 'USD', 'bench-inv-' || m.id || '-try-1', 1, 64 * m.s,
    'tok_ok.' || m.s, 'Basic', 'pay_' || m.id, 3000, 3000, 1, m.starts AT TIME ZONE 'UTC',
    m.starts AT TIME ZONE 'UTC', m.starts AT TIME ZONE 'UTC'
FROM public.month AS m;
INSERT INTO billing.payment_report (
    customer_id, attempt_id, source, claim_epoch, outcome, verdict, gateway_payment_id, amount,
    currency, as_of
)
SELECT
    64 * m.s, m.id, 'SEND', 1, 'SUCCEEDED', 'APPLIED', 'pay_' || m.id, 3000, 'USD',
    m.starts AT TIME ZONE 'UTC'
FROM public.month AS m;
INSERT INTO billing.subscription_event (
    customer_id, subscription_id, event_seq, event_type, to_status, actor, as_of
)
SELECT
    64 * m.s, 64 * m.s, 3 * m.k - 2 + e.no, e.event_type,
    CASE WHEN e.no = 2 AND m.k = 1 THEN 'ACTIVE' END, 'bench', m.starts AT TIME ZONE 'UTC'
FROM public.month AS m
CROSS JOIN (VALUES (1, 'InvoicePaid'), (2, 'SubscriptionRenewed')) AS e (no, event_type);
INSERT INTO billing.outbox_event (
    aggregate_type, aggregate_id, aggregate_seq, event_type, occurred_at, customer_id, payload,
    created_at
)
SELECT
    'subscription', e.subscription_id, e.event_seq, e.event_type, e.as_of, e.customer_id, '{}',
    e.recorded_at - CASE WHEN e.subscription_id % 6400 = 0 THEN '0'::interval ELSE interval '1 day' END
FROM billing.subscription_event AS e;
SET session_replication_role = origin;
DROP TABLE public.month;
