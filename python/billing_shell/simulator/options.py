"""How one simulated gateway is started."""

from dataclasses import dataclass
from pathlib import Path
from typing import Self

from billing_shell.webhook_signature import check_secret

DEFAULT_FAULT_RATE = 0.02


@dataclass(frozen=True, slots=True)
class Latency:
    """Seconds that an answer takes, drawn evenly from `least` to `most`."""

    least: float
    most: float

    def __post_init__(self) -> None:
        """Refuse what is no span of time."""
        if not 0 <= self.least <= self.most <= 60:  # noqa: PLR2004  a minute is no latency any more
            raise ValueError("latency must satisfy 0 <= least <= most <= 60 seconds")

    @classmethod
    def parse(cls, text: str) -> Self:
        """Read `0.05-0.8`, or one figure for both; raises ValueError."""
        least, dash, most = text.partition("-")
        try:
            return cls(float(least), float(most if dash else least))
        except ValueError as error:
            raise ValueError(f"latency {text!r} is not like 0.05-0.8: {error}") from error


DEFAULT_LATENCY = Latency(0.05, 0.8)


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """What is fixed for the life of the process; None = as last set over the control interface.

    Attributes:
        ledger: the SQLite file, created when absent; its folder must exist.
        host: address to listen on. The control interface asks for no password: keep it local.
        port: TCP port, 0 for a free one, which the line on standard output then names.
        limit: most arrivals that one operation (charge, look-up, refund) admits in any second.
        seed: makes latency and faults; the same seed and keys meet the same ones, in any order.
        latency: of every answer below `/v1`; None = as last controlled, at first 50 to 800 ms.
        faults: share of sends from 0 to 1 that meets a fault; None = as last controlled, at first
            0.02.
        hang: seconds until a connection that will never be answered is cut.
        key_lifetime: seconds of the business clock for which an answer is kept under its key.
        search_lag: seconds of the business clock until the search by reference sees a payment.
        api_key: the bearer token that `/v1` asks for; None = it asks for none.
        webhook_url: where events go; None = as last controlled, at first nowhere.
        webhook_secret: what signs them; goes with `webhook_url`.
        webhook_retry: seconds until the first repetition of a failed delivery, then doubled.
        commit_window: seconds for which writes are gathered into one commit.
        hold_webhooks: write down what there is to tell and deliver nothing: whoever started the
            gateway takes it from the ledger.
        sync: have each commit reach the disk; without, the ledger outlives the process, but not a
            crash of the machine.
    """

    ledger: Path
    host: str = "127.0.0.1"
    port: int = 0
    limit: int = 200
    seed: int = 1
    latency: Latency | None = None
    faults: float | None = None
    hang: float = 3.0
    key_lifetime: float = 86_400.0
    search_lag: float = 0.0
    api_key: str | None = None
    webhook_url: str | None = None
    webhook_secret: str | None = None
    webhook_retry: float = 1.0
    commit_window: float = 0.002
    hold_webhooks: bool = False
    sync: bool = True

    def __post_init__(self) -> None:
        """Refuse figures that make no sense; raises ValueError."""
        if self.limit < 1:
            raise ValueError("limit must be at least 1 arrival a second")
        if self.faults is not None and not 0 <= self.faults <= 1:
            raise ValueError("faults must be a share from 0 to 1")
        if min(self.hang, self.search_lag, self.commit_window) < 0 or self.key_lifetime <= 0:
            raise ValueError("hang, search lag, commit window and key lifetime are spans of time")
        if self.webhook_retry <= 0:
            raise ValueError("webhook retry must be more than 0 seconds")
        if (self.webhook_url is None) != (self.webhook_secret is None):
            raise ValueError("a webhook address and its secret go together")
        if self.webhook_secret is not None:
            check_secret(self.webhook_secret)
