"""What can be changed while the gateway runs; kept in the ledger, so that it outlives a restart.

An option given at the start wins over what was last controlled, and replaces it.
"""

import json
from collections import deque
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Self

from billing_shell.simulator import books
from billing_shell.simulator.behaviour import Fault
from billing_shell.simulator.chance import FaultRate
from billing_shell.simulator.clocks import BusinessClock, from_text, to_text
from billing_shell.simulator.ledger import Ledger
from billing_shell.simulator.options import DEFAULT_FAULT_RATE, DEFAULT_LATENCY, Latency, Options
from billing_shell.webhook_signature import check_secret


@dataclass(frozen=True, slots=True)
class WebhookTarget:
    """Where events go and what signs them."""

    url: str
    secret: str

    def __post_init__(self) -> None:
        """Refuse what cannot sign; raises SecretError, which is a ValueError."""
        check_secret(self.secret)


class Controls:
    """The present settings and scripts."""

    def __init__(self, ledger: Ledger) -> None:
        self._ledger = ledger
        self.clock = BusinessClock(None)
        self.latency = DEFAULT_LATENCY
        self.faults = FaultRate(DEFAULT_FAULT_RATE)
        self.webhooks: WebhookTarget | None = None
        self._scripts: dict[str, deque[tuple[int, str]]] = {}

    @classmethod
    async def load(cls, ledger: Ledger, options: Options) -> Self:
        """Take up what was last controlled, then what this start says."""
        controls = cls(ledger)
        kept: dict[str, Any] = {
            row["name"]: json.loads(row["value"]) for row in ledger.rows("SELECT * FROM controls")
        }
        if kept.get("clock") is not None:
            controls.clock.frozen_at = from_text(kept["clock"])
        if "latency" in kept:
            controls.latency = Latency(**kept["latency"])
        if "faults" in kept:
            controls.faults = _fault_rate(**kept["faults"])
        if kept.get("webhooks") is not None:
            controls.webhooks = WebhookTarget(**kept["webhooks"])
        for row in ledger.rows(
            "SELECT * FROM script_outcomes WHERE used_by_call IS NULL ORDER BY outcome_no"
        ):
            outcome = (row["outcome_no"], row["outcome"])
            controls._scripts.setdefault(row["token"], deque()).append(outcome)

        if options.latency is not None:
            await controls.set_latency(options.latency)
        if options.faults is not None:
            await controls.set_faults(FaultRate(options.faults))
        if options.webhook_url is not None and options.webhook_secret is not None:
            await controls.set_webhooks(WebhookTarget(options.webhook_url, options.webhook_secret))
        return controls

    async def set_clock(self, frozen_at: datetime | None) -> None:
        """Freeze the business clock, or let it follow the wall clock again."""
        await self._keep("clock", None if frozen_at is None else to_text(frozen_at))
        self.clock.frozen_at = frozen_at

    async def set_latency(self, latency: Latency) -> None:
        """Set how long answers take."""
        await self._keep("latency", {"least": latency.least, "most": latency.most})
        self.latency = latency

    async def set_faults(self, faults: FaultRate) -> None:
        """Set how often chance strikes, and with what."""
        kinds = None if faults.kinds is None else sorted(faults.kinds)
        await self._keep("faults", {"rate": faults.rate, "kinds": kinds})
        self.faults = faults

    async def set_webhooks(self, target: WebhookTarget | None) -> None:
        """Set where events go; None = nowhere, and none are kept."""
        value = None if target is None else {"url": target.url, "secret": target.secret}
        await self._keep("webhooks", value)
        self.webhooks = target

    async def set_script(self, token: str, outcomes: list[str]) -> None:
        """Line outcomes up for a token, in place of those that it still had."""
        numbers = await self._ledger.write(
            lambda connection: books.replace_script(connection, token, outcomes)
        )
        self._scripts.pop(token, None)
        if outcomes:
            self._scripts[token] = deque(zip(numbers, outcomes, strict=True))

    def next_outcome(self, token: str) -> tuple[int, str] | None:
        """Take the next outcome of a token's script: its number in the ledger, and the word."""
        script = self._scripts.get(token)
        if script is None:
            return None
        outcome = script.popleft()
        if not script:
            del self._scripts[token]
        return outcome

    async def _keep(self, name: str, value: object) -> None:
        await self._ledger.write(lambda connection: books.put_control(connection, name, value))


def _fault_rate(rate: float, kinds: list[str] | None) -> FaultRate:
    return FaultRate(rate, None if kinds is None else frozenset(map(Fault, kinds)))
