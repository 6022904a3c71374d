CREATE OR REPLACE FUNCTION billing.place_subscription(
    p_terms billing.sign_up
)
RETURNS billing.placement
LANGUAGE plpgsql
SET search_path = ''
AS $function$
-- Locks:      as insert_subscription and take_up_checkout
-- Writes:     as insert_subscription and take_up_checkout
-- Raises:     SB301 as take_up_checkout, SB401 other callers signed up and ended three times meanwhile
-- Idempotent: yes, by (customer_id, resource_id) among the live ones
DECLARE
    c_rounds CONSTANT integer := 3;
    v_placement billing.placement;
BEGIN
    FOR v_round IN 1..c_rounds LOOP
        v_placement.subscription_id := billing.insert_subscription(p_terms);
        v_placement.is_new := v_placement.subscription_id IS NOT NULL;
        IF NOT v_placement.is_new THEN
            v_placement.subscription_id := billing.take_up_checkout(p_terms);
        END IF;
        IF v_placement.subscription_id IS NOT NULL THEN
            RETURN v_placement;
        END IF;
    END LOOP;
    RAISE EXCEPTION USING
        ERRCODE = 'SB401',
        MESSAGE = 'the resource is being signed up by others',
        HINT = 'Call again.';
END;
$function$;

COMMENT ON FUNCTION billing.place_subscription IS
'Makes a new subscription, or goes on with the open checkout on the same terms.';
