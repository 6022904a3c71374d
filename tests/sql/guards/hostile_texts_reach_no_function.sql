-- Every text parameter of every entry point is called with texts that nobody should send.
BEGIN;
SELECT plan(8);
SELECT billing_test.clock('2027-01-31 10:30Z');
SELECT billing_test.customer('c');
SELECT billing_test.plan();
SELECT billing_test.paid_subscription(64);

-- What is sent for the other parameters that have no default.
CREATE TEMP TABLE good_argument (name text PRIMARY KEY, literal text NOT NULL);
INSERT INTO good_argument (name, literal) VALUES
('p_account', $$'sim'$$), ('p_adapter', $$'simulated'$$), ('p_amount', '100'), ('p_case_id', '64'),
('p_code', $$'NEW'$$), ('p_currency', $$'USD'$$), ('p_current_period_start', $$'2027-01-31 10:00Z'$$),
('p_customer_id', '64'), ('p_description', $$'a service'$$), ('p_effective_from', $$'2027-03-01Z'$$),
('p_event_id', $$'evt'$$), ('p_event_type', $$'charge.succeeded'$$), ('p_external_ref', $$'new'$$),
('p_from', $$'2027-01-01Z'$$), ('p_gateway_account', $$'sim'$$), ('p_idempotency_key', $$'key'$$),
('p_interval_unit', $$'MONTH'$$), ('p_invoice_id', '64'), ('p_key_hash', $$sha256('key')$$), ('p_limit', '10'),
('p_mode', $$'clone'$$), ('p_name', $$'New'$$), ('p_notice_days', '10'), ('p_operation', $$'charge'$$),
('p_payload', $$'{}'$$), ('p_payment_method_id', '64'), ('p_per_second', '10'), ('p_plan_code', $$'BASIC'$$),
('p_reason', $$'kindness'$$), ('p_relay', $$'relay'$$), ('p_request_id', $$'request'$$), ('p_resolution', $$'PAID'$$),
('p_resource_ref', $$'default'$$), ('p_results', $$'{}'$$), ('p_retry_after', $$'{1 day}'$$), ('p_scope', $$'read'$$),
('p_scopes', $$'{read}'$$), ('p_subscription_id', '64'), ('p_to', $$'2027-01-31Z'$$), ('p_token', $$'tok_new'$$),
('p_trial_end', $$'2027-03-01Z'$$), ('p_worker', $$'worker'$$);

CREATE TEMP TABLE text_parameter AS
WITH parameter AS (
    SELECT
        p.oid,
        p.pronamespace::regnamespace::text || '.' || p.proname AS function_name,
        a.name,
        a.type_oid = 'text'::regtype AS is_text,
        a.place > p.pronargs - p.pronargdefaults AS has_default
    FROM pg_catalog.pg_proc AS p
    CROSS JOIN LATERAL unnest(p.proargnames[1:p.pronargs], p.proargtypes::oid[]) WITH ORDINALITY AS a (name, type_oid, place)
    WHERE p.pronamespace::regnamespace::text IN ('billing_api', 'billing_worker', 'billing_ops')
)

SELECT
    t.function_name,
    t.name,
    format('SELECT %s(', t.function_name)
    || coalesce(
        string_agg(format('%I => %s, ', o.name, coalesce(g.literal, 'no_good_argument')), '' ORDER BY o.name)
        FILTER (WHERE NOT o.has_default AND o.name <> t.name), ''
    )
    || format('%I => ', t.name) AS call_of
FROM parameter AS t
INNER JOIN parameter AS o ON o.oid = t.oid
LEFT JOIN good_argument AS g ON g.name = o.name
WHERE t.is_text
GROUP BY t.function_name, t.name;

CREATE FUNCTION pg_temp.answer_to(p_statement text) RETURNS text[]
LANGUAGE plpgsql AS $function$
DECLARE
    v_message text;
    v_detail text;
    v_hint text;
    v_context text;
BEGIN
    EXECUTE p_statement;
    -- Undone, so that each call finds the same.
    RAISE EXCEPTION USING ERRCODE = 'ZZ000';
EXCEPTION WHEN OTHERS THEN
    GET STACKED DIAGNOSTICS
        v_message = MESSAGE_TEXT, v_detail = PG_EXCEPTION_DETAIL, v_hint = PG_EXCEPTION_HINT, v_context = PG_EXCEPTION_CONTEXT;
    -- The context ends with this function and the statement that it was given.
    RETURN ARRAY[SQLSTATE, concat_ws(' / ', v_message, v_detail, v_hint, split_part(v_context, 'SQL statement "SELECT billing_', 1))];
END;
$function$;

CREATE TEMP TABLE answer AS
SELECT t.function_name, t.name, h.what, x.texts[1] AS sqlstate, x.texts[2] AS said
FROM text_parameter AS t
CROSS JOIN (VALUES
    ('a megabyte', $$repeat('x', 1000000)$$),
    ('SQL', 'billing_test.injection()'),
    ('a card number', $$'4111111111111111'$$),
    ('an empty text', $$''$$)
) AS h (what, literal)
CROSS JOIN LATERAL pg_temp.answer_to(t.call_of || h.literal || ')') AS x (texts);

SELECT cmp_ok((SELECT count(*) FROM text_parameter), '>=', 90::bigint, 'there are dozens of text parameters');
SELECT is_empty(
    $$SELECT t.call_of FROM text_parameter AS t WHERE t.call_of LIKE '%no_good_argument%'$$,
    'and a good argument for each of the others'
);
SELECT is_empty(
    $$SELECT a.* FROM answer AS a WHERE a.sqlstate NOT LIKE 'SB%' AND a.sqlstate <> 'ZZ000'$$,
    'each is refused by an error of the catalogue, or taken'
);
SELECT is_empty($$SELECT a.* FROM answer AS a WHERE a.sqlstate LIKE 'SB9%'$$, 'none is taken for a broken invariant');
SELECT set_eq(
    $$SELECT a.function_name FROM answer AS a WHERE a.what = 'a megabyte' AND a.sqlstate = 'ZZ000'$$,
    ARRAY['billing_api.has_access', 'billing_worker.authenticate_api_key'],
    'a megabyte is refused by all but those that only compare'
);
SELECT set_eq(
    $$SELECT a.function_name FROM answer AS a WHERE a.what = 'a card number' AND a.sqlstate = 'ZZ000'$$,
    ARRAY[
        'billing_api.has_access', 'billing_worker.authenticate_api_key',
        'billing_worker.confirm_outbox', 'billing_worker.lease_outbox', 'billing_worker.release_outbox'
    ],
    'and so is a card number, but for the names that relays give themselves'
);
SELECT is_empty(
    $$SELECT a.* FROM answer AS a WHERE a.said LIKE '%41111111%'$$, 'which is repeated in no message, detail, hint or context'
);
SELECT ok(to_regclass('billing.customer') IS NOT NULL, 'and the table that SQL would drop is still there');

SELECT * FROM finish();
ROLLBACK;
