"""Every statement that a worker sends. Each is one call of one SQL function of `billing_worker`.

Business time is left to its default, the clock of the database. Columns are written out, so that a
function that grows one breaks nobody.
"""

from typing import LiteralString

CLOCK: LiteralString = "SELECT pg_catalog.clock_timestamp()"

GATEWAY_ACCOUNTS: LiteralString = """
    SELECT
        code, adapter, request_timeout, lease_margin, charge_rate, look_up_rate, refund_rate,
        collecting_paused
    FROM billing_worker.gateway_accounts()
    WHERE code = %(account)s
"""

START_RENEWAL_RUN: LiteralString = """
    SELECT billing_worker.start_renewal_run(p_worker => %(worker)s)
"""
RENEW_DUE: LiteralString = """
    SELECT billing_worker.renew_due(p_limit => %(limit)s, p_run_id => %(run_id)s)
"""
FINISH_RENEWAL_RUN: LiteralString = """
    SELECT billing_run_id, status, renewed, ended, parked, limit_reached
    FROM billing_worker.finish_renewal_run(p_run_id => %(run_id)s)
"""

COUNT_DUE_INVOICES: LiteralString = """
    SELECT interactive, backlog
    FROM billing_worker.count_due_invoices(
        p_gateway_account => %(account)s, p_limit => %(limit)s
    )
"""
START_ATTEMPTS: LiteralString = """
    SELECT
        customer_id, attempt_id, claim_epoch, idempotency_key, amount, currency,
        payment_method_token, description, lane, gateway_account, gateway_payment_id, send_no,
        gateway_intent_id, previous_payment_id, awaits_action
    FROM billing_worker.start_attempts(
        p_gateway_account => %(account)s, p_limit => %(limit)s, p_worker => %(worker)s
    )
"""
ATTEMPTS_TO_LOOK_UP: LiteralString = """
    SELECT
        customer_id, attempt_id, claim_epoch, idempotency_key, amount, currency,
        payment_method_token, description, lane, gateway_account, gateway_payment_id, send_no,
        gateway_intent_id, previous_payment_id, awaits_action
    FROM billing_worker.attempts_to_look_up(
        p_gateway_account => %(account)s, p_limit => %(limit)s, p_worker => %(worker)s
    )
"""
SETTLE_ATTEMPTS: LiteralString = """
    SELECT customer_id, attempt_id, outcome, verdict, attempt_status
    FROM billing_worker.settle_attempts(p_results => %(results)s::billing.charge_result[])
"""

KEEP_INTENTS: LiteralString = """
    SELECT billing_worker.keep_intents(ARRAY(
        SELECT ROW(i.customer_id, i.attempt_id, i.gateway_intent_id)::billing.attempt_intent
        FROM unnest(%(customers)s::bigint[], %(attempts)s::bigint[], %(intents)s::text[])
            AS i (customer_id, attempt_id, gateway_intent_id)
    ))
"""

COUNT_DUE_REFUNDS: LiteralString = """
    SELECT billing_worker.count_due_refunds(p_gateway_account => %(account)s, p_limit => %(limit)s)
"""
START_REFUNDS: LiteralString = """
    SELECT
        customer_id, refund_id, claim_epoch, idempotency_key, gateway_payment_id, amount, currency,
        gateway_account, gateway_refund_id, send_no
    FROM billing_worker.start_refunds(
        p_gateway_account => %(account)s, p_limit => %(limit)s, p_worker => %(worker)s
    )
"""
REFUNDS_TO_LOOK_UP: LiteralString = """
    SELECT
        customer_id, refund_id, claim_epoch, idempotency_key, gateway_payment_id, amount, currency,
        gateway_account, gateway_refund_id, send_no
    FROM billing_worker.refunds_to_look_up(
        p_gateway_account => %(account)s, p_limit => %(limit)s, p_worker => %(worker)s
    )
"""
SETTLE_REFUNDS: LiteralString = """
    SELECT customer_id, refund_id, outcome, verdict, refund_status
    FROM billing_worker.settle_refunds(p_results => %(results)s::billing.refund_result[])
"""

DUE_SETTLEMENT_REPORT: LiteralString = """
    SELECT settlement_report_id, covers_from, covers_to
    FROM billing_worker.due_settlement_report(p_gateway_account => %(account)s)
"""
LOAD_SETTLEMENT_LINES: LiteralString = """
    SELECT billing_worker.load_settlement_lines(
        p_report_id => %(report)s,
        p_lines => ARRAY(
            SELECT
                ROW(
                    i.kind, i.gateway_id, i.reference, i.amount, i.currency
                )::billing.settled_item
            FROM unnest(
                %(kinds)s::text[], %(ids)s::text[], %(references)s::text[], %(amounts)s::bigint[],
                %(currencies)s::text[]
            ) AS i (kind, gateway_id, reference, amount, currency)
        )
    )
"""
CLOSE_SETTLEMENT_REPORT: LiteralString = """
    SELECT billing_worker.close_settlement_report(p_report_id => %(report)s)
"""

PROCESS_WEBHOOKS: LiteralString = "SELECT billing_worker.process_webhooks(p_limit => %(limit)s)"
END_DUNNING: LiteralString = "SELECT billing_worker.end_dunning(p_limit => %(limit)s)"
EXPIRE_CHECKOUTS: LiteralString = "SELECT billing_worker.expire_checkouts(p_limit => %(limit)s)"
ANNOUNCE_TRIAL_ENDINGS: LiteralString = """
    SELECT billing_worker.announce_trial_endings(p_limit => %(limit)s)
"""

CLOSE_ABANDONED_RUNS: LiteralString = """
    SELECT billing_worker.close_abandoned_runs(p_limit => %(limit)s)
"""
DROP_IDEMPOTENCY_KEYS: LiteralString = """
    SELECT billing_worker.drop_idempotency_keys(p_limit => %(limit)s, p_keep_days => %(days)s)
"""
DROP_WEBHOOK_PAYLOADS: LiteralString = """
    SELECT billing_worker.drop_webhook_payloads(p_limit => %(limit)s, p_keep_days => %(days)s)
"""
ENSURE_OUTBOX_PARTITIONS: LiteralString = """
    SELECT billing_worker.ensure_outbox_partitions(p_days => %(days)s)
"""
DROP_OUTBOX_PARTITIONS: LiteralString = """
    SELECT billing_worker.drop_outbox_partitions(p_keep_days => %(days)s)
"""
