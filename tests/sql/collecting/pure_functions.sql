-- The small functions on which settling stands, by literal arguments.
BEGIN;
SELECT plan(13);

SELECT results_eq(
    $$SELECT s, billing.outcome_rank(s)
        FROM unnest('{STARTED,UNKNOWN,REQUIRES_ACTION,PROCESSING,DECLINED,SUCCEEDED,ABANDONED,NOT_FOUND,x}'::text[]) AS s$$,
    $$VALUES ('STARTED', 1), ('UNKNOWN', 2), ('REQUIRES_ACTION', 3), ('PROCESSING', 4), ('DECLINED', 5), ('SUCCEEDED', 6),
      ('ABANDONED', NULL), ('NOT_FOUND', NULL), ('x', NULL)$$,
    'STARTED < UNKNOWN < REQUIRES_ACTION < PROCESSING < DECLINED < SUCCEEDED; the rest has no rank'
);
SELECT is(billing.outcome_rank(NULL), NULL, 'nor has NULL');
SELECT results_eq(
    'SELECT billing.lookup_delay(n) FROM generate_series(0, 4) AS n',
    $$VALUES ('30 seconds'::interval), ('2 minutes'), ('15 minutes'), ('15 minutes'), ('15 minutes')$$,
    'look-ups come after 30 seconds, 2 minutes, then every 15 minutes'
);
INSERT INTO billing.decline_code (adapter, code, class) VALUES ('simulated', 'stolen_card', 'SOFT'), ('simulated', 'odd', 'CUSTOMER');
SELECT results_eq(
    $$SELECT c.code, billing.decline_class('simulated', c.code), billing.decline_class('stripe', c.code)
      FROM unnest('{insufficient_funds,stolen_card,expired_card,odd,never_heard_of}'::text[]) AS c (code)$$,
    $$VALUES ('insufficient_funds', 'SOFT', 'SOFT'), ('stolen_card', 'SOFT', 'HARD'), ('expired_card', 'CUSTOMER', 'CUSTOMER'),
      ('odd', 'CUSTOMER', 'SOFT'), ('never_heard_of', 'SOFT', 'SOFT')$$,
    'a code has the class that its adapter gives it, else that of all adapters, else it is soft'
);
SELECT is(billing.decline_class(NULL, 'stolen_card'), 'HARD', 'without an adapter that of all adapters');
SELECT is_empty(
    $$SELECT d.code FROM billing.decline_code AS d WHERE d.adapter = '*'
      AND d.code IN ('lost_card', 'stolen_card', 'pickup_card', 'fraudulent', 'restricted_card', 'revocation_of_authorization',
          'invalid_number', 'invalid_account')
      AND d.class <> 'HARD'$$,
    'a lost, stolen, picked up, fraudulent, restricted, revoked or invalid card is never tried again'
);
UPDATE billing.database_identity SET key_prefix = 'abcd1234';
SELECT is(billing.gateway_key(640, 3), 'abcd1234-inv-640-try-3', 'a key is prefix, invoice and try');
SELECT is(
    billing.charge_text(jsonb_populate_record(NULL::billing.invoice, '{"invoice_id": 640, "plan_code": "PRO"}')), 'Invoice 640 PRO',
    'the text of a charge names invoice and plan'
);
SELECT is(
    billing.charge_text(jsonb_populate_record(NULL::billing.invoice, '{"invoice_id": 640}')), 'Invoice 640', 'a manual one has no plan'
);
SELECT is(
    billing.key_is_alive(
        jsonb_populate_record(NULL::billing.payment_attempt, '{"started_at": "2027-03-27T12:00:00Z"}'),
        jsonb_populate_record(NULL::billing.gateway_account, '{"key_lifetime": "31 days"}'), '2027-04-24T09:35:59Z'
    ), true, '90 % of 31 days are 27 days, 21 hours and 36 minutes'
);
SELECT is(
    billing.key_is_alive(
        jsonb_populate_record(NULL::billing.payment_attempt, '{"started_at": "2027-03-27T12:00:00Z"}'),
        jsonb_populate_record(NULL::billing.gateway_account, '{"key_lifetime": "31 days"}'), '2027-04-24T09:36:00Z'
    ), false, 'and not a second more'
);

-- Rounds: at most one result per invoice in each, the strongest first.
SELECT billing_test.renewal_invoice('a');
SELECT billing_test.renewal_invoice('b');
SELECT billing_test.start('2027-05-01T00:00:00Z');
CREATE TEMPORARY TABLE result AS
SELECT array_agg(billing_test.result(a.attempt_id, o.outcome, 'x')) AS results
FROM billing.payment_attempt AS a, (VALUES ('NOT_ATTEMPTED'), ('UNKNOWN'), ('SUCCEEDED'), ('DECLINED')) AS o (outcome)
WHERE a.status = 'STARTED';
SELECT results_eq(
    $$SELECT n, (SELECT string_agg((x).outcome, ' ') FROM unnest(billing.results_of_round(r.results, n)) AS x)
      FROM result AS r, generate_series(1, 5) AS n$$,
    $$VALUES (1, 'SUCCEEDED SUCCEEDED'), (2, 'DECLINED DECLINED'), (3, 'UNKNOWN UNKNOWN'), (4, 'NOT_ATTEMPTED NOT_ATTEMPTED'), (5, NULL)$$,
    'several results about one invoice are settled in as many rounds, the strongest first'
);
SELECT is(billing.results_of_round(NULL, 1), '{}'::billing.charge_result[], 'no results make no round');

SELECT * FROM finish();
ROLLBACK;
