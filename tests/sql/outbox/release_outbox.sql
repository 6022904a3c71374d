BEGIN;
SELECT plan(5);

SELECT throws_ok($$SELECT billing_worker.release_outbox(NULL)$$, 'SB101', NULL, 'a relay needs a name');
SELECT billing_test.outbox_event(64, 1);
SELECT billing_worker.lease_outbox('one', 10);
SELECT is(billing_worker.release_outbox('two'), 0, 'who holds nothing gives nothing back');
SELECT is(billing_worker.release_outbox('one'), 16, 'who holds all gives all back');
SELECT results_eq(
    $$SELECT partition, lease_epoch FROM billing_worker.lease_outbox('two', 10)$$,
    $$VALUES (1::smallint, 2::bigint)$$,
    'another relay has it at once, under a new epoch'
);
SELECT is_empty(
    $$SELECT relay FROM billing.outbox_relay WHERE relay = 'one'$$, 'who has stopped counts for no share'
);

SELECT * FROM finish();
ROLLBACK;
