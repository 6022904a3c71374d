-- O09: whatever is to be told stands in the transaction that it tells of.
BEGIN;
SELECT plan(23);

SELECT billing_test.clock('2027-05-01T00:00:00Z');
SELECT billing_api.create_plan('BASIC', 'Basic', 3000, 'USD', 'MONTH', p_as_of => '2027-01-01T00:00:00Z');
CREATE TEMPORARY TABLE scene AS SELECT billing_test.customer('c') AS customer_id, 0::bigint AS subscription_id;
UPDATE scene SET subscription_id = billing_test.subscription(customer_id, p_as_of => '2027-04-01T00:00:00Z');
SELECT billing_test.collect(p_as_of => '2027-04-01T00:00:00Z');
CREATE TEMPORARY TABLE operation (no integer, name text, statement text, events text);
INSERT INTO operation VALUES
(1, 'a sign-up', 'SELECT billing_test.subscription(s.customer_id, p_resource_ref => ''other'') FROM scene AS s',
    'SubscriptionCreated InvoiceOpened'),
(2, 'a renewal', 'SELECT billing_worker.renew_due(10)', 'InvoiceOpened'),
(3, 'a payment', 'SELECT billing_test.collect(p_as_of => ''2027-05-01T00:00:00Z'')', 'InvoicePaid SubscriptionRenewed InvoicePaid'),
(4, 'a cancellation at period end', 'SELECT billing_api.cancel_subscription(s.subscription_id, true) FROM scene AS s',
    'SubscriptionCancelScheduled'),
(5, 'its undoing', 'SELECT billing_api.undo_cancel(s.subscription_id) FROM scene AS s', 'SubscriptionCancelScheduled'),
(6, 'a cancellation', 'SELECT billing_api.cancel_subscription(s.subscription_id, p_as_of => ''2027-05-02T00:00:00Z'') FROM scene AS s',
    'SubscriptionCanceled'),
(7, 'credit', 'SELECT billing_api.grant_credit(s.customer_id, 100, ''USD'', ''x'', ''k'') FROM scene AS s', 'CreditGranted');

CREATE FUNCTION pg_temp.taken_back(p_statement text, p_break_outbox boolean)
RETURNS text
LANGUAGE plpgsql
AS $function$
-- Does it, and fails: while the event is written, or after all of it.
DECLARE
    c_before CONSTANT text := billing_test.fingerprint();
    v_told bigint;
BEGIN
    PERFORM set_config('test.break_outbox', p_break_outbox::text, true);
    BEGIN
        EXECUTE p_statement;
        SELECT count(*) INTO v_told FROM billing.outbox_event AS o WHERE o.xmin = pg_current_xact_id()::xid;
        RAISE EXCEPTION USING ERRCODE = 'TT000', MESSAGE = 'after the event';
    EXCEPTION WHEN SQLSTATE 'TT000' OR SQLSTATE 'TT001' THEN
        PERFORM set_config('test.break_outbox', 'false', true);
        RETURN sqlerrm || ': ' || CASE WHEN billing_test.fingerprint() = c_before THEN 'nothing is left' ELSE 'something is left' END;
    END;
END;
$function$;
CREATE FUNCTION pg_temp.break_outbox()
RETURNS trigger
LANGUAGE plpgsql
AS $function$
BEGIN
    IF current_setting('test.break_outbox', true) = 'true' THEN
        RAISE EXCEPTION USING ERRCODE = 'TT001', MESSAGE = 'in the event';
    END IF;
    RETURN new;
END;
$function$;
CREATE TRIGGER break_outbox BEFORE INSERT ON billing.outbox_event FOR EACH ROW EXECUTE FUNCTION pg_temp.break_outbox();

CREATE FUNCTION pg_temp.test(p_operation operation)
RETURNS SETOF text
LANGUAGE plpgsql
AS $function$
DECLARE
    v_last bigint := (SELECT coalesce(max(o.outbox_event_id), 0) FROM billing.outbox_event AS o);
BEGIN
    RETURN NEXT tap.is(
        pg_temp.taken_back(p_operation.statement, true), 'in the event: nothing is left',
        p_operation.name || ' whose event cannot be written has not happened'
    );
    RETURN NEXT tap.is(
        pg_temp.taken_back(p_operation.statement, false), 'after the event: nothing is left',
        p_operation.name || ' that is taken back is told to nobody'
    );
    EXECUTE p_operation.statement;
    RETURN NEXT tap.is(
        (SELECT string_agg(o.event_type, ' ' ORDER BY o.outbox_event_id) FROM billing.outbox_event AS o WHERE o.outbox_event_id > v_last),
        p_operation.events, p_operation.name || ' that commits is told'
    );
END;
$function$;
SELECT pg_temp.test(o) FROM operation AS o ORDER BY o.no;

SELECT is_empty('SELECT * FROM billing_test.holes()', 'the numbers of each subscription are without holes');
SELECT is_empty('SELECT * FROM billing_test.broken()', 'no promise is broken');

SELECT * FROM finish();
ROLLBACK;
