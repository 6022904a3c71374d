"""The worker of a simulation: the steps of the real one, in this process, one after the other.

Renewer, settler, sweeps, adapter and every statement are those of the worker. What a simulation
does without is what makes two runs differ: the queue's cadence, and the throttle's slots. It dies,
is restarted under another name and freezes on the way, as chance has it, and the gateway dies under
it.
"""

import asyncio
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import datetime
from enum import Enum
from random import Random
from types import TracebackType
from typing import LiteralString, Self

from billing_shell import queries
from billing_shell.clocks import ClockGuard
from billing_shell.database import Database
from billing_shell.gateway import ChargeRequest, ChargeResult, RefundRequest, RefundResult
from billing_shell.refunder import RefundSettlement
from billing_shell.renewer import Renewer
from billing_shell.settler import Settler
from billing_shell.simulated_gateway import SimulatedGateway
from billing_shell.sweeps import sweep

ACCOUNT = "simulated"

_BATCH = 50
_MOST_ROUNDS = 200
_ANSWER_SECONDS = 10.0
_SETTLE_SECONDS = 30.0
_GATEWAY_SHARE = 0.1
_SWEEPS: tuple[LiteralString, ...] = (
    queries.END_DUNNING,
    queries.EXPIRE_CHECKOUTS,
    queries.ANNOUNCE_TRIAL_ENDINGS,
)


class Work(Enum):
    """Kinds of work that may be due."""

    RENEW = 1
    COLLECT = 2
    LOOK_UP = 3
    PROCESS = 4
    REFUND = 5


class NeverQuietError(Exception):
    """There was work without end at one and the same instant."""


class Engine:
    """Does what is due, until nothing is."""

    def __init__(
        self,
        database_url: str,
        gateway_url: str,
        *,
        due: Callable[[], frozenset[Work]],
        answered: Callable[[], bool],
        kill_gateway: Callable[[], None],
        seed: int,
        faults: float,
    ) -> None:
        """Nothing is connected yet.

        Args:
            database_url: a migrated test database.
            gateway_url: the simulated gateway.
            due: tells what looks due, so that not everything has to be tried.
            answered: told when answers are in hand and not recorded yet; True if the inbox holds
                what overtook them.
            kill_gateway: ends the gateway while calls are made; it stays down until this work ends.
            seed: makes its deaths.
            faults: share of batches that it does not survive; the gateway dies in a tenth as many.
        """
        self.worker = "worker 1"
        self.counts: Counter[str] = Counter()
        self._due = due
        self._answered = answered
        self._kill_gateway = kill_gateway
        self._seed = seed
        self._faults = faults
        self._rounds = 0
        self._lives = 1
        self._frozen: list[ChargeResult] = []
        self._stop = asyncio.Event()
        self._database = Database(database_url, application_name="billing simulate", connections=1)
        self._gateway = SimulatedGateway(gateway_url)
        self._settler = Settler(self._database)
        self._settling: asyncio.Task[None] | None = None
        clocks = ClockGuard(self._clock, self._clock)
        self._renewer = Renewer(self._database, clocks=clocks, worker=self.worker)

    async def __aenter__(self) -> Self:
        await self._database.open()
        self._settling = asyncio.create_task(self._settler.run())
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._settling is not None:
            # Its connection goes back before the others are closed.
            self._settling.cancel()
            await asyncio.gather(self._settling, return_exceptions=True)
        await self._gateway.aclose()
        await self._database.close()

    async def work(self, *, everything: bool = True) -> None:
        """Work until nothing is left to do.

        Args:
            everything: do each kind of work once, whether it looks due or not; after that, and
                without it, only what looks due.

        Raises:
            NeverQuietError: it never came to an end.
            DatabaseError: the database refused.
        """
        due = frozenset(Work) if everything else self._due()
        for _ in range(_MOST_ROUNDS):
            if not due:
                return
            done = await self._renew() if Work.RENEW in due else 0
            done += await self._collect() if Work.COLLECT in due else 0
            done += await self._look_up() if Work.LOOK_UP in due else 0
            done += await self._refund() if Work.REFUND in due else 0
            if Work.PROCESS in due:
                done += await sweep(self._database, queries.PROCESS_WEBHOOKS, self._stop)
            if everything:
                for query in _SWEEPS:
                    done += await sweep(self._database, query, self._stop)
                everything = False
            if done == 0:
                return
            due = self._due()
        raise NeverQuietError(f"{_MOST_ROUNDS} rounds at one instant, and there is still work")

    async def wake_the_frozen(self) -> None:
        """Have results settled that a worker held in hand for longer than its lease."""
        late, self._frozen = self._frozen, []
        if late:
            self.counts["results_of_frozen_workers"] += len(late)
            await self._settle(late)

    async def _clock(self) -> datetime:
        now: datetime = await self._database.value(queries.CLOCK, {})
        return now

    async def _renew(self) -> int:
        run = await self._renewer.run(self._stop)
        if run is None:
            return 0
        self.counts["renewed"] += run.renewed
        self.counts["parked"] += run.parked
        return run.renewed + run.ended + run.parked

    async def _collect(self) -> int:
        done = 0
        while requests := await self._claim(queries.START_ATTEMPTS):
            done += len(requests)
            self._rounds += 1
            chance = Random(f"{self._seed}/worker/{self._rounds}")  # noqa: S311 - to be repeated
            fate = chance.random()
            if fate < self._faults / 3:
                self._die("deaths_before_sending")
                break
            # One at a time: which of two charges comes first must not be the scheduler's choice.
            results = []
            for request in requests:
                results.append(await self._gateway.charge(request, timeout=_ANSWER_SECONDS))
                if self._faults <= fate < (1 + _GATEWAY_SHARE) * self._faults:
                    self._kill_gateway()
            if fate < 2 * self._faults / 3:
                self._die("deaths_after_sending")
                break
            if fate < self._faults:
                self._frozen += results
                self._die("freezes")
                break
            if self._answered():
                await sweep(self._database, queries.PROCESS_WEBHOOKS, self._stop)
            await self._settle(results)
            if len(requests) < _BATCH:
                break
        return done

    async def _look_up(self) -> int:
        done = 0
        while requests := await self._claim(queries.ATTEMPTS_TO_LOOK_UP):
            done += len(requests)
            # By reference: faults are drawn for what is asked for, and payment ids are random.
            results = [
                await self._gateway.look_up(
                    replace(r, gateway_payment_id=None), timeout=_ANSWER_SECONDS
                )
                for r in requests
            ]
            await self._settle(results)
            if len(requests) < _BATCH:
                break
        self.counts["look_ups"] += done
        return done

    async def _refund(self) -> int:
        asked = await self._claim_refunds(queries.REFUNDS_TO_LOOK_UP)
        await self._settle_refunds(
            [
                await self._gateway.look_up_refund(
                    replace(r, gateway_refund_id=None), timeout=_ANSWER_SECONDS
                )
                for r in asked
            ]
        )
        self.counts["look_ups_of_refunds"] += len(asked)
        due = await self._claim_refunds(queries.START_REFUNDS)
        if not due:
            return len(asked)
        self._rounds += 1
        chance = Random(f"{self._seed}/worker/{self._rounds}")  # noqa: S311 - to be repeated
        fate = chance.random()
        if fate < self._faults / 2:
            self._die("deaths_before_sending")
        else:
            sent = [await self._gateway.refund(r, timeout=_ANSWER_SECONDS) for r in due]
            if fate < self._faults:
                self._die("deaths_after_sending")
            else:
                await self._settle_refunds(sent)
        return len(asked) + len(due)

    async def _claim(self, query: LiteralString) -> list[ChargeRequest]:
        return await self._database.rows(
            query, {"account": ACCOUNT, "limit": _BATCH, "worker": self.worker}, ChargeRequest
        )

    async def _claim_refunds(self, query: LiteralString) -> list[RefundRequest]:
        return await self._database.rows(
            query, {"account": ACCOUNT, "limit": _BATCH, "worker": self.worker}, RefundRequest
        )

    async def _settle_refunds(self, results: Sequence[RefundResult]) -> None:
        if results:
            await self._database.rows(
                queries.SETTLE_REFUNDS, {"results": list(results)}, RefundSettlement
            )

    async def _settle(self, results: Sequence[ChargeResult]) -> None:
        for result in sorted(results, key=lambda r: (r.customer_id, r.attempt_id, r.claim_epoch)):
            self._settler.report(result)
        if not await self._settler.drain(_SETTLE_SECONDS):
            raise NeverQuietError(f"results were not settled within {_SETTLE_SECONDS:.0f} s")

    def _die(self, of: str) -> None:
        self.counts[of] += 1
        self._lives += 1
        self.worker = f"worker {self._lives}"
