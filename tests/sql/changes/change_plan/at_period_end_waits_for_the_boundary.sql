-- AT_PERIOD_END, its undoing, what replaces it, and a price migration of the seller beside it.
BEGIN;
SELECT plan(25);
SELECT billing_test.plans();

SELECT billing_test.paid('waits', 'PRO', '2027-04-01Z');
SELECT results_eq(
    $$SELECT s.plan_code, s.pending_plan_code
      FROM billing_api.change_plan(64, 'BASIC', p_timing => 'AT_PERIOD_END', p_as_of => '2027-04-10Z') AS s$$,
    $$VALUES ('PRO', 'BASIC')$$, 'it waits'
);
SELECT is((SELECT count(*) FROM billing_api.invoice AS i WHERE i.subscription_id = 64), 1::bigint, 'without an invoice');
SELECT is(s.pending_plan_code, 'ENTERPRISE', 'another one takes its place')
FROM billing_api.change_plan(64, 'ENTERPRISE', 2, 'AT_PERIOD_END', p_as_of => '2027-04-11Z') AS s;
SELECT is(s.pending_plan_code, NULL, 'it can be taken back') FROM billing_api.undo_change(64, p_as_of => '2027-04-12Z') AS s;
SELECT billing_test.refuses($$SELECT billing_api.undo_change(64, p_as_of => '2027-04-12Z')$$, 'SB322', 'once');
SELECT billing_api.change_plan(64, 'BASIC', 2, 'AT_PERIOD_END', p_as_of => '2027-04-13Z');
SELECT billing_worker.renew_due(10, '2027-05-01Z');
SELECT results_eq(
    $$SELECT s.plan_code, s.quantity, s.pending_plan_code, s.current_period_end
      FROM billing_api.subscription AS s WHERE s.subscription_id = 64$$,
    $$VALUES ('BASIC', 2, NULL, '2027-06-01Z'::timestamptz)$$, 'at the boundary it takes effect'
);
SELECT is(
    (SELECT i.lines FROM billing_test.invoices_of(64) AS i WHERE i.invoice LIKE 'RENEWAL%'), 'PERIOD 6000',
    'at its price, with nothing prorated'
);
SELECT is(
    billing_test.log_of(64),
    'SubscriptionCreated InvoiceOpened InvoicePaid SubscriptionActivated SubscriptionChangeScheduled SubscriptionChangeScheduled '
    || 'SubscriptionChangeWithdrawn SubscriptionChangeScheduled SubscriptionPlanChanged',
    'the log tells of each step'
);

-- C18, one after the other: at the very boundary the undoing still comes in time.
SELECT billing_test.paid('undone', 'PRO', '2027-04-01Z');
SELECT billing_api.change_plan(128, 'BASIC', p_timing => 'AT_PERIOD_END', p_as_of => '2027-04-10Z');
SELECT billing_api.undo_change(128, p_as_of => '2027-05-01Z');
SELECT billing_worker.renew_due(10, '2027-05-01Z');
SELECT is(i.invoice, 'RENEWAL OPEN 9000 due', 'at the boundary it can still be undone')
FROM billing_test.invoices_of(128) AS i WHERE i.invoice LIKE 'RENEWAL%';
SELECT billing_test.paid('too late', 'PRO', '2027-04-01Z');
SELECT billing_api.change_plan(192, 'BASIC', p_timing => 'AT_PERIOD_END', p_as_of => '2027-04-10Z');
SELECT billing_test.refuses(
    $$SELECT billing_api.undo_change(192, p_as_of => '2027-05-01 00:00:01Z')$$, 'SB322', 'a second later the boundary comes first'
);

-- An immediate change takes its place when it takes effect, not before.
SELECT billing_test.paid('immediate', 'BASIC', '2027-04-01Z');
SELECT billing_api.change_plan(256, 'TEAM', p_timing => 'AT_PERIOD_END', p_as_of => '2027-04-10Z');
SELECT is(s.pending_plan_code, 'PRO', 'while it is not paid, it hides the other')
FROM billing_api.change_plan(256, 'PRO', p_as_of => '2027-04-11Z') AS s;
SELECT billing_test.collect('DECLINED', 'insufficient_funds', '2027-04-11Z');
SELECT is(s.pending_plan_code, 'TEAM', 'which is back when it is void') FROM billing_api.subscription AS s WHERE s.subscription_id = 256;
SELECT billing_api.change_plan(256, 'PRO', p_as_of => '2027-04-11Z');
SELECT billing_test.collect(p_as_of => '2027-04-11Z');
SELECT is(s.plan_code || coalesce(s.pending_plan_code, ''), 'PRO', 'and gone when it has taken effect')
FROM billing_api.subscription AS s WHERE s.subscription_id = 256;

-- While past due: it is for boundaries after it was chosen, not for those that were held.
SELECT billing_test.paid('held', 'PRO', '2027-04-01Z', p_dunning_policy => 'fixed_1357');
SELECT billing_worker.renew_due(100, '2027-05-01Z');
SELECT billing_test.report(billing_test.start('2027-05-01Z'), 'UNKNOWN', '2027-05-01Z');
SELECT billing_test.report(max(a.attempt_id), 'DECLINED', '2027-05-25Z', 'do_not_honor', 'LOOKUP') FROM billing.payment_attempt AS a;
SELECT billing_api.change_plan(320, 'BASIC', p_timing => 'AT_PERIOD_END', p_as_of => '2027-06-01 00:00:01Z');
SELECT billing_worker.renew_due(100, '2027-06-01 00:00:01Z');
SELECT billing_test.collect(p_as_of => '2027-06-01 12:00Z');
SELECT billing_worker.renew_due(100, '2027-06-01 12:00Z');
SELECT billing_worker.renew_due(100, '2027-07-01Z');
SELECT results_eq(
    $$SELECT i.period_start::date, i.total FROM billing_api.invoice AS i WHERE i.subscription_id = 320 AND i.kind = 'RENEWAL' ORDER BY 1$$,
    $$VALUES ('2027-05-01'::date, 9000::bigint), ('2027-06-01', 9000), ('2027-07-01', 3000)$$,
    'June had begun when it was chosen, although it was billed only after the recovery'
);

-- Beside a cancellation and a pause.
SELECT billing_test.paid('flags', 'PRO', '2027-04-01Z'), billing_test.paid('pause', 'PRO', '2027-04-01Z');
SELECT billing_api.change_plan(x.no, 'BASIC', p_timing => 'AT_PERIOD_END', p_as_of => '2027-04-10Z')
FROM unnest('{384, 448}'::bigint[]) AS x (no);
SELECT billing_api.cancel_subscription(384, true, p_as_of => '2027-04-11Z');
SELECT billing_test.refuses(
    $$SELECT billing_api.change_plan(384, 'TEAM', p_timing => 'AT_PERIOD_END', p_as_of => '2027-04-12Z')$$, 'SB303',
    'what ends at its boundary has no next period to change'
);
SELECT is(s.pending_plan_code, 'BASIC', 'what was chosen before waits behind the cancellation')
FROM billing_api.undo_cancel(384, p_as_of => '2027-04-13Z') AS s;
SELECT billing_api.pause_subscription(448, true, p_as_of => '2027-04-11Z');
SELECT billing_worker.renew_due(100, '2027-05-01Z');
SELECT is(s.status || ' ' || s.pending_plan_code, 'PAUSED BASIC', 'a pause at the boundary keeps it')
FROM billing_api.subscription AS s WHERE s.subscription_id = 448;
SELECT billing_api.resume_subscription(448, p_as_of => '2027-07-15Z');
SELECT results_eq(
    $$SELECT i.* FROM billing_test.invoices_of(448) AS i WHERE i.invoice LIKE 'RENEWAL%'$$,
    $$VALUES ('RENEWAL OPEN 3000 due', 'PERIOD 3000')$$,
    'for the first period after it'
);

-- The seller's new price of the same plan, and a quantity of the customer's, take effect together.
SELECT billing_test.paid('migrated', 'TEAM', '2027-04-01Z', p_quantity => 3), billing_test.paid('leaves', 'TEAM', '2027-04-01Z');
SELECT billing_api.add_price('TEAM', 1200, 'USD', '2027-05-01Z', p_as_of => '2027-04-02Z');
SELECT billing_api.migrate_price('TEAM', '2027-05-01Z', 20, false, p_as_of => '2027-04-05Z');
SELECT billing_api.change_plan(512, 'TEAM', 4, p_timing => 'AT_PERIOD_END', p_as_of => '2027-04-10Z');
SELECT billing_api.change_plan(576, 'PRO', p_timing => 'AT_PERIOD_END', p_as_of => '2027-04-10Z');
SELECT is(s.pending_plan_code, NULL, 'taking back what was chosen') FROM billing_api.undo_change(512, p_as_of => '2027-04-11Z') AS s;
SELECT ok(s.migration_price_id IS NOT NULL, 'leaves the migration where it is')
FROM billing.subscription AS s WHERE s.subscription_id = 512;
SELECT billing_api.change_plan(512, 'TEAM', 4, p_timing => 'AT_PERIOD_END', p_as_of => '2027-04-12Z');
-- Another quantity now is still at the old price: 15 of 30 days of 2 x 1000.
SELECT billing_api.change_plan(512, 'TEAM', 5, p_as_of => '2027-04-16Z');
SELECT billing_test.collect(p_as_of => '2027-04-16Z');
SELECT is(
    (SELECT i.lines FROM billing_test.invoices_of(512) AS i WHERE i.invoice LIKE 'CHANGE%'), 'PRORATION -1500, PRORATION 2500',
    'before its day the old price counts, also for more of it'
);
SELECT billing_worker.renew_due(100, '2027-05-01Z');
SELECT results_eq(
    $$SELECT s.subscription_id, s.plan_code, s.quantity, s.unit_amount
      FROM billing_api.subscription AS s WHERE s.subscription_id IN (512, 576) ORDER BY 1$$,
    $$VALUES (512::bigint, 'TEAM', 5, 1200::bigint), (576, 'PRO', 1, 9000)$$, 'who stays is moved to the new price, who leaves is not'
);
SELECT is_empty(
    $$SELECT s.subscription_id FROM billing.subscription AS s WHERE s.subscription_id IN (512, 576)
      AND (s.migration_price_id IS NOT NULL OR s.pending_price_id IS NOT NULL)$$, 'and nothing waits any more'
);

SELECT is_empty('SELECT * FROM billing_test.broken()', 'no promise is broken');
SELECT is_empty('SELECT * FROM billing_test.holes()', 'no event number is missing or repeated');
SELECT * FROM finish();
ROLLBACK;
