CREATE OR REPLACE FUNCTION billing.resolve_without_call(
    p_invoices billing.invoice_key[],
    p_account billing.gateway_account,
    p_as_of timestamptz
)
RETURNS billing.invoice_key[]
LANGUAGE plpgsql
SET search_path = ''
AS $function$
-- Locks:      subscription (SKIP LOCKED; those it does not get wait for the next round) -> credit_balance
-- Writes:     invoice, payment_attempt, pending_line, credit_entry, credit_balance; as apply_judgements
-- Raises:     nothing of its own
-- Idempotent: yes
DECLARE
    c_aside CONSTANT interval := interval '5 seconds';
    v_triage billing.triage[] := ARRAY(
        SELECT t FROM billing.triage_invoices(p_invoices, p_account, p_as_of) AS t
    );
    v_held billing.triage[];
    v_judgements billing.judgement[];
BEGIN
    -- A lapsed key is never sent again: a new try takes the place of one that was never executed, anything else is only
    -- looked up. A method at another account is that account's to charge. Where a look-up and a send fall due together,
    -- the look-up goes first: the send steps aside for as long as that takes.
    PERFORM billing.release_attempts(
        ARRAY(
            SELECT ROW(t.customer_id, t.invoice_id)::billing.invoice_key
            FROM unnest(v_triage) AS t
            WHERE t.way IN ('NEVER_SENT', 'KEY_LAPSED')
        ),
        p_as_of
    );
    UPDATE billing.invoice AS i
    SET next_attempt_at = CASE t.way WHEN 'KEY_LAPSED' THEN NULL ELSE i.next_attempt_at END,
        gateway_account_id = CASE t.way WHEN 'OTHER_ACCOUNT' THEN t.gateway_account_id ELSE i.gateway_account_id END,
        held_until = CASE t.way WHEN 'LOOK_UP_DUE' THEN clock_timestamp() + c_aside ELSE i.held_until END
    FROM unnest(v_triage) AS t
    WHERE t.way IN ('KEY_LAPSED', 'OTHER_ACCOUNT', 'LOOK_UP_DUE')
      AND i.customer_id = t.customer_id
      AND i.invoice_id = t.invoice_id;

    PERFORM billing.ask_before_call(v_triage, p_as_of);

    v_held := billing.hold_subscriptions_of(v_triage);
    IF cardinality(v_held) > 0 THEN
        v_judgements := billing.draw_credit_before_call(v_held, p_as_of)
            || billing.decline_without_method(v_held, p_as_of)
            || billing.carry_small_amounts(v_held, p_as_of)
            || billing.pass_blocked_rungs(v_held);
        PERFORM billing.apply_judgements(v_judgements, p_as_of);
    END IF;

    RETURN ARRAY(
        SELECT ROW(t.customer_id, t.invoice_id)::billing.invoice_key
        FROM unnest(v_triage) AS t
        WHERE t.way = 'SEND'
    );
END;
$function$;

COMMENT ON FUNCTION billing.resolve_without_call IS
'Settles those due invoices that need no call of a gateway, and returns the keys of the others.';
