"""Reconciles three books: what the database, the gateway's ledger and the topic say of one run.

The only place that sees all three. It reads none of them; `billing_shell.books` does, by three
readers that share no code. `docs/demo.md` says what is compared and how each figure is defined.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import timedelta

from billing_shell.books.database_book import DatabaseBook, Event, UnpaidInvoice
from billing_shell.books.files_book import BilledPeriod
from billing_shell.books.gateway_book import Arrival, GatewayBook, most_in_a_second
from billing_shell.books.topic_book import Appearance, TopicBook
from billing_shell.busy_rate import BusyRate, ChargeCall, measure
from billing_shell.money_audit import MoneyAudit
from billing_shell.report import Finding, Findings, Report

LEAST_SHARE = 0.95
"""Of the throttle's rate, that must be reached while there is work."""
JUDGED_SECONDS = 10.0
"""Less work than this says nothing about a rate."""
MOST_STARVED = 0.1
"""On a machine that lets a worker wait for a processor for more of the time than this, the rate
says something about the machine."""

_JITTER = 0.035
# The gateway's, by its manual: what a 429 asks for, and the slowest answer.
_RETRY_AFTER = 2.0
_LONGEST_ANSWER = 0.8

# Policy `standard`, as the manual has it: days after the failure before, up to 2 h more.
_LADDER = (timedelta(days=1), timedelta(days=3), timedelta(days=5))
_LADDER_JITTER = timedelta(hours=2)
_LADDER_POLICY = "standard"


@dataclass(frozen=True, slots=True, kw_only=True)
class Kill:
    """A process group ended by SIGKILL.

    Attributes:
        process: `worker` or `relay`.
        point: the crash point at which it stood still.
        at_us: when it stood still, microseconds since 1970.
    """

    process: str
    point: str
    at_us: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Course:
    """What was done, as far as no book tells.

    Attributes:
        limit: the gateway's limit, calls per second of one operation.
        due: subscriptions that were due when the clock had been set.
        kills: in order.
        collected_us: when nothing was due any more for the first time, microseconds since 1970.
        starved: share of the time of collecting, 0 to 1, for which a worker or the gateway waited
            for a processor.
        first_unpaid: the declined invoices before the first retry.
        zombie_reports: results of a dead worker that were handed in after its claim had passed on.
        zombie_believed: those of them that were not refused as stale.
        unfinished: what did not come to its end in time, in words.
    """

    limit: int
    due: int
    kills: tuple[Kill, ...] = ()
    collected_us: int = 0
    starved: float = 0.0
    first_unpaid: tuple[UnpaidInvoice, ...] = ()
    zombie_reports: int = 0
    zombie_believed: int = 0
    unfinished: tuple[str, ...] = ()


def reconcile(
    database: DatabaseBook,
    gateway: GatewayBook,
    topic: TopicBook,
    course: Course,
    asked: frozenset[BilledPeriod],
) -> Report:
    """Compare three books of one run, and the first with what the import files ask for.

    Args:
        database: the first book.
        gateway: the second.
        topic: the third.
        course: what was done.
        asked: the periods that had to be billed by the files.
    """
    auditor = _Auditor(database, gateway, topic, course, asked)
    exercised = auditor.exercised()
    return Report(
        renewals=auditor.renewals(),
        money=MoneyAudit(database, gateway, auditor.findings).run(),
        events=auditor.events(),
        throttle=auditor.throttle(),
        dunning=auditor.dunning(),
        exercised=exercised,
        cases=database.cases,
        findings=auditor.conclude(),
        not_exercised=tuple(name for name, count in exercised.items() if count == 0),
    )


@dataclass(slots=True)
class _Auditor:
    """Compares, section by section, and notes what does not agree."""

    database: DatabaseBook
    gateway: GatewayBook
    topic: TopicBook
    course: Course
    asked: frozenset[BilledPeriod]
    findings: Findings = field(default_factory=Findings)

    def renewals(self) -> Mapping[str, int]:
        """Every period once, none too early, none left out."""
        found = self.database.renewals
        self.findings.note(
            "period_missing", "{n} subscriptions lack a period that was due", found.missing
        )
        self.findings.note(
            "period_not_due", "{n} periods were opened that were not due", found.unasked
        )
        self.findings.note(
            "period_misplaced", "{n} periods end at the wrong instant", found.misplaced
        )
        self.findings.note("period_unbilled", "{n} due periods have no invoice", found.unbilled)
        self.findings.note(
            "period_billed_twice", "{n} periods have two invoices", found.billed_twice
        )
        self.findings.note("chain_broken", "{n} timelines have a gap or an overlap", found.broken)
        self.findings.note(
            "not_advanced",
            "{n} subscriptions do not stand at the last period that was opened for them: period and"
            " invoice were committed apart from the subscription",
            found.not_advanced,
        )
        self.findings.note("parked", "{n} renewals were set aside with an error", found.parked)
        self.findings.note_if(
            found.due != self.course.due,
            "due_differs",
            f"{self.course.due} subscriptions were due, by their boundaries {found.due}",
        )
        self.findings.note_if(
            found.invoices != found.due,
            "invoices_differ",
            f"{found.due} renewals were due, {found.invoices} renewal invoices were issued",
        )
        self.findings.note_if(
            self.database.left_renewable > 0,
            "renewals_left",
            f"{self.database.left_renewable} subscriptions are due and not renewed",
        )
        billed = {BilledPeriod(*row) for row in self.database.billed}
        self.findings.note(
            "period_not_as_asked",
            "{n} periods or their amounts are not those that follow from the import files",
            sorted(billed ^ self.asked),
        )
        return {
            "due": found.due,
            "as_asked": len(billed & self.asked),
            "periods_opened": found.opened,
            "invoices": found.invoices,
            "missing": len(found.missing),
            "twice": len(found.billed_twice),
        }

    def events(self) -> Mapping[str, int]:
        """Every event on the topic, the same, and first appearances in order."""
        outbox = {event.event_id: event for event in self.database.events}
        first: dict[str, Appearance] = {}
        for appearance in self.topic.appearances:
            first.setdefault(appearance.event_id, appearance)
        self.findings.note(
            "event_missing", "{n} events are not on the topic", outbox.keys() - first.keys()
        )
        self.findings.note(
            "event_unknown", "{n} messages are no event", first.keys() - outbox.keys()
        )
        self.findings.note(
            "event_differs",
            "{n} messages differ from their event",
            (
                a.event_id
                for a in self.topic.appearances
                if a.event_id in outbox and not _same(outbox[a.event_id], a)
            ),
        )
        self.findings.note(
            "event_out_of_order",
            "{n} events appeared first after a later one of the same subscription",
            _out_of_order(first.values()),
        )
        self.findings.note(
            "event_unmarked",
            "{n} events are not marked as published",
            (e.event_id for e in outbox.values() if not e.is_published),
        )
        return {
            "outbox": len(outbox),
            "messages": len(self.topic.appearances),
            "distinct": len(first),
            "duplicates": len(self.topic.appearances) - len(first),
            "topic_partitions": self.topic.partitions,
        }

    def throttle(self) -> Mapping[str, float | int | bool]:
        """Never above the limit, and near it while there was work."""
        charges = [a for a in self.gateway.arrivals if a.operation == "charge"]
        look_ups = [a for a in self.gateway.arrivals if a.operation == "look_up"]
        most, most_look_ups = most_in_a_second(charges), most_in_a_second(look_ups)
        limit = self.course.limit
        self.findings.note_if(
            most > limit,
            "limit_exceeded",
            f"{most} charges arrived within one second, {limit} are allowed",
        )
        self.findings.note_if(
            most_look_ups > limit,
            "look_up_limit_exceeded",
            f"{most_look_ups} look-ups arrived within one second, {limit} are allowed",
        )
        rate = self._rate(charges)
        slots = (limit - 1) // (1 + _JITTER)
        judged = rate.net_seconds >= JUDGED_SECONDS and self.course.starved <= MOST_STARVED
        self.findings.note_if(
            judged and rate.net < LEAST_SHARE * slots,
            "too_slow",
            f"{rate.net:.1f} charges a second while there was work, less than"
            f" {LEAST_SHARE:.0%} of {slots:.0f}",
        )
        return {
            "limit": limit,
            "rate": slots,
            "most_charges_in_a_second": most,
            "most_look_ups_in_a_second": most_look_ups,
            "most_calls_in_a_second": most_in_a_second(self.gateway.arrivals),
            "arrivals_while_work": rate.arrivals,
            "work_seconds": round(rate.work, 3),
            "paused_seconds": round(rate.paused, 3),
            "dead_seconds": round(rate.dead, 3),
            "gross_per_second": round(rate.gross, 1),
            "net_per_second": round(rate.net, 1),
            "share_of_rate": round(rate.net / slots, 4) if slots else 0.0,
            "waited_for_processor": round(self.course.starved, 4),
            "rate_judged": judged,
        }

    def _rate(self, charges: Sequence[Arrival]) -> BusyRate:
        return measure(
            [ChargeCall(a.at_us, a.subject, a.refused) for a in charges],
            until_us=self.course.collected_us,
            retry_after=_RETRY_AFTER,
            longest_answer=_LONGEST_ANSWER,
            deaths_us=[kill.at_us for kill in self.course.kills if kill.process == "worker"],
        )

    def dunning(self) -> Mapping[str, int]:
        """Declined ones are past due, and tried again when the ladder says so."""
        for when, unpaid in (
            ("before the first retry", self.course.first_unpaid),
            ("at the end", self.database.unpaid),
        ):
            self.findings.note(
                "not_past_due",
                f"{{n}} subscriptions with a declined invoice are not PAST_DUE {when}",
                (
                    f"subscription {u.subscription_id}: {u.subscription_status}"
                    for u in unpaid
                    if u.subscription_status != "PAST_DUE"
                ),
            )
            self.findings.note(
                "off_the_ladder",
                f"{{n}} declined invoices are not due at their rung {when}",
                (
                    f"invoice {u.invoice_id}: failure {u.failure_count}, waits {u.waits}"
                    for u in unpaid
                    if not _on_the_ladder(u)
                ),
            )
        past_due = len({u.subscription_id for u in self.database.unpaid})
        self.findings.note_if(
            self.database.statuses.get("PAST_DUE", 0) != past_due,
            "past_due_differs",
            f"{self.database.statuses.get('PAST_DUE', 0)} subscriptions are PAST_DUE,"
            f" {past_due} have a declined invoice",
        )
        return {
            "declined_at_first": len(self.course.first_unpaid),
            "recovered": self.database.recovered,
            "past_due": past_due,
            "retries_planned": sum(u.next_attempt_at is not None for u in self.database.unpaid),
        }

    def exercised(self) -> Mapping[str, int]:
        """Count what must have happened for the rest to mean anything."""
        distinct = {appearance.event_id for appearance in self.topic.appearances}
        return {
            "timeouts_after_a_charge": self.gateway.timeouts_after_charge,
            "replayed_keys": self.gateway.replays,
            "declines": sum(charge.status == "declined" for charge in self.gateway.charges),
            "rate_limit_refusals": self.gateway.refusals,
            "kills": len(self.course.kills),
            "duplicate_events": len(self.topic.appearances) - len(distinct),
            "stale_reports_refused": self.course.zombie_reports - self.course.zombie_believed,
        }

    def conclude(self) -> tuple[Finding, ...]:
        """Return all findings, worst first."""
        self.findings.note(
            "stale_report_believed",
            "{n} reports of a claim that had passed on were believed",
            (f"attempt {attempt_id}" for attempt_id in self.database.stale_believed),
        )
        self.findings.note_if(
            self.course.zombie_believed > 0,
            "zombie_believed",
            f"{self.course.zombie_believed} of {self.course.zombie_reports} results of a dead"
            " worker, whose claims had passed on, were not refused as stale",
        )
        self.findings.note(
            "integrity",
            "{n} violations found by the engine's own check",
            self.database.violations,
        )
        self.findings.note(
            "unfinished", "{n} steps did not come to their end", self.course.unfinished
        )
        return self.findings.worst_first()


def _same(event: Event, appearance: Appearance) -> bool:
    return (
        event.event_type,
        f"{event.aggregate_type}/{event.aggregate_id}",
        event.aggregate_id,
        event.sequence,
        event.payload,
    ) == (
        appearance.event_type,
        appearance.subject,
        appearance.key,
        appearance.sequence,
        appearance.payload,
    )


def _out_of_order(first_appearances: Iterable[Appearance]) -> Iterable[str]:
    highest: dict[str, int] = {}
    for appearance in first_appearances:
        if appearance.sequence <= highest.get(appearance.subject, 0):
            yield f"{appearance.event_id} of {appearance.subject}"
        highest[appearance.subject] = max(highest.get(appearance.subject, 0), appearance.sequence)


def _on_the_ladder(unpaid: UnpaidInvoice) -> bool:
    """Tell whether the next attempt lies where policy `standard` puts it; others are not judged."""
    if unpaid.policy != _LADDER_POLICY or unpaid.is_in_doubt:
        return True
    if unpaid.failure_count > len(_LADDER) or unpaid.waits is None:
        return False
    rung = _LADDER[unpaid.failure_count - 1]
    return rung <= unpaid.waits <= rung + _LADDER_JITTER
