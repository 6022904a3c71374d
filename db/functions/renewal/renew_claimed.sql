CREATE OR REPLACE FUNCTION billing.renew_claimed(
    p_claimed billing.subscription_key[],
    p_as_of timestamptz,
    p_run_id bigint
)
RETURNS billing.renewal_outcome
LANGUAGE plpgsql
SET search_path = ''
AS $function$
-- Locks:      invoice (of those that end) -> credit_balance; subscriptions are locked by the caller
-- Writes:     subscription_period, invoice, invoice_line, credit_entry, credit_balance, subscription_event,
--             outbox_event, subscription
-- Raises:     22xxx, 23xxx, SB901 on data that cannot be renewed
-- Idempotent: no; the claim is what keeps a subscription from being taken twice
DECLARE
    v_renewals billing.renewal[];
    v_outcome billing.renewal_outcome;
BEGIN
    PERFORM billing.lock_closing_invoices(p_claimed);
    PERFORM billing.lock_credit(p_claimed);
    PERFORM billing.void_overtaken_changes(p_claimed, p_as_of);
    v_renewals := billing.plan_renewals(p_claimed);
    IF cardinality(v_renewals) <> cardinality(p_claimed) THEN
        RAISE EXCEPTION USING
            ERRCODE = 'SB901',
            MESSAGE = format('%s of %s subscriptions were planned', cardinality(v_renewals), cardinality(p_claimed));
    END IF;

    PERFORM billing.open_periods(v_renewals);
    PERFORM billing.issue_invoices(v_renewals, p_as_of);
    PERFORM billing.draw_credit(v_renewals, p_as_of);
    PERFORM billing.credit_overflow(v_renewals, p_as_of);
    PERFORM billing.advance_subscriptions(v_renewals, p_run_id);
    PERFORM billing.record_renewals(v_renewals, p_as_of);
    PERFORM billing.end_subscriptions(billing.endings_of(v_renewals), p_as_of);

    SELECT
        count(*) FILTER (WHERE r.verdict = 'RENEW'),
        count(*) FILTER (WHERE r.verdict IN ('CANCEL', 'EXPIRE')),
        0,
        (SELECT count(*)
         FROM unnest(v_renewals) AS x
         INNER JOIN billing.subscription AS s
             ON s.customer_id = x.customer_id AND s.subscription_id = x.subscription_id
         WHERE x.next_renewal_at <= p_as_of AND s.catch_up_run_id = p_run_id AND s.catch_up_periods >= 3)
    INTO v_outcome
    FROM unnest(v_renewals) AS r;
    RETURN v_outcome;
END;
$function$;

COMMENT ON FUNCTION billing.renew_claimed IS
'Renews, cancels or expires claimed subscriptions by one boundary each, as one pipeline of set operations.';
