-- C25, D06 and bad input: what a change may not be, in every status and for every role.
BEGIN;
SELECT plan(39);
SELECT billing_test.plans();
SELECT billing_api.create_plan('EURO', 'Euro', 9000, 'EUR', 'MONTH', p_as_of => '2026-01-01Z');
SELECT billing_test.paid('active', 'BASIC', '2027-04-01Z');

-- C25: across currencies.
SELECT billing_api.grant_credit(64, 2000, 'USD', 'gift', 'gift', p_as_of => '2027-04-02Z');
SELECT billing_test.refuses(
    $$SELECT billing_api.change_plan(64, 'EURO', p_as_of => '2027-04-16Z')$$, 'SB102', 'C25: another currency is refused'
);
SELECT billing_api.create_subscription(64, 'EURO', 'euro', 'other', p_currency => 'EUR', p_as_of => '2027-04-16Z');
SELECT results_eq(
    $$SELECT i.currency, i.credit_applied, i.amount_due FROM billing_api.invoice AS i WHERE i.subscription_id = 128$$,
    $$VALUES ('EUR', 0::bigint, 9000::bigint)$$, 'C25: credit in dollars pays nothing in euros'
);
SELECT results_eq(
    'SELECT b.currency, b.balance FROM billing_api.credit_balance AS b', $$VALUES ('USD', 2000::bigint)$$, 'C25: and stays what it is'
);

-- Arguments.
SELECT billing_test.refuses(
    format('SELECT billing_api.change_plan(64, %L, p_as_of => ''2027-04-16Z'')', t.hostile_text), t.sqlstate,
    'a plan code is not ' || t.text_name
)
FROM billing_test.hostile_texts() AS t;
SELECT billing_test.refuses(
    format('SELECT billing_api.change_plan(64, %L, p_as_of => ''2027-04-16Z'')', billing_test.injection()), 'SB203',
    'an injection is no plan'
);
SELECT billing_test.refuses(
    $$SELECT billing_api.change_plan(64, 'PRO', 0, p_as_of => '2027-04-16Z')$$, 'SB101', 'no units are no quantity'
);
SELECT billing_test.refuses(
    $$SELECT billing_api.change_plan(64, 'PRO', 1000001, p_as_of => '2027-04-16Z')$$, 'SB101', 'nor more than a million'
);
SELECT billing_test.refuses(
    $$SELECT billing_api.change_plan(64, 'PRO', 1, 'SOON', p_as_of => '2027-04-16Z')$$, 'SB101', 'a timing is known'
);
SELECT billing_test.refuses($$SELECT billing_api.change_plan(64, 'PRO', 1, NULL, p_as_of => '2027-04-16Z')$$, 'SB101', 'and given');
SELECT billing_test.refuses(
    $$SELECT billing_api.change_plan(64, 'PRO', 1, 'IMMEDIATE', 'LATER', p_as_of => '2027-04-16Z')$$, 'SB101', 'so is the payment behavior'
);
SELECT billing_test.refuses($$SELECT billing_api.change_plan(1, 'PRO', p_as_of => '2027-04-16Z')$$, 'SB201', 'an unknown subscription');
SELECT billing_test.refuses($$SELECT billing_api.change_plan(NULL, 'PRO', p_as_of => '2027-04-16Z')$$, 'SB201', 'no subscription');
SELECT billing_test.refuses($$SELECT billing_api.change_plan(64, 'PRO', p_as_of => NULL)$$, 'SB104', 'no instant');
SELECT billing_test.refuses($$SELECT billing_api.change_plan(64, 'PRO', p_as_of => 'infinity')$$, 'SB104', 'an infinite instant');
SELECT billing_test.refuses(
    $$SELECT billing_api.change_plan(64, 'PRO', p_expected_version => 1, p_as_of => '2027-04-16Z')$$, 'SB304', 'another version',
    p_detail => (SELECT s.version::text FROM billing.subscription AS s WHERE s.subscription_id = 64)
);
SELECT billing_api.create_plan('DEAR', 'Dear', 1000000000000000, 'USD', 'MONTH', p_as_of => '2026-01-01Z');
SELECT billing_test.refuses(
    $$SELECT billing_api.change_plan(64, 'DEAR', 2, p_as_of => '2027-04-16Z')$$, 'SB106', 'more than there is money'
);
SELECT billing_test.refuses(
    $$SELECT billing_api.change_plan(64, 'PRO', p_payment_behavior => 'GRANT_FIRST', p_as_of => '2027-04-16Z')$$, 'SB313',
    'who is no operator cannot grant first', 'billing_app'
);
SELECT billing_api.create_plan('TRUSTED', 'Trusted', 9000, 'USD', 'MONTH', p_grant_first_allowed => true, p_as_of => '2026-01-01Z');
SELECT lives_ok(
    $$SELECT billing_test.run_as(
        'billing_app',
        $q$SELECT billing_api.preview_change_plan(64, 'TRUSTED', p_payment_behavior => 'GRANT_FIRST', p_as_of => '2027-04-16Z')$q$
    )$$,
    'unless the plan allows it'
);

-- Statuses.
SELECT billing_test.refuses(
    $$SELECT billing_api.change_plan(128, 'EURO', 2, p_as_of => '2027-04-16Z')$$, 'SB303', 'a checkout is not changed'
);
SELECT billing_test.refuses(
    $$SELECT billing_api.change_plan(128, 'EURO', 2, 'AT_PERIOD_END', p_as_of => '2027-04-16Z')$$, 'SB303', 'nor for its next period'
);
SELECT billing_test.paid('paused', 'BASIC', '2027-04-01Z');
SELECT billing_api.pause_subscription(192, p_as_of => '2027-04-10Z');
SELECT billing_test.refuses(
    $$SELECT billing_api.change_plan(192, 'PRO', p_as_of => '2027-04-16Z')$$, 'SB303', 'a pause is no time for a change'
);
SELECT billing_test.refuses(
    $$SELECT billing_api.change_plan(192, 'PRO', 1, 'AT_PERIOD_END', p_as_of => '2027-04-16Z')$$, 'SB303', 'and has no end to change at'
);
SELECT billing_api.cancel_subscription(192, p_as_of => '2027-04-10Z');
SELECT billing_test.refuses(
    $$SELECT billing_api.change_plan(192, 'PRO', p_as_of => '2027-04-16Z')$$, 'SB302', 'what has ended is not changed'
);
SELECT billing_test.paid('overdue', 'BASIC', '2027-04-01Z', p_term_periods => 1);
SELECT billing_test.refuses(
    $$SELECT billing_api.change_plan(256, 'PRO', p_as_of => '2027-05-02Z')$$,
    'SB302', 'nor what ended at a boundary that nobody has taken up yet'
);
SELECT billing_test.paid('pauses', 'BASIC', '2027-04-01Z');
SELECT billing_api.pause_subscription(320, true, p_as_of => '2027-04-10Z');
SELECT billing_test.refuses(
    $$SELECT billing_api.change_plan(320, 'PRO', p_payment_behavior => 'GRANT_FIRST', p_as_of => '2027-04-16Z')$$, 'SB303',
    'what pauses at its end cannot owe anything then'
);

-- D06: in a trial it is a swap.
SELECT billing_test.customer('trial');
SELECT billing_api.create_subscription(c.customer_id, 'BASIC', 'k', p_trial_days => 14, p_as_of => '2027-04-01Z')
FROM billing.customer AS c WHERE c.external_ref = 'trial';
SELECT results_eq(
    $$SELECT s.status, s.plan_code, s.current_period_end FROM billing_api.change_plan(384, 'PRO', p_as_of => '2027-04-08Z') AS s$$,
    $$VALUES ('TRIALING', 'PRO', '2027-04-15Z'::timestamptz)$$, 'D06: the trial goes on'
);
SELECT is((SELECT count(*) FROM billing_api.invoice AS i WHERE i.subscription_id = 384), 0::bigint, 'D06: and nothing is billed');
SELECT billing_worker.renew_due(10, '2027-04-15Z');
SELECT results_eq(
    'SELECT * FROM billing_test.invoices_of(384)', $$VALUES ('RENEWAL OPEN 9000 due', 'PERIOD 9000')$$, 'D06: its first invoice is 9000'
);
SELECT billing_test.refuses(
    $$SELECT billing_api.change_plan(384, 'BASIC', p_as_of => '2027-04-15Z')$$, 'SB320', 'once it is billed, the invoice comes first'
);

-- The same key again.
SELECT billing_api.change_plan(64, 'PRO', p_idempotency_key => 'key', p_as_of => '2027-04-16Z');
SELECT is(
    (SELECT s.version
    FROM billing_api.change_plan(64, 'PRO', p_idempotency_key => 'key', p_expected_version => 1, p_as_of => '2027-04-20Z') AS s),
    (SELECT s.version
    FROM billing.subscription AS s WHERE s.subscription_id = 64), 'the same key gets the same answer, whatever the version'
);
SELECT billing_test.refuses(
    $$SELECT billing_api.change_plan(64, 'TEAM', p_idempotency_key => 'key', p_as_of => '2027-04-16Z')$$,
    'SB305', 'with other arguments it is refused'
);

SELECT is_empty('SELECT * FROM billing_test.broken()', 'no promise is broken');
SELECT * FROM finish();
ROLLBACK;
