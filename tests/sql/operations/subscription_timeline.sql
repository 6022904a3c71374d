-- Why a subscription is what it is, in the order in which it came about, whatever the clocks say.
BEGIN;
SELECT plan(12);
SELECT billing_test.plans();

-- All of it within one instant: the order is that of the event numbers, and of what was written when.
SELECT billing_test.paid('instant', 'BASIC', '2027-04-01Z');
SELECT results_eq(
    $$SELECT t.event_seq, t.what, t.amount FROM billing_ops.subscription_timeline(64) AS t$$,
    $$VALUES (1::bigint, 'SubscriptionCreated', NULL::bigint), (2, 'InvoiceOpened', 3000), (NULL, 'Attempt 1 started', 3000),
             (NULL, 'SEND said SUCCEEDED, APPLIED', 3000), (3, 'InvoicePaid', 3000), (4, 'SubscriptionActivated', NULL),
                      (4, 'Period BILLED', NULL)$$,
    'within one instant the order is that in which things were written'
);
SELECT billing_worker.renew_due(10, '2027-05-01Z');
SELECT billing_test.collect('DECLINED', 'insufficient_funds', '2027-05-01Z');
SELECT billing_api.grant_credit(64, 500, 'USD', 'apology', 'k', p_as_of => '2027-05-01Z');
SELECT billing_test.collect(p_as_of => '2027-05-02Z');
SELECT billing_test.collect(p_as_of => '2027-05-02Z');
SELECT results_eq(
    $$SELECT t.event_seq, t.what, t.amount, t.detail ->> 'code'
      FROM billing_ops.subscription_timeline(64) AS t WHERE t.at > '2027-04-02Z'$$,
    $$VALUES (5::bigint, 'InvoiceOpened', 3000::bigint, NULL::text), (5, 'Period BILLED', NULL, NULL),
             (NULL, 'Attempt 1 started', 3000, NULL),
             (NULL, 'SEND said DECLINED, APPLIED', 3000, 'insufficient_funds'), (6, 'InvoicePaymentFailed', 3000, NULL),
                      (7, 'SubscriptionPastDue', NULL, NULL),
             (NULL, 'Credit DRAWN', -500, NULL), (NULL, 'Attempt 2 started', 2500, NULL),
                      (NULL, 'SEND said SUCCEEDED, APPLIED', 2500, NULL),
             (8, 'InvoicePaid', 3000, NULL), (9, 'SubscriptionRecovered', NULL, NULL), (10, 'SubscriptionRenewed', 3000, NULL)$$,
    'a plain renewal stands there with its invoice, attempts with what was said, credit with its amount'
);

-- A change tells from what to what, and who.
SELECT set_config('billing.actor', 'support:anna', true);
SELECT billing_api.change_plan(64, 'PRO', 2, p_as_of => '2027-05-16 12:00Z');
SELECT billing_test.collect(p_as_of => '2027-05-16 12:00Z');
SELECT results_eq(
    $$SELECT t.actor, t.detail ->> 'fromPlanCode', t.detail ->> 'toPlanCode', t.detail ->> 'fromQuantity', t.detail ->> 'toQuantity'
      FROM billing_ops.subscription_timeline(64) AS t WHERE t.what = 'SubscriptionPlanChanged'$$,
    $$VALUES ('support:anna', 'BASIC', 'PRO', '1', '2')$$, 'a change tells who, from what and to what'
);

-- An operator who sets the clock back writes after what was there.
SELECT billing_api.cancel_subscription(64, true, p_as_of => '2027-05-10Z');
SELECT is(
    (SELECT t.what
    FROM billing_ops.subscription_timeline(64) WITH ORDINALITY AS t ORDER BY t.ordinality DESC LIMIT 1), 'SubscriptionCancelScheduled',
    'what is dated back stands where it happened'
);
SELECT is(
    (SELECT array_agg(t.event_seq ORDER BY t.ordinality) FILTER (WHERE t.event_seq IS NOT NULL)
     = array_agg(t.event_seq ORDER BY t.event_seq) FILTER (WHERE t.event_seq IS NOT NULL)
     FROM billing_ops.subscription_timeline(64) WITH ORDINALITY AS t), true, 'numbers never go back'
);

-- A period that an end has cut away leaves its invoice there; a webhook and a charge in flight are shown as well.
SELECT billing_test.paid('early', 'BASIC', '2027-04-01Z');
SELECT billing_api.renew_now(128, p_as_of => '2027-04-16Z');
SELECT billing_test.start('2027-04-16Z');
SELECT billing_worker.receive_webhook(
    'sim', 'evt_1', 'charge.pending', jsonb_build_object('reference', a.idempotency_key, 'outcome', 'PROCESSING'), '2027-04-16Z'
)
FROM billing.payment_attempt AS a WHERE a.status = 'STARTED';
SELECT billing_worker.process_webhooks(10, '2027-04-16Z');
SELECT billing_api.cancel_subscription(128, p_as_of => '2027-04-17Z');
SELECT results_eq(
    $$SELECT t.event_seq, t.what FROM billing_ops.subscription_timeline(128) AS t WHERE t.at > '2027-04-02Z'$$,
    $$VALUES (5::bigint, 'InvoiceOpened'), (NULL, 'Attempt 1 started'), (NULL, 'Webhook charge.pending: LOOKUP'), (6, 'InvoiceVoided'),
             (7, 'SubscriptionCanceled')$$,
    'a period that was cut away leaves its invoice'
);

SELECT billing_test.refuses('SELECT billing_ops.subscription_timeline(1)', 'SB201', 'an unknown subscription has none');
SELECT billing_test.refuses('SELECT billing_ops.subscription_timeline(NULL)', 'SB201', 'nor has none at all');

-- explain_invoice: each amount out of what the calculation stored.
SELECT results_eq(
    $$SELECT e.line_no, e.amount, e.formula, e.recomputed
      FROM billing.invoice AS i CROSS JOIN LATERAL billing_ops.explain_invoice(i.invoice_id) AS e
      WHERE i.subscription_id = 64 AND i.kind = 'CHANGE' ORDER BY 1$$,
    $$VALUES (1, -1500::bigint, '-floor(3000 x 1 x 1339200 s / 2678400 s)', -1500::bigint),
             (2, 9000, 'floor(9000 x 2 x 1339200 s / 2678400 s)', 9000)$$,
    'a line tells its formula, and what it gives'
);
SELECT is_empty(
    'SELECT l.invoice_id, l.line_no FROM billing.invoice_line AS l WHERE l.amount IS DISTINCT FROM billing.recomputed_amount(l)',
    'and that is its amount, for every line'
);
SELECT billing_test.refuses('SELECT billing_ops.explain_invoice(1)', 'SB204', 'an unknown invoice has no lines to explain');

SELECT is_empty('SELECT * FROM billing_test.broken()', 'no promise is broken');
SELECT * FROM finish();
ROLLBACK;
