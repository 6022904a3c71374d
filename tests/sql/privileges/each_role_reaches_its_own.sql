-- The lists in db/privileges/ as their callers meet them. What nobody may do stands in meta/privileges_are_narrow.sql.
BEGIN;
SELECT plan(25);
SELECT billing_test.clock('2027-01-31Z');
SELECT billing_test.customer('c');
SELECT billing_test.plan();

SELECT lives_ok(format('SELECT billing_test.run_as(%L, %L)', s.role, s.statement), s.description)
FROM (VALUES
    ('billing_app', $$SELECT billing_api.create_subscription(64, 'BASIC', 'k')$$, 'an internal system signs up'),
    ('billing_app', 'SELECT s.status, s.plan_code FROM billing_api.subscription AS s', 'and reads the views'),
    ('billing_operator', $$SELECT billing_api.grant_credit(64, 100, 'USD', 'gift', 'g')$$, 'an operator calls the API'),
    ('billing_operator', $$SELECT billing_ops.create_dunning_policy('x', '{24:00}')$$, 'and the runbook'),
    ('billing_operator', 'SELECT * FROM billing_ops.dunning_board', 'and looks at its boards'),
    ('billing_worker', 'SELECT billing_worker.renew_due(10)', 'a worker renews'),
    ('billing_worker', $$SELECT billing_worker.start_attempts('sim', 10, 'w')$$, 'and starts attempts'),
    ('billing_worker', $$SELECT billing_worker.settle_attempts(ARRAY[]::billing.charge_result[])$$, 'and hands over results'),
    ('billing_readonly', 'SELECT i.* FROM billing.invoice AS i', 'a reader reads the tables'),
    ('billing_readonly', 'SELECT i.* FROM billing_api.invoice AS i', 'and the views'),
    ('billing_readonly', 'SELECT * FROM billing_ops.collection_backlog', 'and the boards'),
    ('billing_readonly', 'SELECT m.payment_method_id, m.last4 FROM billing.payment_method AS m', 'and what is shown of a card'),
    ('billing_readonly', 'SELECT a.attempt_id, a.idempotency_key FROM billing.payment_attempt AS a', 'and the keys of attempts')
) AS s (role, statement, description);

SELECT throws_ok(format('SELECT billing_test.run_as(%L, %L)', s.role, s.statement), '42501', NULL, s.description)
FROM (VALUES
    ('billing_app', 'SELECT * FROM billing.invoice', 'an internal system reads no table'),
    ('billing_app', 'SELECT billing_worker.renew_due(10)', 'does not renew'),
    ('billing_app', $$SELECT billing_ops.pause_collecting()$$, 'and stops nothing'),
    ('billing_app', $$UPDATE billing_api.customer SET status = 'CLOSED'$$, 'nor changes anything through a view'),
    ('billing_worker', $$SELECT billing_api.grant_credit(64, 100, 'USD', 'gift', 'g2')$$, 'a worker gives no credit'),
    ('billing_worker', 'SELECT billing_ops.resume_renewing()', 'and lifts no stop'),
    ('billing_relay', 'SELECT billing_worker.renew_due(10)', 'a relay does not renew'),
    ('billing_readonly', 'SELECT * FROM billing.customer_contact', 'a reader sees no personal data'),
    ('billing_readonly', 'SELECT m.token FROM billing.payment_method AS m', 'no token'),
    ('billing_readonly', 'SELECT a.payment_method_token FROM billing.payment_attempt AS a', 'not the one that was sent either'),
    ('billing_readonly', 'SELECT w.payload FROM billing.webhook_event AS w', 'and nothing that a gateway sent'),
    ('billing_readonly', $$SELECT billing_api.has_access(64)$$, 'and calls nothing')
) AS s (role, statement, description);

SELECT * FROM finish();
ROLLBACK;
