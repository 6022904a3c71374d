BEGIN;
SELECT plan(22);
SELECT billing_test.clock('2027-01-31 10:30Z');
SELECT billing_test.customer('c', p_token => NULL);

SELECT results_eq(
    $$SELECT * FROM billing_api.grant_credit(64, 500, 'USD', 'goodwill', 'k1')$$,
    $$VALUES (64::bigint, 'USD', 500::bigint)$$, 'credit is given, and the balance returned'
);
SELECT results_eq(
    $$SELECT * FROM billing_api.grant_credit(64, 700, 'USD', 'goodwill', 'k2')$$,
    $$VALUES (64::bigint, 'USD', 1200::bigint)$$, 'another key gives more'
);
SELECT results_eq(
    $$SELECT * FROM billing_api.grant_credit(64, 500, 'USD', 'goodwill', 'k1', '2027-06-30Z')$$,
    $$VALUES (64::bigint, 'USD', 500::bigint)$$, 'the same key gets the stored answer and gives nothing'
);
SELECT is((SELECT b.balance FROM billing.credit_balance AS b), 1200::bigint, 'so that the balance is that of two grants');
SELECT ok(
    (SELECT bool_and(k.keep_for_ever) FROM billing.idempotency_key AS k WHERE k.operation = 'grant_credit'),
    'the keys are kept for ever'
);
SELECT results_eq(
    $$SELECT e.aggregate_type, e.aggregate_id, e.aggregate_seq, e.event_type, e.payload
      FROM billing.outbox_event AS e ORDER BY e.outbox_event_id$$,
    $$VALUES ('customer', 64::bigint, 1::bigint, 'CreditGranted', jsonb_build_object(
          'customerId', 64, 'subscriptionId', NULL, 'resourceRef', NULL, 'occurredAt', '2027-01-31T10:30:00Z',
          'version', 1, 'amount', 500, 'currency', 'USD', 'reason', 'goodwill', 'balance', 500)),
      ('customer', 64, 2, 'CreditGranted', jsonb_build_object(
          'customerId', 64, 'subscriptionId', NULL, 'resourceRef', NULL, 'occurredAt', '2027-01-31T10:30:00Z',
          'version', 2, 'amount', 700, 'currency', 'USD', 'reason', 'goodwill', 'balance', 1200))$$,
    'each grant is told to the world once, in the sequence of the customer'
);
SELECT is(
    (SELECT e.actor FROM billing.credit_entry AS e WHERE e.entry_seq = 1), session_user::text, 'the ledger says who gave it'
);

SELECT billing_test.refuses(s.statement, s.sqlstate, s.description)
FROM (VALUES
    ($$SELECT billing_api.grant_credit(64, 500, 'USD', 'other reason', 'k1')$$, 'SB305', 'the key with another reason'),
    ($$SELECT billing_api.grant_credit(64, 501, 'USD', 'goodwill', 'k1')$$, 'SB305', 'the key with another amount'),
    ($$SELECT billing_api.grant_credit(64, 500, 'USD', 'goodwill')$$, 'SB101', 'no key'),
    ($$SELECT billing_api.grant_credit(64, 0, 'USD', 'goodwill', 'k3')$$, 'SB106', 'nothing'),
    ($$SELECT billing_api.grant_credit(64, -5, 'USD', 'goodwill', 'k3')$$, 'SB106', 'a negative amount'),
    ($$SELECT billing_api.grant_credit(64, NULL, 'USD', 'goodwill', 'k3')$$, 'SB101', 'no amount'),
    ($$SELECT billing_api.grant_credit(64, 9000000000000000000, 'USD', 'goodwill', 'k3')$$, 'SB106', 'an absurd amount'),
    ($$SELECT billing_api.grant_credit(64, 5, 'XXX', 'goodwill', 'k3')$$, 'SB102', 'an unknown currency'),
    ($$SELECT billing_api.grant_credit(64, 5, 'USD', NULL, 'k3')$$, 'SB101', 'no reason'),
    ($$SELECT billing_api.grant_credit(64, 5, 'USD', repeat('x', 10000000), 'k3')$$, 'SB101', 'a reason of ten megabytes'),
    ($$SELECT billing_api.grant_credit(64, 5, 'USD', 'card 4111-1111-1111-1111', 'k3')$$, 'SB105', 'a card number as a reason'),
    ($$SELECT billing_api.grant_credit(65, 5, 'USD', 'goodwill', 'k3')$$, 'SB202', 'an unknown customer'),
    ($$SELECT billing_api.grant_credit(NULL, 5, 'USD', 'goodwill', 'k3')$$, 'SB202', 'no customer'),
    ($$SELECT billing_api.grant_credit(64, 5, 'USD', 'goodwill', 'k3', NULL)$$, 'SB104', 'no p_as_of')
) AS s (statement, sqlstate, description);

UPDATE billing.customer SET status = 'CLOSED';
SELECT billing_test.refuses(
    $$SELECT billing_api.grant_credit(64, 5, 'USD', 'goodwill', 'k3')$$, 'SB314', 'a closed customer gets no credit'
);

SELECT * FROM finish();
ROLLBACK;
