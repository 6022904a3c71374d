CREATE OR REPLACE FUNCTION billing.credit_overflow(
    p_renewals billing.renewal[],
    p_as_of timestamptz
)
RETURNS void
LANGUAGE sql
SET search_path = ''
AS $function$
    -- Locks:      nothing; lock_credit came before, or the balance is new
    -- Writes:     credit_entry, credit_balance
    -- Raises:     SB106 the balance would leave the range of amounts
    -- Idempotent: no
    -- One entry each: few renewals have lines waiting, and fewer more of them than the period costs. After the draws,
    -- which were computed from the balances as they were locked.
    SELECT billing.add_credit(
        r.customer_id, r.currency, 'UNUSED_TIME', r.overflow, r.invoice_id, NULL, 'change of plan', p_as_of
    )
    FROM unnest(p_renewals) AS r
    WHERE r.verdict = 'RENEW' AND r.overflow > 0
    ORDER BY r.customer_id, r.currency, r.invoice_id;
$function$;

COMMENT ON FUNCTION billing.credit_overflow IS
'Books as credit what waiting lines gave back beyond the price of the renewed period.';
