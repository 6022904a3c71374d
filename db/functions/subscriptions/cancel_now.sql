CREATE OR REPLACE FUNCTION billing.cancel_now(
    p_subscription billing.subscription,
    p_unused_time text,
    p_as_of timestamptz
)
RETURNS void
LANGUAGE plpgsql
SET search_path = ''
AS $function$
-- Locks:      invoice -> credit_balance; the caller holds the subscription
-- Writes:     as end_subscriptions, request_refunds and add_credit
-- Raises:     as end_subscriptions
-- Idempotent: no
-- Never invoices on the way out, however overdue. What was to end at a boundary that has passed ends there, what has
-- outlived its term with the term. A call from just before a period ends it at its start; of one that was renewed early the
-- period ahead goes.
DECLARE
    c_is_over CONSTANT boolean :=
        p_subscription.cancel_at_period_end AND p_subscription.current_period_end <= p_as_of;
    c_ended_at CONSTANT timestamptz := CASE
        WHEN c_is_over THEN p_subscription.current_period_end
        ELSE greatest(least(p_as_of, p_subscription.term_end_at), billing.running_since(p_subscription, p_as_of))
    END;
    v_unused billing.unused_time[] := ARRAY[]::billing.unused_time[];
BEGIN
    IF p_unused_time IN ('CREDIT', 'REFUND') THEN
        v_unused := billing.unused_time_of(p_subscription, c_ended_at);
    END IF;
    PERFORM billing.end_subscriptions(
        ARRAY[
            ROW(
                p_subscription.customer_id, p_subscription.subscription_id, 'CANCELED',
                CASE WHEN c_is_over THEN 'period_end' ELSE 'requested' END, c_ended_at
            )::billing.ending
        ],
        p_as_of
    );
    IF p_unused_time = 'REFUND' THEN
        v_unused := billing.refund_unused_time(p_subscription.customer_id, v_unused, p_as_of);
    END IF;
    -- One entry per invoice: rarely more than one.
    PERFORM billing.add_credit(
        p_subscription.customer_id, u.currency, 'UNUSED_TIME', u.amount, u.invoice_id, NULL,
        'unused time of a cancelled subscription', p_as_of
    )
    FROM unnest(v_unused) AS u
    WHERE u.amount > 0
    ORDER BY u.currency, u.invoice_id;
END;
$function$;

COMMENT ON FUNCTION billing.cancel_now IS
'Ends a subscription now, and gives credit for paid time that will not be used where that is asked for.';
