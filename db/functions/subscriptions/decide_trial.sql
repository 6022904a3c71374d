CREATE OR REPLACE FUNCTION billing.decide_trial(
    p_customer_id bigint,
    p_scope text,
    p_offered_days integer,
    p_trial_days integer
)
RETURNS integer
LANGUAGE plpgsql
STABLE
SET search_path = ''
AS $function$
-- Locks:      nothing
-- Writes:     nothing
-- Raises:     SB308 a trial is asked for, and was taken before
-- Idempotent: yes
-- What the plan offers falls away silently the second time; what the caller asks for does not.
BEGIN
    IF coalesce(p_trial_days, p_offered_days) = 0 OR NOT EXISTS (
        SELECT 1 FROM billing.trial_taken AS t WHERE t.customer_id = p_customer_id AND t.scope = p_scope
    ) THEN
        RETURN coalesce(p_trial_days, p_offered_days);
    END IF;
    IF p_trial_days > 0 THEN
        RAISE EXCEPTION USING
            ERRCODE = 'SB308',
            MESSAGE = format('customer %s has had a trial', p_customer_id),
            DETAIL = p_scope,
            HINT = 'Send p_trial_days 0, or leave it out.';
    END IF;
    RETURN 0;
END;
$function$;

COMMENT ON FUNCTION billing.decide_trial IS
'Days of trial that a new subscription gets: p_trial_days, or what the plan offers where it is NULL; 0 = none.';
