CREATE OR REPLACE FUNCTION billing.invoice_happenings(
    p_judgements billing.judgement[]
)
RETURNS SETOF billing.invoice_happening
LANGUAGE sql
STABLE
SET search_path = ''
AS $function$
    -- Locks:      nothing
    -- Writes:     nothing
    -- Raises:     nothing
    -- Idempotent: yes
    -- Place 1 comes before the move of the subscription, place 3 after it. That the customer must act is told once, and
    -- again only where the time for it is another.
    SELECT i.customer_id, i.subscription_id, e.place, e.event_type, i.invoice_id, j.attempt_id, e.detail
    FROM unnest(p_judgements) AS j
    INNER JOIN billing.invoice AS i ON i.customer_id = j.customer_id AND i.invoice_id = j.invoice_id
    LEFT JOIN billing.subscription AS s ON s.customer_id = i.customer_id AND s.subscription_id = i.subscription_id
    LEFT JOIN billing.payment_attempt AS a ON a.customer_id = j.customer_id AND a.attempt_id = j.attempt_id
    CROSS JOIN LATERAL (
        SELECT 1 AS place, 'InvoicePaid' AS event_type, NULL::jsonb AS detail
        WHERE j.attempt_status = 'SUCCEEDED' AND i.status = 'PAID' AND (j.captured > 0 OR j.attempt_id IS NULL)
        UNION ALL
        SELECT 3, 'SubscriptionRenewed', NULL
        WHERE j.attempt_status = 'SUCCEEDED' AND i.status = 'PAID' AND (j.captured > 0 OR j.attempt_id IS NULL)
          AND i.kind = 'RENEWAL' AND s.ended_at IS NULL
          AND EXISTS (
              SELECT 1 FROM billing.subscription_period AS p
              WHERE p.customer_id = i.customer_id AND p.subscription_id = i.subscription_id
                AND p.kind = 'BILLED' AND p.period_start < i.period_start
          )
        UNION ALL
        SELECT 1, 'InvoicePaymentFailed', jsonb_build_object(
            'attemptNo', a.attempt_no, 'declineCode', j.code, 'declineClass', j.decline_class,
            'failureCount', i.failure_count, 'nextAttemptAt', billing.to_rfc3339(i.next_attempt_at),
            'final', i.next_attempt_at IS NULL
        )
        WHERE j.attempt_status = 'DECLINED' AND i.status IN ('OPEN', 'FAILED')
        UNION ALL
        SELECT 1, 'RetryPassed', jsonb_build_object(
            'failureCount', i.failure_count, 'nextAttemptAt', billing.to_rfc3339(i.next_attempt_at)
        )
        WHERE j.outcome = 'PASSED'
        UNION ALL
        SELECT 1, 'InvoiceActionRequired', jsonb_build_object(
            'attemptNo', a.attempt_no, 'expiresAt', billing.to_rfc3339(j.action_expires_at)
        )
        WHERE j.attempt_status = 'REQUIRES_ACTION' AND j.outcome = 'REQUIRES_ACTION'
          AND j.action_is_news
        UNION ALL
        SELECT 3, 'PaymentUnexpected', jsonb_build_object(
            'attemptId', j.attempt_id, 'invoiceId', i.invoice_id, 'amount', j.unexpected, 'currency', a.currency,
            'gatewayPaymentId', j.gateway_payment_id, 'treatment', billing.treatment_of_unexpected(j)
        )
        WHERE j.attempt_status = 'SUCCEEDED' AND j.unexpected > 0
    ) AS e
    WHERE j.verdict = 'APPLIED';
$function$;

COMMENT ON FUNCTION billing.invoice_happenings IS 'Events about the invoices that judgements are about, not yet numbered.';
