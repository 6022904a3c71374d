-- Fills a new database for bench/first_of_month.py, which puts in how many: one in five is due at one instant.
SELECT billing_ops.mark_test_database();
SELECT billing_ops.set_clock('2027-05-01T00:00:00Z');
SELECT billing_ops.create_gateway_account('simulated', 'simulated');
SELECT billing_api.create_plan('BASIC', 'Basic', 3000, 'USD', 'MONTH');
SET session_replication_role = replica;
CREATE UNLOGGED TABLE public.signed_up AS
SELECT
    64 * g.no AS id,
    CASE WHEN g.no % 5 = 0 THEN timestamp '2027-04-01' ELSE timestamp '2027-04-02' + (g.no % 28) * interval '1 day' END AS starts
FROM generate_series(1, :subscriptions) AS g (no);
INSERT INTO billing.customer (customer_id, external_ref, currency, created_at)
SELECT u.id, 'customer ' || u.id, 'USD', '2027-01-01Z' FROM public.signed_up AS u;
INSERT INTO billing.resource (customer_id, resource_id, external_ref, created_at)
SELECT u.id, u.id, 'default', '2027-01-01Z' FROM public.signed_up AS u;
INSERT INTO billing.payment_method (customer_id, payment_method_id, gateway_account_id, token, is_default, created_at)
SELECT u.id, u.id, a.gateway_account_id, 'tok_ok.' || u.id, true, '2027-01-01Z'
FROM public.signed_up AS u CROSS JOIN billing.gateway_account AS a;
INSERT INTO billing.subscription (
    customer_id, subscription_id, resource_id, status, price_id, current_period_kind, current_period_start,
    current_period_end, next_renewal_at, time_zone, anchor_at, period_no, dunning_policy_id, created_at, version, event_seq
)
SELECT
    u.id, u.id, u.id, 'ACTIVE', (SELECT max(price_id) FROM billing.price), 'BILLED', u.starts AT TIME ZONE 'UTC',
    (u.starts + interval '1 month') AT TIME ZONE 'UTC', (u.starts + interval '1 month') AT TIME ZONE 'UTC', 'UTC',
    u.starts, 1, (SELECT min(dunning_policy_id) FROM billing.dunning_policy), u.starts AT TIME ZONE 'UTC', 2, 3
FROM public.signed_up AS u;
INSERT INTO billing.subscription_period (
    customer_id, subscription_id, period_start, period_end, kind, invoice_id, opened_seq
)
SELECT u.id, u.id, u.starts AT TIME ZONE 'UTC', (u.starts + interval '1 month') AT TIME ZONE 'UTC', 'BILLED', u.id, 1
FROM public.signed_up AS u;
INSERT INTO billing.invoice (
    customer_id, invoice_id, subscription_id, resource_id, kind, status, currency, total, amount_paid, period_start,
    period_end, opens_period, drives_status, lane, gateway_account_id, attempt_count, opened_seq, issued_at, paid_at
)
SELECT
    u.id, u.id, u.id, u.id, 'INITIAL', 'PAID', 'USD', 3000, 3000, u.starts AT TIME ZONE 'UTC',
    (u.starts + interval '1 month') AT TIME ZONE 'UTC', true, true, 'BACKLOG', 1, 1, 1, u.starts AT TIME ZONE 'UTC',
    u.starts AT TIME ZONE 'UTC'
FROM public.signed_up AS u;
SELECT setval('billing.invoice_id_seq', 64 * (:subscriptions + 1));
SET session_replication_role = origin;
DROP TABLE public.signed_up;
