CREATE OR REPLACE FUNCTION billing.recount_grace(
    p_judgements billing.judgement[]
)
RETURNS void
LANGUAGE sql
SET search_path = ''
SET timezone = 'UTC'
AS $function$
    -- Locks:      nothing; subscriptions are locked by the caller
    -- Writes:     subscription
    -- Raises:     nothing
    -- Idempotent: yes
    -- What stays past due has one failing invoice less, or one more: access lasts as long as the grace of those that are
    -- left. The events about their invoices carry it into the log.
    UPDATE billing.subscription AS s
    SET access_until = k.grace_end, version = s.version + 1
    FROM (
        SELECT DISTINCT o.customer_id, o.subscription_id, billing.grace_end(o) AS grace_end
        FROM unnest(p_judgements) AS j
        INNER JOIN billing.subscription AS o
            ON o.customer_id = j.customer_id AND o.subscription_id = j.subscription_id
        WHERE j.verdict = 'APPLIED' AND o.status = 'PAST_DUE'
    ) AS k
    WHERE s.customer_id = k.customer_id
      AND s.subscription_id = k.subscription_id
      AND s.access_until IS DISTINCT FROM k.grace_end;
$function$;

COMMENT ON FUNCTION billing.recount_grace IS
'Sets how long access lasts for those that stay past due when one of several invoices has been paid, forgiven or declined.';
