CREATE OR REPLACE FUNCTION billing.with_grace(
    p_detail jsonb,
    p_subscription billing.subscription
)
RETURNS jsonb
LANGUAGE sql
STABLE
SET search_path = ''
RETURN CASE p_subscription.status
    WHEN 'PAST_DUE' THEN coalesce(p_detail, '{}') || jsonb_build_object(
        'row', jsonb_build_object('access_until', billing.logged_row(p_subscription) -> 'access_until')
    )
    ELSE p_detail
END;

COMMENT ON FUNCTION billing.with_grace IS
'The detail of an event about an invoice, and for the log how long access lasts after it where its subscription is past due.';
