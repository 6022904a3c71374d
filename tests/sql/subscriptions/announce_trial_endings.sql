-- SubscriptionTrialEnding: once for each end of a trial, in time, and to nobody who has cancelled.
BEGIN;
SELECT plan(15);
SELECT billing_test.plans();
SELECT billing_test.customer(x.name) FROM unnest('{a,b,c}'::text[]) AS x (name);
SELECT billing_api.create_subscription(x.no, 'BASIC', 'k', p_trial_days => 14, p_as_of => '2027-04-01Z')
FROM unnest('{64,128,192}'::bigint[]) AS x (no);
SELECT billing_api.cancel_subscription(128, true, p_as_of => '2027-04-02Z');
SELECT billing_test.paid('no trial', 'BASIC', '2027-04-01Z');

SELECT is(billing_worker.announce_trial_endings(10, '2027-04-11 23:59:59Z'), 0, 'more than three days before nobody is told');
SELECT is(billing_worker.announce_trial_endings(1, '2027-04-12Z'), 1, 'three days before they are, as many as are asked for');
SELECT is(billing_worker.announce_trial_endings(10, '2027-04-12Z'), 1, 'then the rest, but not who has cancelled');
SELECT is(billing_worker.announce_trial_endings(10, '2027-04-13Z'), 0, 'and nobody twice');
SELECT is(
    (SELECT o.payload ->> 'trialEnd' FROM billing.outbox_event AS o WHERE o.event_type = 'SubscriptionTrialEnding' AND o.aggregate_id = 64),
    '2027-04-15T00:00:00Z', 'with the end of the trial'
);
SELECT billing_api.undo_cancel(128, p_as_of => '2027-04-13Z');
SELECT is(billing_worker.announce_trial_endings(10, '2027-04-13Z'), 1, 'who stays after all is told then');
SELECT billing_api.extend_trial(64, '2027-05-15Z', p_as_of => '2027-04-14Z');
SELECT is(billing_worker.announce_trial_endings(10, '2027-04-14Z'), 0, 'an end that was moved is far away again');
SELECT is(billing_worker.announce_trial_endings(10, '2027-05-12Z'), 1, 'and is told of anew');
SELECT is(billing_worker.announce_trial_endings(10, '2027-05-12Z', 60), 0, 'another notice tells nobody again');
SELECT billing_api.create_subscription(x.customer_id, 'BASIC', 'short', p_trial_days => 1, p_as_of => '2027-06-01Z')
FROM billing_test.customer('short') AS x (customer_id);
SELECT is(billing_worker.announce_trial_endings(10, '2027-06-01Z'), 1, 'a trial of a day is told of at once');

SELECT billing_test.refuses(format('SELECT billing_worker.announce_trial_endings(%s)', x.call), x.sqlstate, x.call)
FROM (VALUES ('NULL', 'SB101'), ('0', 'SB101'), ('10, ''2027-06-01Z'', -1', 'SB101')) AS x (call, sqlstate);
SELECT is_empty('SELECT * FROM billing_test.broken()', 'no promise is broken');
SELECT is_empty('SELECT * FROM billing_test.holes()', 'no event number is missing or repeated');
SELECT * FROM finish();
ROLLBACK;
