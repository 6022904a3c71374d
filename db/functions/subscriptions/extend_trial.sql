CREATE OR REPLACE FUNCTION billing_api.extend_trial(
    p_subscription_id bigint,
    p_trial_end timestamptz,
    p_expected_version bigint DEFAULT NULL,
    p_idempotency_key text DEFAULT NULL,
    p_as_of timestamptz DEFAULT billing.now()
)
RETURNS SETOF billing_api.subscription
LANGUAGE plpgsql
SECURITY DEFINER
SET search_path = ''
SET timezone = 'UTC'
AS $function$
-- Locks:      idempotency_key -> subscription
-- Writes:     idempotency_key, subscription, subscription_period, subscription_event
-- Raises:     SB101 not after the present end, or more than two years ahead, SB104 p_as_of, SB201, SB302 already ended,
--             SB303 not in a trial, SB304 version, SB305
-- Idempotent: yes, by p_idempotency_key
DECLARE
    v_customer_id bigint := billing.customer_of_subscription(p_subscription_id);
    v_replay jsonb;
    v_as_of timestamptz;
    v_subscription billing.subscription;
BEGIN
    v_replay := billing.claim_idempotency_key(
        v_customer_id, 'extend_trial', p_idempotency_key,
        jsonb_build_object('subscriptionId', p_subscription_id, 'trialEnd', extract(epoch FROM p_trial_end)),
        false, p_as_of
    );
    IF v_replay IS NOT NULL THEN
        RETURN QUERY SELECT r.* FROM jsonb_populate_record(NULL::billing_api.subscription, v_replay) AS r;
        RETURN;
    END IF;

    v_as_of := billing.require_as_of(p_as_of);
    v_subscription := billing.require_subscription(p_subscription_id);
    PERFORM billing.require_expected_version(v_subscription, p_expected_version);
    PERFORM billing.require_running(v_subscription);
    v_subscription := billing.renew_overdue(p_subscription_id, v_as_of);
    PERFORM billing.require_running(v_subscription);
    PERFORM billing.move_trial_end(v_subscription, date_trunc('second', p_trial_end), v_as_of);

    RETURN QUERY SELECT r.* FROM billing.answer_subscription(
        'extend_trial', v_customer_id, p_subscription_id, p_idempotency_key
    ) AS r;
END;
$function$;

COMMENT ON FUNCTION billing_api.extend_trial IS
'Moves the end of a running trial to a later instant; the first billed period begins there.';
