CREATE OR REPLACE FUNCTION billing.doubt_everything(
    p_as_of timestamptz
)
RETURNS void
LANGUAGE sql
SET search_path = ''
AS $function$
    -- Locks:      by the updates; no worker runs yet
    -- Writes:     invoice, payment_attempt, refund
    -- Raises:     nothing
    -- Idempotent: yes
    -- Whatever is open here may have ended there.
    UPDATE billing.invoice AS i
    SET look_up_first = true
    WHERE i.status IN ('OPEN', 'FAILED');

    UPDATE billing.payment_attempt AS a
    SET status = CASE a.status WHEN 'STARTED' THEN 'UNKNOWN' ELSE a.status END,
        claim_epoch = a.claim_epoch + 1,
        lease_until = NULL,
        next_lookup_at = p_as_of
    WHERE a.status IN ('STARTED', 'UNKNOWN', 'REQUIRES_ACTION', 'PROCESSING');
    UPDATE billing.invoice AS i
    SET next_attempt_at = NULL
    FROM billing.payment_attempt AS a
    WHERE a.status IN ('STARTED', 'UNKNOWN', 'REQUIRES_ACTION', 'PROCESSING')
      AND i.customer_id = a.customer_id
      AND i.invoice_id = a.invoice_id;

    UPDATE billing.refund AS f
    SET status = CASE f.status WHEN 'PROCESSING' THEN f.status ELSE 'UNKNOWN' END,
        claim_epoch = f.claim_epoch + 1,
        first_sent_at = coalesce(f.first_sent_at, p_as_of),
        send_count = greatest(f.send_count, 1),
        refusal_count = 0,
        lease_until = NULL,
        next_send_at = NULL,
        next_lookup_at = p_as_of
    WHERE f.ended_at IS NULL;
$function$;

COMMENT ON FUNCTION billing.doubt_everything IS
'After a restore: has every open attempt and refund looked up now, and every next try of an unpaid invoice before it is sent.';
