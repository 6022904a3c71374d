-- Which way a boundary goes: a cancellation beats everything, the end of a term beats a pause.
BEGIN;
SELECT plan(1);

CREATE FUNCTION pg_temp.verdict(
    p_status text, p_kind text, p_cancel boolean, p_pause boolean, p_term_over boolean, p_policy text, p_can_pay boolean
)
RETURNS text
LANGUAGE plpgsql
AS $function$
DECLARE
    v_subscription billing.subscription;
    v_policy billing.dunning_policy;
    v_verdict text;
BEGIN
    v_subscription.status := p_status;
    v_subscription.current_period_kind := p_kind;
    v_subscription.current_period_end := '2027-05-01T00:00:00Z';
    v_subscription.cancel_at_period_end := p_cancel;
    v_subscription.pause_at_period_end := p_pause;
    v_subscription.term_end_at := CASE WHEN p_term_over THEN '2027-05-01T00:00:00Z' END;
    v_policy.past_due_renewal := p_policy;
    SELECT concat_ws(' ', v.verdict, v.reason) INTO v_verdict
    FROM billing.renewal_verdict(v_subscription, v_policy, p_can_pay) AS v;
    RETURN v_verdict;
END;
$function$;

CREATE TEMPORARY TABLE expected (
    status text, kind text, cancel boolean, pause boolean, term_over boolean, policy text, can_pay boolean, verdict text
);
INSERT INTO expected VALUES
('ACTIVE', 'BILLED', false, false, false, 'HOLD', true, 'RENEW'),
('ACTIVE', 'BILLED', false, false, false, 'HOLD', false, 'RENEW'),
('ACTIVE', 'BILLED', true, false, false, 'HOLD', true, 'CANCEL period_end'),
('ACTIVE', 'BILLED', true, true, true, 'HOLD', true, 'CANCEL period_end'),
('ACTIVE', 'BILLED', false, true, false, 'HOLD', true, 'PAUSE'),
('ACTIVE', 'BILLED', false, true, true, 'HOLD', true, 'EXPIRE term_end'),
('ACTIVE', 'BILLED', false, false, true, 'HOLD', true, 'EXPIRE term_end'),
('TRIALING', 'TRIAL', false, false, false, 'HOLD', true, 'RENEW'),
('TRIALING', 'TRIAL', false, false, false, 'HOLD', false, 'CANCEL no_payment_method'),
('TRIALING', 'TRIAL', true, false, false, 'HOLD', false, 'CANCEL period_end'),
('TRIALING', 'BILLED', false, false, false, 'HOLD', false, 'RENEW'),
('PAST_DUE', 'BILLED', false, false, false, 'HOLD', true, 'REST'),
('PAST_DUE', 'BILLED', false, false, false, 'CONTINUE', true, 'RENEW'),
('PAST_DUE', 'BILLED', true, false, false, 'HOLD', true, 'CANCEL period_end'),
('PAST_DUE', 'BILLED', false, false, true, 'CONTINUE', true, 'REST term_end'),
('PAST_DUE', 'BILLED', false, false, true, 'HOLD', true, 'REST term_end'),
('PAST_DUE', 'BILLED', false, true, false, 'HOLD', true, 'REST'),
('PAST_DUE', 'BILLED', false, true, false, 'CONTINUE', true, 'RENEW');

SELECT is_empty(
    $$SELECT e.*, v.verdict AS actual
      FROM expected AS e
      CROSS JOIN LATERAL pg_temp.verdict(e.status, e.kind, e.cancel, e.pause, e.term_over, e.policy, e.can_pay) AS v (verdict)
      WHERE v.verdict IS DISTINCT FROM e.verdict$$,
    'each combination of status, flags, term, policy and payment method goes its way'
);

SELECT * FROM finish();
ROLLBACK;
