CREATE OR REPLACE FUNCTION billing.final_status(
    p_subscription billing.subscription,
    p_policy billing.dunning_policy,
    p_as_of timestamptz
)
RETURNS text
LANGUAGE sql
IMMUTABLE
PARALLEL SAFE
RETURN CASE WHEN p_subscription.term_end_at <= p_as_of THEN 'EXPIRED' ELSE p_policy.final_status END;

COMMENT ON FUNCTION billing.final_status IS
'CANCELED or EXPIRED at the end of dunning: as the policy says, EXPIRED in any case once the fixed term is over.';
