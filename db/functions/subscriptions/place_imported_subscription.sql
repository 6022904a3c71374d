CREATE OR REPLACE FUNCTION billing.place_imported_subscription(
    p_customer billing.customer,
    p_plan_code text,
    p_current_period_start timestamptz,
    p_resource_ref text,
    p_quantity integer,
    p_anchor_at timestamptz,
    p_dunning_policy text,
    p_payment_method_id bigint,
    p_auto_renew boolean,
    p_term_periods integer,
    p_as_of timestamptz
)
RETURNS billing.subscription
LANGUAGE plpgsql
SET search_path = ''
SET timezone = 'UTC'
AS $function$
-- Locks:      nothing
-- Writes:     resource, subscription, subscription_period, invoice, subscription_event, outbox_event
-- Raises:     as import_subscription; SB301 the resource has a live subscription
-- Idempotent: no; the caller is, by key
DECLARE
    v_plan billing.plan := billing.require_plan(p_plan_code);
    v_policy billing.dunning_policy := billing.require_dunning_policy(p_dunning_policy);
    v_price billing.price;
    v_period_no integer;
    v_resource_id bigint;
    v_invoice_id bigint := nextval('billing.invoice_id_seq');
    v_subscription billing.subscription;
BEGIN
    PERFORM billing.require_customer_status(p_customer, '{ACTIVE}');
    PERFORM billing.require_integer(p_quantity, 'p_quantity', 1, 1000000);
    PERFORM billing.require_flag(p_auto_renew, 'p_auto_renew');
    PERFORM billing.require_text(p_resource_ref, 'p_resource_ref', 255);
    IF p_term_periods IS NOT NULL THEN
        PERFORM billing.require_integer(p_term_periods, 'p_term_periods', 1, CASE WHEN p_auto_renew THEN 0 ELSE 1200 END);
    END IF;
    IF p_payment_method_id IS NOT NULL THEN
        PERFORM billing.require_payment_method(p_customer.customer_id, p_payment_method_id);
    END IF;
    v_price := billing.price_for_sign_up(v_plan, p_customer.currency, p_as_of);
    v_period_no := billing.require_imported_period(p_customer.time_zone, v_price, p_anchor_at, p_current_period_start, p_as_of);
    v_resource_id := (billing.require_resource(p_customer.customer_id, p_resource_ref, p_as_of)).resource_id;

    v_subscription.customer_id := p_customer.customer_id;
    v_subscription.subscription_id := nextval('billing.subscription_id_seq');
    v_subscription.resource_id := v_resource_id;
    v_subscription.status := 'ACTIVE';
    v_subscription.price_id := v_price.price_id;
    v_subscription.quantity := p_quantity;
    v_subscription.current_period_kind := 'BILLED';
    v_subscription.current_period_start := p_current_period_start;
    v_subscription.current_period_end := billing.period_boundary(
        p_anchor_at AT TIME ZONE p_customer.time_zone, p_customer.time_zone, v_price.period_length, v_period_no
    );
    v_subscription.next_renewal_at := v_subscription.current_period_end;
    v_subscription.cancel_at_period_end := false;
    v_subscription.pause_at_period_end := false;
    v_subscription.auto_renew := p_auto_renew;
    v_subscription.term_periods := CASE WHEN NOT p_auto_renew THEN coalesce(p_term_periods, 1) END;
    v_subscription.term_end_at := billing.period_boundary(
        p_anchor_at AT TIME ZONE p_customer.time_zone, p_customer.time_zone, v_price.period_length,
        v_period_no + v_subscription.term_periods - 1
    );
    v_subscription.time_zone := p_customer.time_zone;
    v_subscription.anchor_at := p_anchor_at AT TIME ZONE p_customer.time_zone;
    v_subscription.period_no := v_period_no;
    v_subscription.payment_method_id := p_payment_method_id;
    v_subscription.dunning_policy_id := v_policy.dunning_policy_id;
    v_subscription.catch_up_periods := 0;
    v_subscription.created_at := p_as_of;
    v_subscription.version := 1;
    v_subscription.event_seq := 1;
    INSERT INTO billing.subscription SELECT v_subscription.*
    ON CONFLICT (customer_id, resource_id)
    WHERE status IN ('INCOMPLETE', 'TRIALING', 'ACTIVE', 'PAST_DUE', 'PAUSED')
    DO NOTHING;
    IF NOT found THEN
        RAISE EXCEPTION USING
            ERRCODE = 'SB301',
            MESSAGE = 'the resource has a live subscription',
            DETAIL = (
                SELECT max(s.subscription_id)::text
                FROM billing.subscription AS s
                WHERE s.customer_id = p_customer.customer_id AND s.resource_id = v_resource_id
                  AND s.status IN ('INCOMPLETE', 'TRIALING', 'ACTIVE', 'PAST_DUE', 'PAUSED')
            );
    END IF;

    INSERT INTO billing.invoice (
        customer_id, invoice_id, subscription_id, resource_id, kind, status, currency, total, period_start, period_end,
        opens_period, drives_status, plan_code, price_id, unit_amount, quantity, lane, issued_at, paid_at
    )
    VALUES (
        p_customer.customer_id, v_invoice_id, v_subscription.subscription_id, v_resource_id, 'INITIAL', 'PAID',
        v_price.currency, 0, v_subscription.current_period_start, v_subscription.current_period_end,
        true, false, v_plan.code, v_price.price_id, v_price.amount, p_quantity, 'BACKLOG', p_as_of, p_as_of
    );
    INSERT INTO billing.subscription_period (
        customer_id, subscription_id, period_start, period_end, kind, invoice_id, opened_seq
    )
    VALUES (
        p_customer.customer_id, v_subscription.subscription_id, v_subscription.current_period_start,
        v_subscription.current_period_end, 'BILLED', v_invoice_id, 1
    );
    PERFORM billing.record_happenings(
        ARRAY[ROW(
            p_customer.customer_id, v_subscription.subscription_id, 1, 'SubscriptionCreated', NULL, 'ACTIVE',
            NULL, NULL, jsonb_build_object('row', billing.logged_row(v_subscription)), true
        )::billing.happening],
        p_as_of
    );
    RETURN v_subscription;
END;
$function$;

COMMENT ON FUNCTION billing.place_imported_subscription IS
'Writes an imported subscription with its current period, and returns it.';
