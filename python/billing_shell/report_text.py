"""The report for people: plain text, one section per question."""

from collections.abc import Iterable, Mapping

from billing_shell.report import Report

_EXERCISED = {
    "timeouts_after_a_charge": "time-outs after a charge",
    "replayed_keys": "replayed keys",
    "declines": "declines",
    "rate_limit_refusals": "429s",
    "kills": "kills",
    "duplicate_events": "duplicate events",
    "stale_reports_refused": "stale results refused",
}
_CASES = {
    "UNKNOWN_OUTCOME": "outcome that the gateway cannot tell, and the key is too old to ask again"
}


def render(report: Report) -> str:
    """Write the whole report."""
    sections = (
        _renewals(report),
        _money(report),
        _events(report.events),
        _throttle(report.throttle),
        _dunning(report),
        _shown(report.exercised),
        _verdict(report),
    )
    return "\n\n".join("\n".join(section) for section in sections)


def _renewals(report: Report) -> Iterable[str]:
    r = report.renewals
    yield "Renewals: the database against its own anchors and intervals"
    yield (
        f"  {r['due']:,} periods were due, {r['periods_opened']:,} were opened,"
        f" {r['invoices']:,} invoices; {r['missing']:,} missing, {r['twice']:,} billed twice"
    )
    yield f"  {r['as_asked']:,} with start, end and amount as they follow from the import files"


def _money(report: Report) -> Iterable[str]:
    yield "Money: captured by the database's invoices, moved by the gateway's ledger"
    rows = [("", "invoices paid", "database", "charges", "gateway", "difference")]
    rows += [
        (
            m.currency,
            f"{m.invoices_paid:,}",
            m.text(m.database),
            f"{m.charges:,}",
            m.text(m.gateway),
            m.text(m.database - m.gateway),
        )
        for m in report.money
    ]
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    for row in rows:
        yield "  " + "  ".join(text.rjust(width) for text, width in zip(row, widths, strict=True))
    for kind, count in report.cases.items():
        yield f"  {count:,} handed to a person: {_CASES.get(kind, kind)}"


def _events(e: Mapping[str, int]) -> Iterable[str]:
    yield "Events: the outbox against the topic"
    yield (
        f"  {e['outbox']:,} in the outbox, {e['distinct']:,} different ones in {e['messages']:,}"
        f" messages on {e['topic_partitions']} partitions, {e['duplicates']:,} duplicates"
    )


def _throttle(t: Mapping[str, float | int | bool]) -> Iterable[str]:
    yield "Throttle: by the gateway's log of arrivals"
    yield (
        f"  at most {t['most_charges_in_a_second']} charges and"
        f" {t['most_look_ups_in_a_second']} look-ups in any one second"
        f" (both together {t['most_calls_in_a_second']}), {t['limit']} allowed of each"
    )
    yield (
        f"  {t['arrivals_while_work']:,} charges in {t['work_seconds']:.1f} s of work:"
        f" {t['gross_per_second']:.1f} a second; without {t['paused_seconds']:.1f} s that the"
        f" gateway asked for by Retry-After and {t['dead_seconds']:.1f} s while the worker was dead"
    )
    yield (
        f"  {t['net_per_second']:.1f} a second, {t['share_of_rate']:.1%} of the"
        f" {t['rate']:.0f} that the throttle hands out"
    )
    if not t["rate_judged"]:
        waited = f"{t['waited_for_processor']:.0%} of the time"
        yield (
            "  not judged: that takes ten seconds of work, and a machine with nothing else to do"
            f" (a process waited for a processor for {waited})"
        )


def _dunning(report: Report) -> Iterable[str]:
    d = report.dunning
    yield "Declines: on the ladder of policy standard"
    yield (
        f"  {d['declined_at_first']:,} declined and PAST_DUE, each due again 1 d to 1 d 2 h after"
        f" the failure; by the first retry {d['recovered']:,} recovered,"
        f" {d['past_due']:,} are PAST_DUE with their next retry planned"
    )


def _shown(exercised: Mapping[str, int]) -> Iterable[str]:
    yield "What happened on the way"
    yield "  " + ", ".join(f"{_EXERCISED[name]}: {count:,}" for name, count in exercised.items())


def _verdict(report: Report) -> Iterable[str]:
    if report.agrees:
        yield "The three books agree."
        return
    if report.findings:
        yield "THE BOOKS DO NOT AGREE:"
    for finding in report.findings:
        yield f"  [{finding.code}] {finding.message}"
        yield from (f"      {example}" for example in finding.examples)
    if report.not_exercised:
        names = ", ".join(_EXERCISED[name] for name in report.not_exercised)
        yield f"NOT SHOWN, because it never happened: {names}"
