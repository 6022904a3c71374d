CREATE OR REPLACE FUNCTION billing.logged_row(
    p_subscription billing.subscription
)
RETURNS jsonb
LANGUAGE sql
STABLE
SET search_path = ''
SET timezone = 'UTC'
RETURN to_jsonb(p_subscription) - ARRAY[
    'customer_id', 'subscription_id', 'version', 'event_seq', 'next_renewal_at', 'catch_up_run_id', 'catch_up_periods',
    'current_period_kind', 'current_period_start', 'current_period_end'
];

COMMENT ON FUNCTION billing.logged_row IS
'Those columns of a subscription that its log explains. The current period is explained by the timeline; when it is due next follows from status, policy and period.';
