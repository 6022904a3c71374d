-- What was granted first and is still owed: an end waives it, so it is taken off before anything comes back; but what was
-- brought along into it was paid, and what it has drawn from credit comes back by itself, once.
BEGIN;
SELECT plan(12);
SELECT billing_test.plans();
CREATE FUNCTION pg_temp.granted(p_name text, p_plan_code text, p_credit bigint)
RETURNS bigint
LANGUAGE plpgsql
AS $function$
-- BASIC since 1 April, paid; another plan since 16 April, granted first: half of BASIC, 1500, was used.
DECLARE
    v_subscription_id bigint := billing_test.paid(p_name, 'BASIC', '2027-04-01Z');
BEGIN
    PERFORM billing_api.grant_credit(s.customer_id, p_credit, 'USD', 'gift', p_name, p_as_of => '2027-04-02Z')
    FROM billing.subscription AS s WHERE s.subscription_id = v_subscription_id AND p_credit > 0;
    PERFORM billing_api.change_plan(v_subscription_id, p_plan_code, p_payment_behavior => 'GRANT_FIRST', p_as_of => '2027-04-16Z');
    RETURN v_subscription_id;
END;
$function$;

-- A year that begins on 16 April and is not paid: 36000 less the 1500 that BASIC had left.
SELECT pg_temp.granted('at once', 'ANNUAL', 0), pg_temp.granted('ten days', 'ANNUAL', 0), pg_temp.granted('with a gift', 'ANNUAL', 100),
    pg_temp.granted('used up', 'ANNUAL', 0);
SELECT results_eq(
    $$SELECT i.lines, i.invoice FROM billing_test.invoices_of(192) AS i WHERE i.invoice LIKE 'CHANGE%'$$,
    $$VALUES ('PRORATION -1500, PERIOD 36000', 'CHANGE OPEN 34400 due + 100 by credit')$$, 'the year is open, a gift is drawn'
);
SELECT billing_api.cancel_subscription(64, p_unused_time => 'CREDIT', p_as_of => '2027-04-16Z');
SELECT is(billing_test.credit_of(64), 1500::bigint, 'cancelled at the same instant: the half of BASIC that was not used');
-- Of 366 days 356 are left: floor(36000 x 356 / 366) = 35016, of which 34500 are owed: 516 of the 1500. (Used: 983.6.)
SELECT billing_api.cancel_subscription(128, p_unused_time => 'CREDIT', p_as_of => '2027-04-26Z');
SELECT is(billing_test.credit_of(128), 516::bigint, 'cancelled after ten days: what the year has not used of it');
SELECT billing_api.cancel_subscription(192, p_unused_time => 'CREDIT', p_as_of => '2027-04-26Z');
SELECT is(billing_test.credit_of(192), 616::bigint, 'with a gift of 100: the same, and the gift');
SELECT results_eq(
    'SELECT e.kind, e.amount FROM billing.credit_entry AS e INNER JOIN billing.subscription AS s USING (customer_id)
     WHERE s.subscription_id = 192 ORDER BY e.entry_seq',
    $$VALUES ('GRANTED', 100::bigint), ('DRAWN', -100), ('RETURNED', 100), ('UNUSED_TIME', 516)$$, 'each once'
);
-- After 20 days the year has used more than the 1500: floor(36000 x 346 / 366) = 34032 is less than what is owed.
SELECT billing_api.cancel_subscription(256, p_unused_time => 'CREDIT', p_as_of => '2027-05-06Z');
SELECT is(billing_test.credit_of(256), 0::bigint, 'cancelled after twenty days: nothing of it is left');

-- PRO for the rest of April, 3000 more: with a gift, of which nothing but itself comes back. Used by 21 April: 1500 + 1500.
SELECT pg_temp.granted('same interval', 'PRO', 100);
SELECT billing_api.cancel_subscription(320, p_unused_time => 'CREDIT', p_as_of => '2027-04-21Z');
SELECT is(billing_test.credit_of(320), 100::bigint, 'what was drawn from credit comes back once');

-- At the very start of a period the year takes its place: 3000 were paid, 363 of 366 days are left, 33000 are owed.
SELECT billing_test.paid('start', 'BASIC', '2027-04-16Z');
SELECT billing_api.change_plan(384, 'ANNUAL', p_payment_behavior => 'GRANT_FIRST', p_as_of => '2027-04-16Z');
SELECT billing_api.cancel_subscription(384, p_unused_time => 'CREDIT', p_as_of => '2027-04-19Z');
SELECT is(billing_test.credit_of(384), 2704::bigint, 'floor(36000 x 363 / 366) = 35704, less 33000');

-- The same for money: what was brought along goes back to the card.
SELECT pg_temp.granted('refund', 'ANNUAL', 0);
SELECT billing_api.cancel_subscription(448, p_unused_time => 'REFUND', p_as_of => '2027-04-16Z');
SELECT is(
    billing_test.credit_of(448) + (SELECT coalesce(sum(r.amount), 0) FROM billing.refund AS r)::bigint, 1500::bigint,
    'by refund it is as much, by card or as credit'
);
SELECT is(
    (SELECT count(*) FROM billing.invoice AS i WHERE i.status = 'OPEN'), 0::bigint, 'nothing is owed any more'
);
SELECT is_empty('SELECT * FROM billing_test.broken()', 'no promise is broken');
SELECT is_empty('SELECT * FROM billing_test.holes()', 'no event number is missing or repeated');
SELECT * FROM finish();
ROLLBACK;
