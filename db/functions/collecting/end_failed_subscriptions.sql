CREATE OR REPLACE FUNCTION billing.end_failed_subscriptions(
    p_judgements billing.judgement[],
    p_as_of timestamptz
)
RETURNS void
LANGUAGE plpgsql
SET search_path = ''
AS $function$
-- Locks:      invoice, credit_balance; subscriptions are locked by the caller
-- Writes:     as end_subscriptions
-- Raises:     nothing of its own
-- Idempotent: yes
-- Called once the attempts are written: a report that leaves one open ends nothing.
BEGIN
    PERFORM billing.end_subscriptions(
        ARRAY(
            SELECT DISTINCT ROW(
                s.customer_id, s.subscription_id, billing.final_status(s, dp, p_as_of), 'payment_failed', p_as_of
            )::billing.ending
            FROM unnest(p_judgements) AS j
            INNER JOIN billing.invoice AS i ON i.customer_id = j.customer_id AND i.invoice_id = j.invoice_id
            INNER JOIN billing.subscription AS s
                ON s.customer_id = i.customer_id AND s.subscription_id = i.subscription_id
            INNER JOIN billing.dunning_policy AS dp ON dp.dunning_policy_id = s.dunning_policy_id
            WHERE s.status = 'PAST_DUE' AND i.status = 'OPEN' AND i.dunning_ends_at <= p_as_of
              AND NOT billing.is_under_way(i)
        ),
        p_as_of
    );
END;
$function$;

COMMENT ON FUNCTION billing.end_failed_subscriptions IS
'Ends the subscriptions whose retries are spent and whose grace is over; end_dunning takes those whose grace still runs.';
