CREATE OR REPLACE FUNCTION billing.require_expected_version(
    p_subscription billing.subscription,
    p_expected_version bigint
)
RETURNS void
LANGUAGE plpgsql
IMMUTABLE
SET search_path = ''
AS $function$
-- Locks:      nothing; the caller holds the subscription
-- Writes:     nothing
-- Raises:     SB304 the version is another one, which stands in DETAIL
-- Idempotent: yes
BEGIN
    IF p_expected_version <> p_subscription.version THEN
        RAISE EXCEPTION USING
            ERRCODE = 'SB304',
            MESSAGE = format(
                'subscription %s has another version than the expected %s',
                p_subscription.subscription_id, p_expected_version
            ),
            DETAIL = p_subscription.version::text,
            HINT = 'Read it again and decide again.';
    END IF;
END;
$function$;

COMMENT ON FUNCTION billing.require_expected_version IS
'Raises SB304 where the subscription has changed since the caller read it. Without an expected version the call acts on what it finds.';
