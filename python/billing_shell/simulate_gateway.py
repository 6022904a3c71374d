"""The gateway of a simulation: the simulated one, a process that is killed and restarted.

Its ledger outlives it, and so does its address.
"""

import os
from collections.abc import Sequence
from datetime import datetime
from pathlib import Path
from typing import Self
from urllib.parse import urlsplit

import httpx

from billing_shell.demo_processes import DemoError, Gateway

SECRET = "whsec_" + 32 * "c2"
"""What its webhooks would be signed with; the simulation signs for it."""

# An address makes it write events down; they are held, and the simulation delivers them.
_WEBHOOKS = ("--webhook-url", "http://127.0.0.1:9/", "--webhook-secret", SECRET, "--hold-webhooks")
_NEVER_LIMITED = 100_000
_HANG_SECONDS = 0.005


class MortalGateway:
    """A gateway that may be killed at any time.

    Attributes:
        ledger: its books.
        url: its address, the same in every life.
        deaths: how often it was killed.
    """

    def __init__(self, directory: Path, *, seed: int, faults: float) -> None:
        """Start it.

        Args:
            directory: for its ledger and logs; must hold none.
            seed: makes its faults.
            faults: share of calls that one strikes.

        Raises:
            ServerError: it did not start.
        """
        self.ledger = directory / "gateway.sqlite"
        self.deaths = 0
        self._starts = 0
        self._directory = directory
        self._options: Sequence[str] = (
            *("--seed", str(seed), "--faults", str(faults), "--latency", "0"),
            *("--limit", str(_NEVER_LIMITED), "--hang", str(_HANG_SECONDS)),
            *("--commit-window", "0", "--no-sync"),
            *_WEBHOOKS,
        )
        self._process: Gateway | None = Gateway(self.ledger, self._log(), self._options)
        self.url = self._process.url
        self._client = httpx.Client(base_url=self.url, trust_env=False)
        self._next = self._heir()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._client.close()
        self._next.__exit__()
        if self._process is not None:
            self._process.__exit__()

    def set_clock(self, now: datetime) -> None:
        """Freeze its business clock."""
        self._client.put("/_control/clock", json={"now": now.isoformat()}).raise_for_status()

    def end(self, payment_id: str, verb: str) -> bool:
        """Have a payment that is under way `complete` or `fail`; False where it refuses."""
        return self._client.post(f"/_control/charges/{payment_id}/{verb}").is_success

    def kill(self) -> None:
        """End it by SIGKILL, if it lives."""
        if self._process is None:
            return
        self._process.kill()
        self._process.__exit__()
        self._process = None
        self.deaths += 1

    def revive(self) -> None:
        """Start it again, if it was killed; raise ServerError if it does not start."""
        if self._process is not None:
            return
        self._process, self._next = self._next, self._heir()
        self._process.take_turn()
        if self._process.url != self.url:
            raise DemoError(f"the gateway came back as {self._process.url}, not {self.url}")

    def _heir(self) -> Gateway:
        log = self._log()
        turn = log.with_suffix(".turn")
        os.mkfifo(turn)
        port = str(urlsplit(self.url).port)
        return Gateway(self.ledger, log, (*self._options, "--port", port), turn=turn)

    def _log(self) -> Path:
        self._starts += 1
        return self._directory / f"gateway-{self._starts}.log"
