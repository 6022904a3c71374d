-- A new price for those who have subscribed: announced, counted beforehand, and in force from their own next boundary on.
BEGIN;
SELECT plan(31);
SELECT billing_test.plans();
SELECT billing_test.paid('monthly', 'BASIC', '2027-04-01Z'), billing_test.paid('three', 'BASIC', '2027-04-20Z', p_quantity => 3),
    billing_test.paid('pro', 'PRO', '2027-04-01Z'), billing_test.paid('paused', 'BASIC', '2027-04-01Z'),
    billing_test.paid('ended', 'BASIC', '2027-04-01Z');
SELECT billing_api.pause_subscription(256, p_as_of => '2027-04-02Z');
SELECT billing_api.cancel_subscription(320, p_as_of => '2027-04-02Z');
SELECT billing_api.create_subscription(x.customer_id, 'BASIC', 'k', p_as_of => '2027-04-20Z')
FROM billing_test.customer('checkout') AS x (customer_id);
SELECT billing_api.add_price('BASIC', 3500, 'USD', '2027-05-10Z', p_as_of => '2027-04-20Z');

SELECT results_eq(
    $$SELECT m.* FROM billing_api.migrate_price('BASIC', '2027-05-15Z', 20, p_as_of => '2027-04-21Z') AS m$$,
    $$VALUES ('USD', 3::bigint, 15000::numeric, 17500::numeric, 2500::numeric)$$,
    'a dry run counts who would migrate, and what their periods cost before and after'
);
SELECT is_empty('SELECT s.subscription_id FROM billing.subscription AS s WHERE s.migration_price_id IS NOT NULL', 'and changes nothing');
SELECT is_empty(
    $$SELECT m.* FROM billing_api.migrate_price('BASIC', '2027-05-09Z', 0, p_as_of => '2027-04-21Z') AS m$$,
    'before the new price is in force there is nothing to migrate to'
);
SELECT results_eq(
    $$SELECT m.subscriptions, m.difference
      FROM billing_api.migrate_price('BASIC', '2027-05-15Z', 20, false, p_as_of => '2027-04-21Z') AS m$$,
    $$VALUES (3::bigint, 2500::numeric)$$, 'the run itself says the same'
);
SELECT results_eq(
    $$SELECT o.aggregate_id, o.payload ->> 'oldAmount', o.payload ->> 'newAmount', o.payload ->> 'effectiveFrom'
      FROM billing.outbox_event AS o WHERE o.event_type = 'PriceChangeNotice' ORDER BY o.aggregate_id$$,
    $$VALUES (64::bigint, '3000', '3500', '2027-05-15T00:00:00Z'), (128, '3000', '3500', '2027-05-15T00:00:00Z'),
             (256, '3000', '3500', '2027-05-15T00:00:00Z')$$,
    'and each is told'
);
SELECT is_empty(
    $$SELECT m.* FROM billing_api.migrate_price('BASIC', '2027-05-15Z', 20, false, p_as_of => '2027-04-22Z') AS m$$,
    'a second run takes nobody again'
);

-- Not before its day, at the first boundary on or after it.
SELECT billing_worker.renew_due(100, '2027-05-20Z');
SELECT results_eq(
    $$SELECT i.subscription_id, i.period_start::date, i.total
      FROM billing_api.invoice AS i WHERE i.kind = 'RENEWAL' AND i.subscription_id IN (64, 128) ORDER BY 1, 2$$,
    $$VALUES (64::bigint, '2027-05-01'::date, 3000::bigint), (128, '2027-05-20', 10500)$$,
    'a boundary before its day is renewed at the old price, one after it at the new'
);
SELECT billing_worker.renew_due(100, '2027-06-01Z');
SELECT is(i.total, 3500::bigint, 'the next one at the new price')
FROM billing_api.invoice AS i WHERE i.subscription_id = 64 AND i.period_start = '2027-06-01Z';
SELECT is(
    (SELECT e.detail ->> 'fromPlanCode'
    FROM billing.subscription_event AS e WHERE e.subscription_id = 64 AND e.event_type = 'SubscriptionPlanChanged'),
    'BASIC', 'the log tells when'
);
SELECT is(s.migration_price_id, NULL, 'and nothing waits any more') FROM billing.subscription AS s WHERE s.subscription_id = 64;
SELECT billing_api.resume_subscription(256, p_as_of => '2027-07-01Z');
SELECT billing_worker.renew_due(100, '2027-07-30Z');
SELECT is(s.unit_amount, 3500::bigint, 'who was paused gets it after what was left')
FROM billing_api.subscription AS s WHERE s.subscription_id = 256;
SELECT is(
    (SELECT count(*) FROM billing_api.subscription AS s WHERE s.plan_code = 'PRO' AND s.unit_amount = 9000), 1::bigint,
    'another plan is left alone'
);

-- Another instant and another version take the place of what was set before.
SELECT billing_test.paid('twice', 'TEAM', '2027-04-01Z');
SELECT billing_api.add_price('TEAM', 1100, 'USD', '2027-05-01Z', p_as_of => '2027-04-02Z');
SELECT billing_api.migrate_price('TEAM', '2027-05-01Z', 0, false, p_as_of => '2027-04-02Z');
SELECT billing_api.add_price('TEAM', 900, 'USD', '2027-06-01Z', p_as_of => '2027-04-03Z');
SELECT is(m.difference, -100::numeric, 'a later version takes the place of the one that was announced')
FROM billing_api.migrate_price('TEAM', '2027-06-01Z', 0, false, p_as_of => '2027-04-03Z') AS m;
SELECT billing_worker.renew_due(100, '2027-05-01Z');
SELECT is(s.unit_amount, 1000::bigint, 'from its own day on') FROM billing_api.subscription AS s WHERE s.plan_code = 'TEAM';

-- Who leaves the plan is left alone, with a payment pending too; who changes the quantity is not.
SELECT billing_test.paid('leaves', 'ENTERPRISE', '2027-04-01Z'), billing_test.paid('grows', 'ENTERPRISE', '2027-04-01Z');
SELECT billing_api.add_price('ENTERPRISE', 20000, 'USD', '2027-05-01Z', p_as_of => '2027-04-02Z');
SELECT billing_api.change_plan(s.subscription_id, 'PRO', p_timing => 'AT_PERIOD_END', p_as_of => '2027-04-03Z')
FROM billing.subscription AS s INNER JOIN billing.customer AS c USING (customer_id) WHERE c.external_ref = 'leaves';
SELECT is(m.subscriptions, 1::bigint, 'who is about to leave the plan is not told')
FROM billing_api.migrate_price('ENTERPRISE', '2027-05-01Z', 0, false, p_as_of => '2027-04-04Z') AS m;
SELECT billing_api.change_plan(s.subscription_id, 'ENTERPRISE', 2, p_as_of => '2027-04-16Z')
FROM billing.subscription AS s INNER JOIN billing.customer AS c USING (customer_id) WHERE c.external_ref = 'grows';
SELECT billing_test.collect(p_as_of => '2027-04-16Z');
SELECT billing_worker.renew_due(100, '2027-05-01Z');
SELECT results_eq(
    $$SELECT c.external_ref, s.plan_code, s.unit_amount, s.quantity
      FROM billing_api.subscription AS s INNER JOIN billing_api.customer AS c USING (customer_id)
      WHERE c.external_ref IN ('leaves', 'grows') ORDER BY 1$$,
    $$VALUES ('grows', 'ENTERPRISE', 20000::bigint, 2), ('leaves', 'PRO', 9000, 1)$$,
    'a change of quantity keeps the migration, one of the plan drops it'
);

-- No period may cost more than an amount may be: neither with a quantity in force, nor with one that is yet to come, and
-- whichever of price and quantity was there first.
SELECT billing_test.plan('MANY', 1, p_trial_once_per => 'PLAN');
SELECT billing_test.paid('many', 'MANY', '2040-01-01Z', p_quantity => 1000000), billing_test.paid('few', 'MANY', '2040-01-01Z');
SELECT billing_api.add_price('MANY', 1000000000, 'USD', '2040-02-01Z'), billing_api.add_price('MANY', 1000000001, 'USD', '2040-03-01Z');
SELECT is(m.amount_after, 1000001000000000::numeric, 'a period of 10^15 is one')
FROM billing_api.migrate_price('MANY', '2040-02-01Z', 0) AS m;
SELECT billing_test.refuses(
    format($$SELECT billing_api.migrate_price('MANY', '2040-03-01Z', 0, %L)$$, x.dry_run), 'SB106', x.why,
    p_detail => (
        SELECT s.subscription_id::text
        FROM billing_api.subscription AS s WHERE s.plan_code = 'MANY' AND s.quantity = 1000000
    )
)
FROM (VALUES (true, 'a dry run refuses one beyond 10^15'), (false, 'as the run itself does')) AS x (dry_run, why);
SELECT billing_api.cancel_subscription(s.subscription_id)
FROM billing_api.subscription AS s WHERE s.plan_code = 'MANY' AND s.quantity = 1000000;
SELECT billing_api.change_plan(s.subscription_id, 'MANY', 1000000, 'AT_PERIOD_END')
FROM billing_api.subscription AS s WHERE s.plan_code = 'MANY' AND s.status = 'ACTIVE';
SELECT billing_test.refuses(
    $$SELECT billing_api.migrate_price('MANY', '2040-03-01Z', 0, false)$$, 'SB106', 'a quantity that waits counts as well'
);
SELECT billing_api.undo_change(s.subscription_id)
FROM billing_api.subscription AS s WHERE s.plan_code = 'MANY' AND s.status = 'ACTIVE';
SELECT billing_api.migrate_price('MANY', '2040-03-01Z', 0, false);
SELECT billing_test.refuses(
    format($$SELECT billing_api.change_plan(%s, 'MANY', 1000000)$$, s.subscription_id), 'SB106',
    'and a quantity is refused that a price on its way would make too dear'
)
FROM billing_api.subscription AS s WHERE s.plan_code = 'MANY' AND s.status = 'ACTIVE';

-- Bad input.
SELECT billing_test.refuses('SELECT billing_api.migrate_price(' || x.call || ')', x.sqlstate, x.why)
FROM (VALUES
    ('''NOWHERE'', ''2028-01-01Z'', 30', 'SB203', 'an unknown plan'),
    ('''BASIC'', ''2027-08-01Z'', 30, p_as_of => ''2027-07-15Z''', 'SB101', 'less than the notice ahead'),
    ('''BASIC'', NULL, 30', 'SB101', 'no day'),
    ('''BASIC'', ''infinity'', 30', 'SB101', 'no day that ever comes'),
    ('''BASIC'', ''2041-01-01Z'', NULL', 'SB101', 'no notice given'),
    ('''BASIC'', ''2041-01-01Z'', -1', 'SB101', 'a notice after the fact'),
    ('''BASIC'', ''2041-01-01Z'', 366', 'SB101', 'a notice of more than a year'),
    ('''BASIC'', ''2041-01-01Z'', 30, NULL', 'SB101', 'neither a dry run nor a real one')
) AS x (call, sqlstate, why);

SELECT is_empty('SELECT * FROM billing_test.broken()', 'no promise is broken');
SELECT is_empty('SELECT * FROM billing_test.holes()', 'no event number is missing or repeated');
SELECT * FROM finish();
ROLLBACK;
