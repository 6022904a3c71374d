CREATE OR REPLACE FUNCTION billing.take_trial(
    p_terms billing.sign_up,
    p_subscription_id bigint
)
RETURNS void
LANGUAGE plpgsql
SET search_path = ''
AS $function$
-- Locks:      nothing
-- Writes:     trial_taken
-- Raises:     SB401 another sign-up of the customer took the trial at this moment
-- Idempotent: no
-- Remembered in every scope, since the next plan may ask in another one.
BEGIN
    INSERT INTO billing.trial_taken (customer_id, scope, subscription_id, taken_at)
    SELECT
        p_terms.customer_id,
        billing.trial_scope(s.once_per, p_terms.plan_id, p_terms.resource_id),
        p_subscription_id,
        p_terms.as_of
    FROM unnest('{CUSTOMER,PLAN,RESOURCE}'::text[]) AS s (once_per)
    ON CONFLICT ON CONSTRAINT trial_is_taken_once DO NOTHING;

    IF NOT EXISTS (
        SELECT 1
        FROM billing.trial_taken AS t
        WHERE t.customer_id = p_terms.customer_id
          AND t.scope = p_terms.trial_scope
          AND t.subscription_id = p_subscription_id
    ) THEN
        RAISE EXCEPTION USING
            ERRCODE = 'SB401',
            MESSAGE = 'another sign-up of this customer took the trial at this very moment',
            HINT = 'Call again.';
    END IF;
END;
$function$;

COMMENT ON FUNCTION billing.take_trial IS 'Remembers that a customer has had a trial, apart from the subscription.';
