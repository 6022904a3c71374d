BEGIN;
SELECT plan(9);

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
    (SELECT c.kind FROM billing_ops.open_cases AS c), 'BINDING_MISMATCH', 'and a person sees it'
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

SELECT * FROM finish();
ROLLBACK;
