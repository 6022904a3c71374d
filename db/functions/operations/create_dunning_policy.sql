CREATE OR REPLACE FUNCTION billing_ops.create_dunning_policy(
    p_code text,
    p_retry_after interval[],
    p_counted_from text DEFAULT 'PREVIOUS_FAILURE',
    p_jitter_minutes integer DEFAULT 0,
    p_grace interval DEFAULT NULL,
    p_final_status text DEFAULT 'CANCELED',
    p_suspend_resource boolean DEFAULT false,
    p_past_due_renewal text DEFAULT 'HOLD',
    p_as_of timestamptz DEFAULT billing.now()
)
RETURNS SETOF billing.dunning_policy
LANGUAGE plpgsql
SECURITY DEFINER
SET search_path = ''
SET timezone = 'UTC'
AS $function$
-- Locks:      nothing
-- Writes:     dunning_policy
-- Raises:     SB101, SB104 p_as_of, SB107 the policy contradicts itself, SB309 the code exists
-- Idempotent: no
-- The spans are counted from 1, whatever bounds the array comes with.
DECLARE
    v_as_of timestamptz := billing.require_as_of(p_as_of);
    v_policy billing.dunning_policy;
BEGIN
    PERFORM billing.require_code(p_code, 'p_code', '^[a-z0-9][a-z0-9_-]*$');
    PERFORM billing.require_choice(p_counted_from, 'p_counted_from', '{PREVIOUS_FAILURE,FIRST_FAILURE}');
    PERFORM billing.require_integer(p_jitter_minutes, 'p_jitter_minutes', 0, 1440);
    PERFORM billing.require_choice(p_final_status, 'p_final_status', '{CANCELED,EXPIRED}');
    PERFORM billing.require_flag(p_suspend_resource, 'p_suspend_resource');
    PERFORM billing.require_choice(p_past_due_renewal, 'p_past_due_renewal', '{HOLD,CONTINUE}');
    PERFORM billing.require_ladder(p_retry_after, p_counted_from, p_jitter_minutes, p_grace);

    INSERT INTO billing.dunning_policy (
        code, retry_after, counted_from, jitter_minutes, grace, final_status, suspend_resource, past_due_renewal,
        created_at
    )
    VALUES (
        p_code, ARRAY(SELECT u.span FROM unnest(p_retry_after) WITH ORDINALITY AS u (span, no) ORDER BY u.no),
        p_counted_from, p_jitter_minutes, p_grace, p_final_status, p_suspend_resource, p_past_due_renewal, v_as_of
    )
    ON CONFLICT ON CONSTRAINT dunning_policy_code_is_unique DO NOTHING
    RETURNING * INTO v_policy;
    IF v_policy.dunning_policy_id IS NULL THEN
        RAISE EXCEPTION USING
            ERRCODE = 'SB309',
            MESSAGE = format('dunning policy %s exists', p_code),
            DETAIL = (SELECT d.dunning_policy_id::text FROM billing.dunning_policy AS d WHERE d.code = p_code),
            HINT = 'Policies are never changed. Choose another code.';
    END IF;
    RETURN NEXT v_policy;
END;
$function$;

COMMENT ON FUNCTION billing_ops.create_dunning_policy IS
'Creates a retry ladder and what follows it. One that contradicts itself is refused, for example with a grace that ends before the last retry.';
