-- Several invoices were given up: billing lifts its suspension with the last of them, paid or forgiven, and only while the
-- customer is active and no administrator has suspended the resource.
BEGIN;
SELECT plan(11);
SELECT billing_test.plans();
SELECT billing_ops.create_dunning_policy(
    'strict', '{20 days,20 days}', p_suspend_resource => true, p_past_due_renewal => 'CONTINUE', p_as_of => '2027-01-01Z'
);
CREATE FUNCTION pg_temp.state(p_subscription_id bigint)
RETURNS text
LANGUAGE sql
AS $function$
    SELECT format(
        '%s, %s, %s', s.status, (SELECT string_agg(i.status, ' ' ORDER BY i.period_start) FROM billing.invoice AS i
            WHERE i.subscription_id = s.subscription_id AND i.kind = 'RENEWAL'),
        CASE WHEN r.suspended_by_billing_at IS NULL THEN 'free' ELSE 'suspended' END
    )
    FROM billing.subscription AS s INNER JOIN billing.resource AS r USING (customer_id, resource_id)
    WHERE s.subscription_id = p_subscription_id;
$function$;
CREATE FUNCTION pg_temp.invoice(p_subscription_id bigint, p_start timestamptz)
RETURNS bigint
LANGUAGE sql
RETURN (SELECT i.invoice_id FROM billing.invoice AS i WHERE i.subscription_id = p_subscription_id AND i.period_start = p_start);

-- May fails on 1 and 21 May and on 10 June, June on the 1st.
SELECT billing_test.paid(x.name, 'BASIC', '2027-04-01Z', p_dunning_policy => 'strict')
FROM (VALUES ('pays both'), ('suspended customer'), ('by an administrator too')) AS x (name);
SELECT billing_worker.renew_due(10, x.at), billing_test.collect('DECLINED', 'insufficient_funds', x.at),
    billing_worker.end_dunning(10, x.at)
FROM unnest('{2027-05-01Z,2027-05-21Z,2027-06-01Z,2027-06-10Z}'::timestamptz[]) AS x (at);
SELECT is(pg_temp.state(x.no), 'CANCELED, FAILED FAILED, suspended', 'both are given up')
FROM unnest('{64, 128, 192}'::bigint[]) AS x (no);
SELECT billing_test.refuses(
    $$SELECT billing_api.create_subscription(64, 'BASIC', 'again', p_as_of => '2027-06-11Z')$$, 'SB310', 'nothing new while both are owed'
);

-- Paid, the first leaves the other; forgiven, that lifts it.
SELECT billing_api.retry_invoice(pg_temp.invoice(64, '2027-06-01Z'), p_as_of => '2027-06-11Z');
SELECT billing_test.collect(p_as_of => '2027-06-11Z');
SELECT is(pg_temp.state(64), 'CANCELED, FAILED PAID, suspended', 'one of them is paid: it stays suspended');
SELECT billing_api.void_invoice(pg_temp.invoice(64, '2027-05-01Z'), p_as_of => '2027-06-12Z');
SELECT is(pg_temp.state(64), 'CANCELED, VOID PAID, free', 'the other is forgiven: it is free, and nothing is revived');
SELECT is(
    (SELECT count(*) FROM billing.outbox_event AS o WHERE o.event_type = 'ResourceResumed' AND o.aggregate_id = 64), 1::bigint,
    'which the world is told once'
);
SELECT is(s.status, 'INCOMPLETE', 'and it can be bought again')
FROM billing_api.create_subscription(64, 'BASIC', 'again', p_as_of => '2027-06-13Z') AS s;

-- A customer who is suspended, and a resource that an administrator has suspended as well.
UPDATE billing.customer SET status = 'SUSPENDED' WHERE customer_id = 128;
SELECT billing_api.suspend_resource(192, 'default', p_as_of => '2027-06-12Z');
SELECT billing_api.void_invoice(pg_temp.invoice(x.no, y.start), p_as_of => '2027-06-12Z')
FROM unnest('{128, 192}'::bigint[]) AS x (no), unnest('{2027-05-01Z,2027-06-01Z}'::timestamptz[]) AS y (start);
SELECT is(pg_temp.state(128), 'CANCELED, VOID VOID, suspended', 'of a customer who is not active nothing is lifted');
SELECT ok(
    NOT billing_api.has_access(192, NULL, '2027-06-13Z')
    AND (SELECT r.suspended_by_admin_at IS NOT NULL FROM billing.resource AS r WHERE r.customer_id = 192),
    'an administrator''s suspension stays whatever is paid'
);
SELECT is_empty('SELECT * FROM billing_test.broken()', 'no promise is broken');
SELECT * FROM finish();
ROLLBACK;
