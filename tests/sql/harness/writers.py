"""Who writes what, and on which stage of `tests/sql/support/stage.sql` each has something to do.

Two writers meet where they have a stage in common. Who has none, and those that write what nobody
else does, stand in `APART` with the reason.
"""

from dataclasses import dataclass

ACTIVE = ("due", "flight", "owed", "trial", "paused")
"""Stages with a subscription that is live and was begun."""
ALL = (*ACTIVE, "checkout")
OPEN = ("flight", "owed", "checkout")
"""Stages with an open invoice."""
PAID = ("due", "flight", "owed", "paused")
"""Stages with a payment that can be given back, and a refund of part of it under way."""


@dataclass(frozen=True)
class Writer:
    """One way to call a function that writes.

    Attributes:
        function: schema and name.
        arguments: of the call, with the stage's ids as `%(name)s`.
        stages: where it has something to do, or locks what others write, most telling first.
    """

    function: str
    arguments: str
    stages: tuple[str, ...]

    @property
    def statement(self) -> str:
        """The call."""
        return f"SELECT * FROM {self.function}({self.arguments})"  # noqa: S608 - texts of ours


_RESULT = """
    ARRAY(SELECT ROW(
        a.customer_id, a.attempt_id, %(epoch)s, '{outcome}', {payment_id}, a.amount, a.currency,
        {code}, NULL, NULL, 'SEND'
    )::billing.charge_result
    FROM billing.payment_attempt AS a WHERE a.attempt_id = %(attempt)s)
"""
_REFUND_RESULT = """
    ARRAY(SELECT ROW(
        r.customer_id, r.refund_id, %(refund_epoch)s, 'SUCCEEDED', 'ref_' || r.refund_id,
        r.amount, r.currency, NULL, NULL, 'SEND'
    )::billing.refund_result
    FROM billing.refund AS r WHERE r.refund_id = %(refund)s)
"""

WRITERS = {
    # What customers and those who serve them do.
    "subscribe": Writer(
        "billing_api.create_subscription",
        "%(customer)s, 'BASIC', 'key of A or B', p_resource_ref => 'store'",
        ALL,
    ),
    "subscribe otherwise": Writer(
        "billing_api.create_subscription",
        "%(customer)s, 'PRO', 'another key', p_resource_ref => 'store'",
        ALL,
    ),
    "cancel": Writer("billing_api.cancel_subscription", "%(subscription)s", ALL),
    "cancel for credit": Writer(
        "billing_api.cancel_subscription", "%(subscription)s, false, 'CREDIT'", ALL
    ),
    "cancel for a refund": Writer(
        "billing_api.cancel_subscription", "%(subscription)s, false, 'REFUND'", ALL
    ),
    "cancel later": Writer("billing_api.cancel_subscription", "%(subscription)s, true", ALL),
    "take back the cancellation": Writer("billing_api.undo_cancel", "%(subscription)s", ALL),
    "change now": Writer("billing_api.change_plan", "%(subscription)s, 'PRO'", ALL),
    "change, granted": Writer(
        "billing_api.change_plan",
        "%(subscription)s, 'PRO', p_payment_behavior => 'GRANT_FIRST'",
        ALL,
    ),
    "change later": Writer(
        "billing_api.change_plan", "%(subscription)s, 'PRO', p_timing => 'AT_PERIOD_END'", ALL
    ),
    "change on the next invoice": Writer(
        "billing_api.change_plan", "%(subscription)s, 'PRO', p_timing => 'NEXT_INVOICE'", ALL
    ),
    "look at a change": Writer("billing_api.preview_change_plan", "%(subscription)s, 'PRO'", ALL),
    "take back the change": Writer("billing_api.undo_change", "%(subscription)s", ALL),
    "pause": Writer("billing_api.pause_subscription", "%(subscription)s", ALL),
    "pause later": Writer("billing_api.pause_subscription", "%(subscription)s, true", ALL),
    "resume": Writer("billing_api.resume_subscription", "%(subscription)s", ALL),
    "extend the trial": Writer(
        "billing_api.extend_trial", "%(subscription)s, billing.now() + interval '3 days'", ALL
    ),
    "renew early": Writer("billing_api.renew_now", "%(subscription)s", ALL),
    "import": Writer(
        "billing_api.import_subscription",
        "%(customer)s, 'BASIC', billing.now() - interval '10 days', 'import', 'store'",
        ALL,
    ),
    "pay by another": Writer(
        "billing_api.set_subscription_payment_method", "%(subscription)s, %(spare)s", ALL
    ),
    "add a method": Writer(
        "billing_api.add_payment_method",
        "%(customer)s, %(account)s, 'tok_new', p_fingerprint => 'new'",
        ALL,
    ),
    "add the same method": Writer(
        "billing_api.add_payment_method",
        "%(customer)s, %(account)s, 'tok_spare', p_fingerprint => 'spare'",
        ALL,
    ),
    "make the spare the default": Writer(
        "billing_api.set_default_payment_method", "%(customer)s, %(spare)s", ALL
    ),
    "remove the default": Writer(
        "billing_api.remove_payment_method", "%(customer)s, %(method)s", ALL
    ),
    "remove the spare": Writer("billing_api.remove_payment_method", "%(customer)s, %(spare)s", ALL),
    "erase": Writer("billing_api.erase_customer", "%(customer)s", ALL),
    "retry": Writer("billing_api.retry_invoice", "%(invoice)s", OPEN),
    "forgive": Writer("billing_api.void_invoice", "%(invoice)s", OPEN),
    "give back": Writer("billing_api.refund_invoice", "%(paid)s, NULL, 'give back'", PAID),
    "bill by hand": Writer(
        "billing_api.create_manual_invoice",
        "%(customer)s, 700, 'USD', 'setup', p_idempotency_key => 'manual'",
        ALL,
    ),
    "grant credit": Writer(
        "billing_api.grant_credit", "%(customer)s, 2500, 'USD', 'sorry', 'grant'", ALL
    ),
    "suspend": Writer("billing_api.suspend_resource", "%(customer)s, 'store'", ALL),
    "lift the suspension": Writer("billing_api.lift_suspension", "%(customer)s, 'store'", ALL),
    "move to the new price": Writer(
        "billing_api.migrate_price", "'BASIC', billing.now() + interval '30 days', 30, false", ALL
    ),
    # What workers do.
    "renew": Writer("billing_worker.renew_due", "100", ALL),
    "start": Writer("billing_worker.start_attempts", "%(account)s, 100, 'worker'", ALL),
    "settle as paid": Writer(
        "billing_worker.settle_attempts",
        _RESULT.format(outcome="SUCCEEDED", payment_id="'pay_' || a.attempt_id", code="NULL"),
        ("flight",),
    ),
    "settle as declined": Writer(
        "billing_worker.settle_attempts",
        _RESULT.format(outcome="DECLINED", payment_id="NULL", code="'insufficient_funds'"),
        ("flight",),
    ),
    "keep the intent": Writer(
        "billing_worker.keep_intents",
        "ARRAY(SELECT ROW(a.customer_id, a.attempt_id, %(epoch)s, 'pi_' || a.attempt_id)"
        "::billing.attempt_intent FROM billing.payment_attempt AS a"
        " WHERE a.attempt_id = %(attempt)s)",
        ("flight",),
    ),
    "ask about charges": Writer(
        "billing_worker.attempts_to_look_up", "%(account)s, 100", ("flight",)
    ),
    "start refunds": Writer("billing_worker.start_refunds", "%(account)s, 100, 'worker'", PAID),
    "settle the refund": Writer("billing_worker.settle_refunds", _REFUND_RESULT, ("flight",)),
    "ask about refunds": Writer(
        "billing_worker.refunds_to_look_up", "%(account)s, 100", ("flight",)
    ),
    "receive a webhook": Writer(
        "billing_worker.receive_webhook",
        "%(account)s, 'event', 'charge.succeeded', '{}'",
        ("flight",),
    ),
    "process webhooks": Writer("billing_worker.process_webhooks", "100", ("flight",)),
    "end dunning": Writer("billing_worker.end_dunning", "100", ALL),
    "expire checkouts": Writer("billing_worker.expire_checkouts", "100", ALL),
    "announce the end of trials": Writer(
        "billing_worker.announce_trial_endings", "100", ("trial",)
    ),
    # What operators do.
    "unpark": Writer("billing_ops.unpark", "%(subscription)s", ALL),
    "stop collecting": Writer("billing_ops.pause_collecting", "%(account)s", OPEN),
    "go on collecting": Writer("billing_ops.resume_collecting", "%(account)s", OPEN),
}

SWEEPS = {name for name, writer in WRITERS.items() if writer.function.startswith("billing_worker.")}
"""These pass by what somebody else has locked, and come again."""

_OWN_ROWS = "writes rows that only it makes, and locks none of anybody else's"
_CATALOGUE = "adds rows to the catalogue; what is sold pins a price that never changes"
_SETTINGS = "writes settings that others read and never lock"
_KEYS = "writes keys of the API, which no billing function locks"
_OUTBOX = "leases and marks events that are committed; writers only add to them (`test_relay.py`)"
_DELETES = "drops by SKIP LOCKED or by partition what is older than anybody looks at"
_REPORTS = (
    "writes a settlement report, which one worker leases at a time (`test_settlement_report.py`)"
)
_RUNS = "writes a row of its own run (`two_renewals.spec` races the runs)"

_SWITCH = "turns a switch that others read and never lock"

APART = {
    "billing_api.create_customer": _OWN_ROWS,
    "billing_api.create_plan": _CATALOGUE,
    "billing_api.add_price": _CATALOGUE,
    "billing_ops.create_api_key": _KEYS,
    "billing_ops.rotate_api_key": _KEYS,
    "billing_ops.revoke_api_key": _KEYS,
    "billing_ops.create_dunning_policy": _OWN_ROWS,
    "billing_ops.create_gateway_account": _OWN_ROWS,
    "billing_ops.set_gateway_rate": _SETTINGS,
    "billing_ops.set_gateway_minimum": _SETTINGS,
    "billing_ops.set_clock": _SETTINGS,
    "billing_ops.set_shard": "refused once there is a customer",
    "billing_ops.mark_test_database": "refused once there is a live gateway account; a setting",
    "billing_ops.pause_renewing": _SWITCH,
    "billing_ops.resume_renewing": _SWITCH,
    "billing_ops.adopt_database": "refused unless the database is a copy, where nothing runs",
    "billing_ops.resolve_case": "hands the case to the functions that settle, under their locks",
    "billing_ops.open_settlement_report": _REPORTS,
    "billing_ops.add_settlement_lines": _REPORTS,
    "billing_ops.compare_settlement": _REPORTS,
    "billing_worker.due_settlement_report": _REPORTS,
    "billing_worker.load_settlement_lines": _REPORTS,
    "billing_worker.close_settlement_report": _REPORTS,
    "billing_ops.replay_event": _OUTBOX,
    "billing_worker.lease_outbox": _OUTBOX,
    "billing_worker.confirm_outbox": _OUTBOX,
    "billing_worker.release_outbox": _OUTBOX,
    "billing_worker.ensure_outbox_partitions": "adds partitions for days to come",
    "billing_worker.drop_outbox_partitions": _DELETES,
    "billing_worker.drop_idempotency_keys": _DELETES,
    "billing_worker.drop_webhook_payloads": _DELETES,
    "billing_worker.start_renewal_run": _RUNS,
    "billing_worker.finish_renewal_run": _RUNS,
    "billing_worker.close_abandoned_runs": _RUNS,
}
