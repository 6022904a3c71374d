CREATE OR REPLACE FUNCTION billing.trial_scope(
    p_once_per text,
    p_plan_id bigint,
    p_resource_id bigint
)
RETURNS text
LANGUAGE sql
IMMUTABLE
PARALLEL SAFE
RETURN CASE p_once_per
    WHEN 'PLAN' THEN 'plan:' || p_plan_id
    WHEN 'RESOURCE' THEN 'resource:' || p_resource_id
    ELSE 'customer'
END;

COMMENT ON FUNCTION billing.trial_scope IS
'Within what a trial is given once, as billing.trial_taken.scope names it.';
