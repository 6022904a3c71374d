CREATE OR REPLACE FUNCTION billing_worker.end_dunning(
    p_limit integer,
    p_as_of timestamptz DEFAULT billing.now()
)
RETURNS integer
LANGUAGE plpgsql
SECURITY DEFINER
SET search_path = ''
SET timezone = 'UTC'
AS $function$
-- Locks:      subscription (SKIP LOCKED) -> invoice -> credit_balance -> customer
-- Writes:     as end_subscriptions; invoice, customer, outbox_event
-- Raises:     SB101 bad limit, SB104 p_as_of
-- Idempotent: yes: what has ended is not taken again
-- An invoice with money under way, or with an attempt whose outcome is unknown, ends nothing: the answer does. What has
-- outlived its fixed term expires. A MANUAL invoice fails alone.
DECLARE
    v_as_of timestamptz := billing.require_as_of(p_as_of);
    v_claimed billing.subscription_key[];
    v_endings billing.ending[];
    v_manual billing.invoice_key[];
BEGIN
    PERFORM billing.require_limit(p_limit);
    SELECT coalesce(array_agg(ROW(c.customer_id, c.subscription_id)::billing.subscription_key), '{}')
    INTO v_claimed
    FROM (
        SELECT s.customer_id, s.subscription_id
        FROM billing.subscription AS s
        WHERE (s.customer_id, s.subscription_id) IN (
            SELECT i.customer_id, i.subscription_id
            FROM billing.invoice AS i
            WHERE i.status = 'OPEN' AND i.drives_status AND i.dunning_ends_at <= v_as_of
              AND NOT billing.is_under_way(i)
            ORDER BY i.dunning_ends_at
            LIMIT p_limit
        )
        ORDER BY s.customer_id, s.subscription_id
        FOR NO KEY UPDATE SKIP LOCKED
    ) AS c;

    -- A charge that is being started holds its invoice: once that is ours, it is seen below.
    PERFORM 1
    FROM unnest(v_claimed) AS k
    INNER JOIN billing.invoice AS i ON i.customer_id = k.customer_id AND i.subscription_id = k.subscription_id
    WHERE i.status = 'OPEN'
    ORDER BY i.customer_id, i.invoice_id
    FOR NO KEY UPDATE OF i;

    -- Read again, after the locks: the customer may have paid meanwhile.
    SELECT coalesce(
        array_agg(
            ROW(
                k.customer_id, k.subscription_id, billing.final_status(s, dp, v_as_of), 'payment_failed', v_as_of
            )::billing.ending
        ),
        '{}'
    )
    INTO v_endings
    FROM unnest(v_claimed) AS k
    INNER JOIN billing.subscription AS s
        ON s.customer_id = k.customer_id AND s.subscription_id = k.subscription_id
    INNER JOIN billing.dunning_policy AS dp ON dp.dunning_policy_id = s.dunning_policy_id
    WHERE s.status = 'PAST_DUE'
      AND EXISTS (
          SELECT 1
          FROM billing.invoice AS i
          WHERE i.customer_id = s.customer_id AND i.subscription_id = s.subscription_id
            AND i.status = 'OPEN' AND i.drives_status AND i.dunning_ends_at <= v_as_of
            AND NOT billing.is_under_way(i)
      );
    SELECT coalesce(array_agg(ROW(c.customer_id, c.invoice_id)::billing.invoice_key), '{}')
    INTO v_manual
    FROM (
        SELECT i.customer_id, i.invoice_id
        FROM billing.invoice AS i
        WHERE i.status = 'OPEN' AND i.kind = 'MANUAL' AND i.dunning_ends_at <= v_as_of AND NOT billing.is_under_way(i)
        ORDER BY i.customer_id, i.invoice_id
        LIMIT p_limit
        FOR NO KEY UPDATE SKIP LOCKED
    ) AS c;
    RETURN billing.end_subscriptions(v_endings, v_as_of) + billing.fail_manual_invoices(v_manual, v_as_of);
END;
$function$;

COMMENT ON FUNCTION billing_worker.end_dunning IS
'Ends subscriptions whose retries are spent and whose grace is over, as their dunning policy says. Returns how many.';
