BEGIN;
SELECT plan(15);

SELECT billing_test.renewal_invoice();
SELECT billing_ops.set_clock('2027-05-01T00:01:00Z');
CREATE TEMPORARY TABLE attempt AS SELECT billing_test.start('2027-05-01T00:00:00Z') AS id;

SELECT is(
    (SELECT r.verdict FROM attempt AS a, billing_test.report(
        a.id, 'SUCCEEDED', '2027-05-01T00:01:00Z', p_payment_id => 'pi_1', p_amount => 9223372036854775807, p_currency => 'USD'
    ) AS r),
    'REJECTED', 'an amount beyond all money goes to a case'
);
SELECT is(
    (SELECT c.kind FROM billing_ops.open_cases AS c), 'AMOUNT_MISMATCH', 'and a person sees it'
);
SELECT is(
    (SELECT r.verdict FROM attempt AS a, billing_test.report(
        a.id, 'UNKNOWN', '2027-05-01T00:01:00Z', repeat('x', 100000), p_payment_id => repeat('p', 10000000),
        p_currency => repeat('U', 100000)
    ) AS r),
    'APPLIED', 'texts of any length are settled'
);
SELECT is(
    (SELECT a.gateway_payment_id
     FROM billing.payment_attempt AS a INNER JOIN attempt AS t ON a.attempt_id = t.id), NULL, 'a payment id of ten million letters is none'
);
SELECT billing_test.report(a.id, 'UNKNOWN', '2027-05-01T00:01:00Z', p_payment_id => 'pay_4242424242424242af19') FROM attempt AS a;
SELECT is(
    (SELECT a.gateway_payment_id
     FROM billing.payment_attempt AS a INNER JOIN attempt AS t ON a.attempt_id = t.id), 'pay_4242424242424242af19',
    'a payment id that holds the digits of a card by chance is kept: without it nothing could be refunded'
);
SELECT is(
    (SELECT max(length(r.code)) FROM billing.payment_report AS r), 100, 'a code is cut to what is stored'
);
SELECT is(
    (SELECT r.verdict FROM attempt AS a, billing_test.report(
        a.id, 'NOT_ATTEMPTED', '2027-05-01T00:01:00Z', '429', p_retry_after => 1e-400
    ) AS r),
    'APPLIED', 'a Retry-After of next to nothing is no time at all'
);
SELECT billing_test.report(a.id, 'REQUIRES_ACTION', '2027-05-01T00:01:00Z', p_action_expires_at => 'infinity') FROM attempt AS a;
SELECT is(
    (SELECT a.action_expires_at
     FROM billing.payment_attempt AS a INNER JOIN attempt AS t ON a.attempt_id = t.id), '2027-05-08T00:01:00Z'::timestamptz,
    'an action that never expires fences an invoice off for a week and not longer'
);
SELECT billing_test.report(a.id, 'DECLINED', '2027-05-01T00:01:00Z', '4111111111111111') FROM attempt AS a;
SELECT is(
    (SELECT a.decline_code
     FROM billing.payment_attempt AS a INNER JOIN attempt AS t ON a.attempt_id = t.id), 'refused_text', 'a card number is no decline code'
);

-- What credit cannot hold on top of what is in it.
SELECT billing_test.renewal_invoice('rich');
CREATE TEMPORARY TABLE rich AS SELECT billing_test.start('2027-05-01T00:02:00Z') AS id;
SELECT billing_api.grant_credit(a.customer_id, 1, 'USD', 'gift', 'gift', p_as_of => '2027-05-01T00:02:00Z')
FROM billing.payment_attempt AS a INNER JOIN rich AS t ON a.attempt_id = t.id;
SELECT is(
    (SELECT r.verdict FROM rich AS a, billing_test.report(
        a.id, 'SUCCEEDED', '2027-05-01T00:02:00Z', p_payment_id => 'pi_2', p_amount => 1000000000003000, p_currency => 'USD'
    ) AS r),
    'REJECTED', 'a surplus that credit cannot hold goes to a case instead of holding up the others'
);
SELECT is(
    (SELECT count(*) FROM billing_ops.open_cases AS c WHERE c.kind = 'AMOUNT_MISMATCH'), 2::bigint, 'and a person sees it too'
);
SELECT is(
    (SELECT r.verdict FROM rich AS a, billing_test.report(
        a.id, 'SUCCEEDED', '2027-05-01T00:03:00Z', p_payment_id => 'pi_2', p_amount => 1000000000002999, p_currency => 'USD'
    ) AS r),
    'APPLIED', 'one that it can hold is believed'
);
SELECT is(
    (SELECT b.balance
     FROM billing_api.credit_balance AS b), 1000000000000000, 'to the last unit'
);

-- A period and what waited for its invoice are more than one amount may be.
SELECT billing_api.create_plan('FREE', 'Free', 0, 'USD', 'MONTH', p_as_of => '2027-01-01Z'),
    billing_api.create_plan('DEAR', 'Dear', 1000000000000000, 'USD', 'MONTH', p_as_of => '2027-01-01Z');
SELECT billing_test.paid_subscription(billing_test.customer('dear'), 'FREE', p_as_of => '2027-04-01Z');
SELECT billing_api.change_plan(s.subscription_id, 'DEAR', p_timing => 'NEXT_INVOICE', p_as_of => '2027-04-01Z')
FROM billing_api.subscription AS s WHERE s.plan_code = 'FREE';
SELECT billing_worker.renew_due(1, '2027-05-01T00:04:00Z');
CREATE TEMPORARY TABLE dear AS SELECT q.attempt_id AS id, q.amount
FROM billing_worker.start_attempts('sim', 10, 'test', '2027-05-01T00:04:00Z') AS q;
SELECT is((SELECT d.amount FROM dear AS d), 2000000000000000, 'what is asked for may be more than credit holds');
SELECT is(
    (SELECT r.verdict FROM dear AS d, billing_test.report(
        d.id, 'SUCCEEDED', '2027-05-01T00:04:00Z', p_payment_id => 'pi_3', p_amount => d.amount, p_currency => 'USD'
    ) AS r),
    'APPLIED', 'and is believed once it was paid'
);

SELECT * FROM finish();
ROLLBACK;
