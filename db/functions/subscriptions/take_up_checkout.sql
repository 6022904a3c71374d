CREATE OR REPLACE FUNCTION billing.take_up_checkout(
    p_terms billing.sign_up
)
RETURNS bigint
LANGUAGE plpgsql
SET search_path = ''
AS $function$
-- Locks:      subscription, one row, FOR NO KEY UPDATE -> invoice -> credit_balance
-- Writes:     invoice; with other terms as end_subscriptions
-- Raises:     SB301 the resource has a live subscription that is no checkout; its id in DETAIL
-- Idempotent: yes
DECLARE
    v_live billing.subscription;
    v_usable_id bigint;
    v_invoice_ids bigint[];
BEGIN
    SELECT s.*
    INTO v_live
    FROM billing.subscription AS s
    WHERE s.customer_id = p_terms.customer_id
      AND s.resource_id = p_terms.resource_id
      AND s.status IN ('INCOMPLETE', 'TRIALING', 'ACTIVE', 'PAST_DUE', 'PAUSED')
    FOR NO KEY UPDATE;
    IF NOT found THEN
        RETURN NULL;
    END IF;
    IF v_live.status <> 'INCOMPLETE' THEN
        RAISE EXCEPTION USING
            ERRCODE = 'SB301',
            MESSAGE = format('the resource has a live subscription (%s)', v_live.status),
            DETAIL = v_live.subscription_id::text,
            HINT = 'Use that one: change its plan, or undo its cancellation. To sell more of the same, name another resource.';
    END IF;

    IF p_terms.status = 'INCOMPLETE'
        AND (p_terms.price_id, p_terms.quantity, p_terms.auto_renew, p_terms.dunning_policy_id)
        = (v_live.price_id, v_live.quantity, v_live.auto_renew, v_live.dunning_policy_id)
        AND (p_terms.anchor_day, p_terms.term_periods, p_terms.payment_method_id)
        IS NOT DISTINCT FROM (v_live.anchor_day, v_live.term_periods, v_live.payment_method_id)
        AND (
            p_terms.anchor_day IS NULL
            OR ((p_terms.first).anchor_at, (p_terms.first).period_no) = (v_live.anchor_at, v_live.period_no)
        )
    THEN
        v_invoice_ids := billing.lock_open_invoices(v_live.customer_id, v_live.subscription_id);
        SELECT m.payment_method_id
        INTO v_usable_id
        FROM billing.usable_method(v_live.customer_id, v_live.payment_method_id) AS m;
        PERFORM billing.follow_payment_method(v_live.customer_id, v_invoice_ids, v_usable_id, p_terms.as_of);
        RETURN v_live.subscription_id;
    END IF;

    PERFORM billing.end_subscriptions(
        ARRAY[
            ROW(v_live.customer_id, v_live.subscription_id, 'EXPIRED', 'checkout_restarted', p_terms.as_of)::billing.ending
        ],
        p_terms.as_of
    );
    RETURN NULL;
END;
$function$;

COMMENT ON FUNCTION billing.take_up_checkout IS
'Goes on with an open checkout on the same terms and returns its id; ends one on other terms and returns NULL; refuses where the resource has a live subscription.';
