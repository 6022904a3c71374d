CREATE FUNCTION billing_test.stage(
    p_kind text,
    p_no integer,
    p_at timestamptz
)
RETURNS jsonb
LANGUAGE plpgsql
AS $function$
-- What two writers meet on: one customer with all that both need, due at p_at, which is now. Each stage has a gateway
-- account of its own, and the stages lie minutes apart, so that a worker finds this one only.
DECLARE
    v_account text := 'stage-' || p_no;
    v_customer_id bigint;
    v_method_id bigint;
    v_spare_id bigint;
    v_subscription_id bigint;
    v_first timestamptz := p_at - CASE p_kind
        WHEN 'due' THEN interval '1 month'
        WHEN 'flight' THEN interval '1 month 1 hour'
        WHEN 'owed' THEN interval '1 month 7 days'
        WHEN 'checkout' THEN interval '1 day'
        WHEN 'trial' THEN interval '14 days'
        WHEN 'paused' THEN interval '20 days'
    END;
    v_paid_id bigint;
    v_attempt_id bigint;
BEGIN
    PERFORM billing_test.clock(p_at);
    IF p_no = 1 THEN
        PERFORM billing_api.create_plan(p.code, p.code, p.amount, 'USD', 'MONTH', p_trial_days => p.trial, p_as_of => '2027-01-01Z')
        FROM (VALUES ('BASIC', 3000, 0), ('PRO', 9000, 0), ('TRY', 3000, 14)) AS p (code, amount, trial);
        PERFORM billing_api.add_price('BASIC', 4000, 'USD', '2027-04-20Z', p_as_of => '2027-04-20Z');
    END IF;
    PERFORM billing_ops.create_gateway_account(v_account, 'simulated');
    PERFORM billing_ops.set_gateway_rate(v_account, 'charge', 200);
    v_customer_id := billing_test.customer('stage ' || p_no, p_token => NULL);
    SELECT m.payment_method_id INTO STRICT v_method_id
    FROM billing_api.add_payment_method(v_customer_id, v_account, 'tok_ok', p_fingerprint => 'first', p_as_of => v_first) AS m;
    SELECT m.payment_method_id INTO STRICT v_spare_id
    FROM billing_api.add_payment_method(
        v_customer_id, v_account, 'tok_spare', p_fingerprint => 'spare', p_make_default => false, p_as_of => v_first
    ) AS m;

    v_subscription_id := billing_test.subscription(
        v_customer_id, CASE p_kind WHEN 'trial' THEN 'TRY' ELSE 'BASIC' END, 'store', 'PAY_FIRST',
        p_dunning_policy => 'store_grace', p_as_of => v_first
    );
    IF p_kind <> 'checkout' THEN
        PERFORM billing_test.collect(p_as_of => v_first, p_gateway_account => v_account);
    END IF;
    SELECT i.invoice_id INTO v_paid_id FROM billing.invoice AS i
    WHERE i.customer_id = v_customer_id AND i.status = 'PAID' AND i.amount_paid > 0;
    IF v_paid_id IS NOT NULL THEN
        PERFORM billing_api.refund_invoice(v_paid_id, 500, 'first refund', p_at - interval '1 minute');
    END IF;

    IF p_kind = 'flight' THEN
        PERFORM billing_worker.renew_due(10, p_at - interval '1 hour');
        -- Claimed by a worker that died, and the gateway has told already that it was paid.
        PERFORM billing_worker.start_attempts(v_account, 10, 'dead', p_at - interval '1 hour');
        UPDATE billing.payment_attempt AS a SET lease_until = clock_timestamp() - interval '1 second'
        WHERE a.customer_id = v_customer_id AND a.status = 'STARTED';
        PERFORM billing_worker.start_refunds(v_account, 10, 'dead', p_at - interval '1 minute');
    ELSIF p_kind = 'owed' THEN
        PERFORM billing_worker.renew_due(10, p_at - interval '7 days');
        FOR v_day IN 0 .. 5 LOOP
            PERFORM billing_test.collect(
                'DECLINED', 'insufficient_funds', p_at - (7 - v_day) * interval '1 day', v_account
            );
        END LOOP;
        -- The grace ends now, and a moment ago the customer has asked for one more try.
        PERFORM billing_api.retry_invoice(i.invoice_id, v_spare_id, p_as_of => p_at - interval '1 minute')
        FROM billing.invoice AS i WHERE i.customer_id = v_customer_id AND i.status = 'OPEN';
    ELSIF p_kind = 'paused' THEN
        PERFORM billing_api.pause_subscription(v_subscription_id, p_as_of => p_at - interval '1 day');
    END IF;
    IF p_kind IN ('due', 'trial') THEN
        PERFORM billing_api.grant_credit(v_customer_id, 1000, 'USD', 'sorry', 'first credit', p_at - interval '1 minute');
    END IF;

    SELECT a.attempt_id INTO v_attempt_id FROM billing.payment_attempt AS a
    WHERE a.customer_id = v_customer_id AND a.status = 'STARTED';
    IF v_attempt_id IS NOT NULL THEN
        PERFORM billing_worker.receive_webhook(
            v_account, 'event', 'charge.succeeded',
            jsonb_build_object(
                'outcome', 'SUCCEEDED', 'paymentId', 'pay_' || v_attempt_id, 'amount', a.amount, 'currency', 'USD',
                'reference', a.idempotency_key
            ),
            p_at
        )
        FROM billing.payment_attempt AS a WHERE a.attempt_id = v_attempt_id;
    END IF;
    RETURN jsonb_build_object(
        'at', p_at, 'account', v_account, 'customer', v_customer_id, 'subscription', v_subscription_id,
        'method', v_method_id, 'spare', v_spare_id, 'attempt', v_attempt_id, 'paid', v_paid_id,
        'invoice', coalesce(
            (SELECT max(i.invoice_id) FROM billing.invoice AS i WHERE i.customer_id = v_customer_id AND i.status = 'OPEN'), v_paid_id
        ),
        'epoch', (SELECT a.claim_epoch FROM billing.payment_attempt AS a WHERE a.attempt_id = v_attempt_id),
        'refund', (SELECT r.refund_id FROM billing.refund AS r WHERE r.customer_id = v_customer_id),
        'refund_epoch', (SELECT r.claim_epoch FROM billing.refund AS r WHERE r.customer_id = v_customer_id)
    );
END;
$function$;

COMMENT ON FUNCTION billing_test.stage IS
'A customer in a situation in which many writers have something to do: due, flight (a charge and a refund under way, the webhook there), owed (the last try and the end of the grace due at once), checkout (a day old), trial (over), paused. Returns the ids.';

CREATE FUNCTION billing_test.stage_state(
    p_customer_id bigint
)
RETURNS jsonb
LANGUAGE sql
AS $function$
    -- Nothing that differs from run to run by itself: no ids, no wall clock. Events as a set: who was first is no matter.
    -- Without the notice before a trial's end, which nobody gets any more who has gone on meanwhile.
    SELECT jsonb_build_object(
        'subscriptions', (
            SELECT jsonb_agg(concat_ws(
                ' ', s.status, p.code, r.amount, s.quantity, 'then ' || s.pending_price_id, s.pending_quantity,
                'moves to ' || s.migration_price_id, s.cancel_at_period_end, s.pause_at_period_end, s.paused_seconds_left,
                s.current_period_start, s.current_period_end, s.next_renewal_at, s.period_no, s.parked_at IS NOT NULL,
                (SELECT m.token FROM billing.payment_method AS m
                 WHERE m.customer_id = s.customer_id AND m.payment_method_id = s.payment_method_id)
            ) ORDER BY s.subscription_id)
            FROM billing.subscription AS s
            INNER JOIN billing.price AS r ON r.price_id = s.price_id
            INNER JOIN billing.plan AS p ON p.plan_id = r.plan_id
            WHERE s.customer_id = p_customer_id
        ),
        'periods', (
            SELECT jsonb_agg(concat_ws(' ', t.kind, t.period_start, t.period_end) ORDER BY t.subscription_id, t.period_start)
            FROM billing.subscription_period AS t WHERE t.customer_id = p_customer_id
        ),
        'invoices', (
            SELECT jsonb_agg(concat_ws(
                ' ', i.kind, i.status, i.total, i.credit_applied, i.amount_paid, i.carried, i.failure_count,
                i.period_start, i.period_end, i.next_attempt_at
            ) ORDER BY i.kind, i.period_start, i.status, i.total, i.invoice_id)
            FROM billing.invoice AS i WHERE i.customer_id = p_customer_id
        ),
        'attempts', (
            SELECT jsonb_agg(concat_ws(' ', a.attempt_no, a.status, a.amount) ORDER BY i.kind, a.attempt_no, a.status)
            FROM billing.payment_attempt AS a
            INNER JOIN billing.invoice AS i ON i.customer_id = a.customer_id AND i.invoice_id = a.invoice_id
            WHERE a.customer_id = p_customer_id
        ),
        'refunds', (
            SELECT jsonb_agg(concat_ws(' ', r.purpose, r.status, r.amount) ORDER BY r.purpose, r.amount, r.status)
            FROM billing.refund AS r WHERE r.customer_id = p_customer_id
        ),
        'credit', (SELECT sum(b.balance) FROM billing.credit_balance AS b WHERE b.customer_id = p_customer_id),
        'methods', (
            SELECT jsonb_agg(concat_ws(' ', m.token, m.is_default, m.removed_at IS NULL) ORDER BY m.token)
            FROM billing.payment_method AS m WHERE m.customer_id = p_customer_id
        ),
        'resources', (
            SELECT jsonb_agg(concat_ws(
                ' ', r.external_ref, r.suspended_by_billing_at IS NOT NULL, r.suspended_by_admin_at IS NOT NULL
            ) ORDER BY r.external_ref)
            FROM billing.resource AS r WHERE r.customer_id = p_customer_id
        ),
        'events', (
            SELECT jsonb_agg(e.event_type ORDER BY e.event_type)
            FROM billing.outbox_event AS e
            WHERE e.customer_id = p_customer_id AND e.event_type <> 'SubscriptionTrialEnding'
        ),
        'cases', (SELECT jsonb_agg(c.kind ORDER BY c.kind) FROM billing.reconciliation_case AS c WHERE c.customer_id = p_customer_id),
        'webhooks', (
            SELECT jsonb_agg(w.status ORDER BY w.status) FROM billing.webhook_event AS w
            INNER JOIN billing.gateway_account AS g ON g.gateway_account_id = w.gateway_account_id
            INNER JOIN billing.payment_method AS m
                ON m.gateway_account_id = g.gateway_account_id AND m.customer_id = p_customer_id AND m.token = 'tok_spare'
        )
    );
$function$;

COMMENT ON FUNCTION billing_test.stage_state IS 'All that can be seen of a customer and must not hang on who was first by a hair.';

CREATE FUNCTION billing_test.finish_stage(
    p_account text
)
RETURNS void
LANGUAGE plpgsql
AS $function$
-- What sweeps and workers do next, so that what one of two has left to the next run is done, and nothing stays due.
BEGIN
    WHILE billing_worker.renew_due(100) > 0 LOOP
        NULL;
    END LOOP;
    UPDATE billing.webhook_event AS w SET next_try_at = clock_timestamp() WHERE w.status IN ('RECEIVED', 'UNMATCHED');
    PERFORM billing_worker.process_webhooks(100);
    PERFORM billing_worker.end_dunning(100);
    PERFORM billing_worker.expire_checkouts(100);
    WHILE billing_test.collect(p_gateway_account => p_account) > 0 LOOP
        NULL;
    END LOOP;
    PERFORM billing_worker.start_refunds(p_account, 100, 'next');
    PERFORM billing_worker.settle_refunds(
        array_agg(
            ROW(
                r.customer_id, r.refund_id, r.claim_epoch, 'SUCCEEDED', 'ref_' || r.refund_id, r.amount, r.currency, NULL, NULL, 'SEND'
            )::billing.refund_result
        )
    )
    FROM billing.refund AS r
    INNER JOIN billing.gateway_account AS g ON g.gateway_account_id = r.gateway_account_id
    WHERE g.code = p_account AND r.status IN ('STARTED', 'UNKNOWN')
    HAVING count(*) > 0;
END;
$function$;

COMMENT ON FUNCTION billing_test.finish_stage IS 'The next run of everything, at the present instant and for one gateway account.';
