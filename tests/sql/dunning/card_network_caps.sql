-- What the card networks allow holds under a policy that would try an hour apart, 21 times in 20 hours.
BEGIN;
SELECT plan(15);
SELECT billing_test.clock('2027-12-31Z');
SELECT billing_ops.create_dunning_policy('dense', array_fill('1 hour'::interval, ARRAY[20]));
-- Ten tries within nine hours, one more at the tenth, and one 15 hours after that.
SELECT billing_ops.create_dunning_policy('slides', array_fill('1 hour'::interval, ARRAY[10]) || '15 hours'::interval);
SELECT billing_ops.create_dunning_policy('ten', array_fill('1 hour'::interval, ARRAY[10]));

CREATE TEMPORARY TABLE debt (name text, invoice_id bigint);
CREATE FUNCTION pg_temp.owe(p_name text, p_policy text, p_brand text) RETURNS void
LANGUAGE sql AS $function$
    INSERT INTO debt SELECT p_name, billing_test.renewal_invoice(p_name, p_policy, 'tok_' || p_name);
    UPDATE billing.payment_method AS m SET brand = p_brand WHERE m.token = 'tok_' || p_name;
$function$;
SELECT pg_temp.owe(x.name, x.policy, x.brand)
FROM (VALUES
    ('visa', 'dense', 'Visa'), ('mastercard', 'dense', 'mastercard'), ('unlisted', 'dense', 'jcb'), ('unknown', 'dense', NULL),
    ('later', 'slides', NULL), ('ten', 'ten', NULL)
) AS x (name, policy, brand);
CREATE FUNCTION pg_temp.tries(p_name text) RETURNS text
LANGUAGE sql AS $function$
    SELECT format(
        '%s in %s h, %s rungs', count(*), extract(epoch FROM max(a.started_at) - '2027-05-01Z'::timestamptz)::integer / 3600, max(i.failure_count)
    )
    FROM debt AS d
    INNER JOIN billing.invoice AS i ON i.invoice_id = d.invoice_id
    INNER JOIN billing.payment_attempt AS a ON a.invoice_id = i.invoice_id
    WHERE d.name = p_name AND a.payment_method_id IS NOT NULL AND a.status = 'DECLINED';
$function$;

SELECT is(
    (SELECT sum(billing_test.collect('DECLINED', 'insufficient_funds', h.at))
     FROM generate_series('2027-05-01Z'::timestamptz, '2027-05-03Z', '1 hour') AS h (at)),
    -- visa 20, the others of the dense policy 10 each, later 10 and 1, ten 10
    71::bigint, 'so many charges are sent in two days'
);
SELECT is(pg_temp.tries('visa'), '20 in 19 h, 21 rungs', 'Visa allows twenty in thirty days');
SELECT is(pg_temp.tries('mastercard'), '10 in 9 h, 21 rungs', 'Mastercard allows ten in a day');
SELECT is(pg_temp.tries('unlisted'), '10 in 9 h, 21 rungs', 'a brand that is not listed gets the strictest');
SELECT is(pg_temp.tries('unknown'), '10 in 9 h, 21 rungs', 'and so does a card without a brand');
SELECT is(pg_temp.tries('later'), '11 in 25 h, 12 rungs', 'the day slides: at the 25th hour eight of ten are left in it');
SELECT is(pg_temp.tries('ten'), '10 in 9 h, 11 rungs', 'the last rung that would be the eleventh passes');
SELECT is(
    (SELECT string_agg(s.status, ' ' ORDER BY s.subscription_id) FROM billing.subscription AS s),
    'CANCELED CANCELED CANCELED CANCELED CANCELED CANCELED', 'rungs that pass untried lead to the same end, none is left hanging'
);

-- Each class takes its way under one policy of three rungs, a day apart.
SELECT billing_ops.create_dunning_policy('three', array_fill('1 day'::interval, ARRAY[3]));
DELETE FROM debt;
SELECT pg_temp.owe(x.name, 'three', NULL) FROM unnest('{soft,hard,customer}'::text[]) AS x (name);
SELECT billing_test.start('2027-05-01Z');
SELECT billing_test.report(a.attempt_id, 'DECLINED', '2027-05-01Z', x.code)
FROM (VALUES ('soft', 'insufficient_funds'), ('hard', 'stolen_card'), ('customer', 'expired_card')) AS x (name, code)
INNER JOIN debt AS d ON d.name = x.name
INNER JOIN billing.payment_attempt AS a ON a.invoice_id = d.invoice_id;
SELECT is(
    (SELECT string_agg(d.name || ' ' || a.decline_class, ', ' ORDER BY d.invoice_id)
     FROM debt AS d INNER JOIN billing.payment_attempt AS a ON a.invoice_id = d.invoice_id),
    'soft SOFT, hard HARD, customer CUSTOMER', 'each code has its class'
);
SELECT billing_test.collect('DECLINED', 'insufficient_funds', h.at)
FROM generate_series('2027-05-01 12:00Z'::timestamptz, '2027-05-06Z', '12 hours') AS h (at);
SELECT is(pg_temp.tries('soft'), '4 in 72 h, 4 rungs', 'SOFT is tried on every rung');
SELECT is(pg_temp.tries('hard'), '1 in 0 h, 4 rungs', 'HARD on none, but its rungs pass');
SELECT is(pg_temp.tries('customer'), '1 in 0 h, 4 rungs', 'nor CUSTOMER, until there is another card');
SELECT results_eq(
    $$SELECT d.name, s.status, s.ended_at
      FROM billing.subscription AS s INNER JOIN billing.invoice AS i USING (customer_id, subscription_id)
      INNER JOIN debt AS d ON d.invoice_id = i.invoice_id
      ORDER BY d.name$$,
    $$VALUES ('customer', 'CANCELED', '2027-05-04Z'::timestamptz), ('hard', 'CANCELED', '2027-05-04Z'),
        ('soft', 'CANCELED', '2027-05-04Z')$$,
    'all come to the same end at the same time: with the third rung'
);

-- The customer has it in hand: another card is tried at once, not at the next rung.
SELECT pg_temp.owe('another card', 'three', NULL);
SELECT is(billing_test.collect('DECLINED', 'expired_card', '2027-05-01Z'), 1, 'an expired card is tried once');
SELECT billing_api.add_payment_method(i.customer_id, 'sim', 'tok_renewed', p_as_of => '2027-05-01 06:00Z')
FROM debt AS d INNER JOIN billing.invoice AS i ON i.invoice_id = d.invoice_id
WHERE d.name = 'another card';
SELECT is(billing_test.collect(p_as_of => '2027-05-01 06:00Z'), 1, 'and the next one as soon as it is there');

SELECT * FROM finish();
ROLLBACK;
