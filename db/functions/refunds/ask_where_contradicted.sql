CREATE OR REPLACE FUNCTION billing.ask_where_contradicted(
    p_results billing.refund_result[],
    p_as_of timestamptz
)
RETURNS void
LANGUAGE sql
SET search_path = ''
AS $function$
    -- Locks:      nothing; refunds are locked by the caller
    -- Writes:     refund
    -- Raises:     nothing
    -- Idempotent: yes
    -- A look-up that is under way may have been answered before what was reported came about: the new claim outdates it.
    UPDATE billing.refund AS f
    SET next_lookup_at = p_as_of,
        lookup_count = 0,
        claim_epoch = f.claim_epoch + 1,
        lease_until = NULL
    FROM unnest(p_results) AS r
    WHERE f.customer_id = r.customer_id
      AND f.refund_id = r.refund_id
      AND f.status IN ('SUCCEEDED', 'FAILED')
      AND r.outcome IN ('SUCCEEDED', 'DECLINED')
      AND (r.outcome = 'SUCCEEDED') <> (f.status = 'SUCCEEDED')
      AND (r.gateway_refund_id = f.gateway_refund_id) IS NOT FALSE;
$function$;

COMMENT ON FUNCTION billing.ask_where_contradicted IS
'Has refunds looked up that ended otherwise than one of these reports says: which came last, only the gateway knows.';
