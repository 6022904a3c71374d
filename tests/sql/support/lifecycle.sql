CREATE FUNCTION billing_test.plans()
RETURNS void
LANGUAGE plpgsql
AS $function$
-- The plans of the cases: minor units, USD, billed in advance.
BEGIN
    PERFORM billing_test.clock('2040-01-01Z');
    PERFORM billing_api.create_plan(p.code, initcap(p.code), p.amount, 'USD', p.unit, p_as_of => '2026-01-01Z')
    FROM (VALUES
        ('FREE', 0, 'MONTH'), ('BASIC', 3000, 'MONTH'), ('PRO', 9000, 'MONTH'), ('ENTERPRISE', 15000, 'MONTH'),
        ('TEAM', 1000, 'MONTH'), ('ANNUAL', 36000, 'YEAR')
    ) AS p (code, amount, unit);
END;
$function$;

COMMENT ON FUNCTION billing_test.plans IS
'FREE, BASIC, PRO, ENTERPRISE, TEAM (a month) and ANNUAL, in a test database whose clock is far ahead.';

CREATE FUNCTION billing_test.paid(
    p_name text,
    p_plan_code text,
    p_as_of timestamptz,
    p_quantity integer DEFAULT 1,
    p_anchor_day integer DEFAULT NULL,
    p_term_periods integer DEFAULT NULL,
    p_time_zone text DEFAULT 'UTC',
    p_dunning_policy text DEFAULT 'fixed_1357'
)
RETURNS bigint
LANGUAGE plpgsql
AS $function$
DECLARE
    v_subscription_id bigint;
BEGIN
    SELECT s.subscription_id
    INTO STRICT v_subscription_id
    FROM billing_api.create_subscription(
        billing_test.customer(p_name, p_time_zone => p_time_zone), p_plan_code, 'sign up', p_quantity => p_quantity,
        p_anchor_day => p_anchor_day, p_auto_renew => p_term_periods IS NULL, p_term_periods => p_term_periods,
        p_dunning_policy => p_dunning_policy, p_as_of => p_as_of
    ) AS s;
    PERFORM billing_test.collect(p_as_of => p_as_of);
    RETURN v_subscription_id;
END;
$function$;

COMMENT ON FUNCTION billing_test.paid IS
'A new customer with a subscription that was paid at the instant of sign-up; returns its id.';

CREATE FUNCTION billing_test.lines_of(
    p_invoice_id bigint
)
RETURNS text
LANGUAGE sql
AS $function$
    SELECT string_agg(format('%s %s', l.kind, l.amount), ', ' ORDER BY l.line_no)
    FROM billing.invoice_line AS l
    WHERE l.invoice_id = p_invoice_id;
$function$;

COMMENT ON FUNCTION billing_test.lines_of IS 'The lines of an invoice as one text: kind and amount in minor units, in order.';

CREATE FUNCTION billing_test.invoices_of(
    p_subscription_id bigint
)
RETURNS TABLE (invoice text, lines text)
LANGUAGE sql
AS $function$
    SELECT
        format(
            '%s %s %s', i.kind, i.status,
            concat_ws(
                ' + ', nullif(i.amount_due, 0) || ' due', nullif(i.amount_paid, 0) || ' paid',
                nullif(i.credit_applied, 0) || ' by credit', nullif(i.carried, 0) || ' carried'
            )
        ),
        billing_test.lines_of(i.invoice_id)
    FROM billing.invoice AS i
    WHERE i.subscription_id = p_subscription_id
    ORDER BY i.invoice_id;
$function$;

COMMENT ON FUNCTION billing_test.invoices_of IS
'The invoices of a subscription in order: kind, status and what became of the total, and the lines; amounts in minor units.';

CREATE FUNCTION billing_test.shown(
    p_at timestamptz
)
RETURNS text
LANGUAGE sql
AS $function$
    SELECT CASE
        WHEN NOT isfinite(p_at) THEN '...'
        ELSE regexp_replace(to_char(p_at AT TIME ZONE 'UTC', 'YYYY-MM-DD HH24:MI:SS'), ' 00:00:00$', '')
    END;
$function$;

COMMENT ON FUNCTION billing_test.shown IS 'An instant as short as can be: the day, the time only where it is not midnight in UTC.';

CREATE FUNCTION billing_test.periods_of(
    p_subscription_id bigint
)
RETURNS SETOF text
LANGUAGE sql
AS $function$
    SELECT format('%s %s to %s', p.kind, billing_test.shown(p.period_start), billing_test.shown(p.period_end))
    FROM billing.subscription_period AS p
    WHERE p.subscription_id = p_subscription_id
    ORDER BY p.period_start;
$function$;

COMMENT ON FUNCTION billing_test.periods_of IS 'The timeline of a subscription in order, a row per period.';

CREATE FUNCTION billing_test.credit_of(
    p_subscription_id bigint
)
RETURNS bigint
LANGUAGE sql
AS $function$
    SELECT coalesce((
        SELECT sum(b.balance)
        FROM billing.subscription AS s
        INNER JOIN billing.credit_balance AS b ON b.customer_id = s.customer_id
        WHERE s.subscription_id = p_subscription_id
    ), 0)::bigint;
$function$;

COMMENT ON FUNCTION billing_test.credit_of IS 'The credit of the customer of a subscription in minor units; 0 where there is none.';
