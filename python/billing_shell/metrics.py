"""Figures for Prometheus: requests of this process, and how things stand in database and throttle.

What the database tells is read when it is asked for and is the same whichever process is asked, so
an alert takes the maximum over the processes, not the sum.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from prometheus_client import (
    CollectorRegistry,
    Counter,
    Gauge,
    Histogram,
    disable_created_metrics,
    generate_latest,
)
from prometheus_client.core import GaugeMetricFamily
from prometheus_client.registry import Collector

MEDIA_TYPE = "text/plain; version=0.0.4; charset=utf-8"

# When each series began is nobody's question.
disable_created_metrics()  # type: ignore[no-untyped-call]

_BUCKETS = (0.002, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0)

HELP = {
    "billing_renewal_backlog": "Subscriptions due and not renewed, counted up to 100,000.",
    "billing_renewal_backlog_age_seconds": "Business time since the oldest of them became due.",
    "billing_renewals_last_hour": "Subscriptions that runs of the last hour took up, by result.",
    "billing_parked": "Subscriptions whose renewal failed on its data.",
    "billing_collection_backlog": "Invoices due and not attempted, counted up to 100,000.",
    "billing_collection_backlog_age_seconds": "Business time since the oldest of them became due.",
    "billing_collecting_paused": "1 while an operator has stopped this gateway account.",
    "billing_gateway_rate_limit": "Calls that a gateway account takes in any one second.",
    "billing_attempts_in_flight": "Payment attempts in the hands of a worker.",
    "billing_attempts_open": "Payment attempts without a definite answer, by status.",
    "billing_attempts_newest": "The newest 20,000 payment attempts, by status.",
    "billing_webhooks_waiting": "Gateway events that wait to be processed.",
    "billing_webhooks_newest": "The newest 20,000 gateway events, by what became of them.",
    "billing_outbox_unpublished": "Events not published, counted up to 100,000.",
    "billing_outbox_lag_seconds": "Age of the oldest event that is not published.",
    "billing_outbox_blocked": "Events given up until an operator replays them.",
    "billing_outbox_partitions_leased": "Partitions of the outbox that a relay looks after, of 16.",
    "billing_stopped": "1 while an operator has stopped renewing or collecting everywhere.",
    "billing_open_cases": "Reconciliation cases that wait for a person, by kind.",
    "billing_throttle_slots_granted": "Slots granted since the throttle last lost its state.",
    "billing_throttle_reserved_ahead_seconds": "How far ahead slots are reserved.",
    "billing_throttle_paused_seconds": "For how long everybody is paused.",
    "billing_database_up": "1 where the database answered this scrape.",
    "billing_throttle_up": "1 where the throttle's server answered this scrape.",
}
"""What each figure means; the name of one that is missing here must do."""


@dataclass(frozen=True, slots=True)
class Figure:
    """One value of a figure."""

    name: str
    labels: Mapping[str, str]
    value: float


class HttpMetrics:
    """What one process of the door counts itself."""

    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        self.in_flight = Gauge(
            "billing_http_requests_in_flight",
            "Requests that are being answered.",
            registry=self.registry,
        )
        self._requests = Counter(
            "billing_http_requests",
            "Requests answered.",
            ("method", "route", "status"),
            registry=self.registry,
        )
        self._seconds = Histogram(
            "billing_http_request_seconds",
            "From the end of the headers to the end of the answer.",
            ("route",),
            buckets=_BUCKETS,
            registry=self.registry,
        )

    def observe(self, method: str, route: str, status: int, seconds: float) -> None:
        """Counts a request; what no endpoint has is counted together, whatever it was called."""
        known = method if route else "other"
        self._requests.labels(known, route or "none", str(status)).inc()
        self._seconds.labels(route or "none").observe(seconds)


def exposition(process: HttpMetrics, figures: Iterable[Figure]) -> bytes:
    """All figures in Prometheus' text format."""
    registry = CollectorRegistry()
    registry.register(_Figures(figures))
    return generate_latest(process.registry) + generate_latest(registry)


class _Figures(Collector):
    """Figures that were read elsewhere."""

    def __init__(self, figures: Iterable[Figure]) -> None:
        self._figures = list(figures)

    def collect(self) -> Iterator[GaugeMetricFamily]:
        families: dict[str, GaugeMetricFamily] = {}
        for figure in self._figures:
            family = families.get(figure.name)
            if family is None:
                text = HELP.get(figure.name, figure.name)
                family = GaugeMetricFamily(figure.name, text, labels=sorted(figure.labels))
                families[figure.name] = family
            family.add_metric([figure.labels[name] for name in sorted(figure.labels)], figure.value)
        yield from families.values()


def from_rows(rows: Iterable[tuple[Any, ...]]) -> list[Figure]:
    """Rows of `billing_worker.metrics()` as figures."""
    return [Figure(name, labels, float(value)) for name, labels, value in rows]
