"""The worker: one process that renews, collects, asks and cleans up, driven by the queue.

Any number of them may run against one database, on any machines. They share the work by row locks
and leases, and the gateway's rate by the throttle.
"""

import asyncio
from collections.abc import Mapping
from contextlib import AsyncExitStack
from dataclasses import dataclass, field

import structlog

from billing_shell import queries
from billing_shell.adapters import ADAPTERS
from billing_shell.breaker import Breaker
from billing_shell.clocks import ClockGuard
from billing_shell.collector import Collector
from billing_shell.database import Database
from billing_shell.dispatcher import Dispatcher
from billing_shell.gateway import ChargeRequest, ChargeResult, Gate, Gateway, Outcome, Source
from billing_shell.gateway_accounts import AccountWatch, GatewayAccount
from billing_shell.housekeeping import Retention, keep_house
from billing_shell.job_queue import JobQueue, PeriodicTask
from billing_shell.process_names import made_up_name
from billing_shell.reconciler import Reconciler
from billing_shell.refunder import Refunder
from billing_shell.renewer import Renewer
from billing_shell.settlements import Settlements
from billing_shell.settler import Settler
from billing_shell.sweeps import end_dunning, process_webhooks
from billing_shell.throttle import Throttle, connect
from billing_shell.waiting import pause

# A hint keeps the collector at work for longer than the next ones take to come.
_AWAKE_SECONDS = 10.0
_LIMIT_BEFORE_READ = 2
_DATABASE_CONNECTIONS = 5

_log = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class Cadence:
    """How often each task is looked after: cron expressions with seconds in the sixth field."""

    renew: str = "* * * * * */10"
    collect: str = "* * * * * *"
    reconcile: str = "* * * * * */5"
    refund: str = "* * * * * */5"
    webhooks: str = "* * * * * */2"
    dunning: str = "* * * * * */30"
    housekeeping: str = "* * * * * 15"
    settlements: str = "7 * * * * 0"


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkerOptions:
    """How one worker is run.

    Attributes:
        database_url: as `BILLING_DATABASE_URL`.
        redis_url: as `BILLING_REDIS_URL`.
        gateway_url: as `BILLING_GATEWAY_URL`.
        gateway_account: as `BILLING_GATEWAY_ACCOUNT`.
        api_keys: what adapters present to their gateways, by the adapter's name.
        name: unique per process; made up if empty.
        drain_seconds: at the end, how long to wait for answers and for their being recorded.
        heartbeat_seconds: how often the queue is told that this process is alive.
        stalled_after_seconds: how long after its last word a worker counts as dead.
        cadence: how often each task is looked after.
        retention: how long things are kept.
    """

    database_url: str = field(repr=False)
    redis_url: str = field(repr=False)
    gateway_url: str
    gateway_account: str
    api_keys: Mapping[str, str] = field(default_factory=dict, repr=False)
    name: str = ""
    drain_seconds: float = 60.0
    heartbeat_seconds: float = 10.0
    stalled_after_seconds: float = 30.0
    cadence: Cadence = field(default_factory=Cadence)
    retention: Retention = field(default_factory=Retention)


class Worker:
    """One worker, in the event loop in which it is made."""

    def __init__(self, options: WorkerOptions) -> None:
        """Nothing is connected yet."""
        self.name = options.name or made_up_name()
        self._options = options
        self._stop = asyncio.Event()
        account = options.gateway_account
        self._database = Database(
            options.database_url,
            application_name=f"billing worker {self.name}",
            connections=_DATABASE_CONNECTIONS,
        )
        self._redis = connect(options.redis_url)
        # The limits follow as soon as the account is read.
        self._charges = Throttle(self._redis, account, "charge", _LIMIT_BEFORE_READ)
        self._look_ups = Throttle(self._redis, account, "look_up", _LIMIT_BEFORE_READ)
        self._refunds = Throttle(self._redis, account, "refund", _LIMIT_BEFORE_READ)
        self._clocks = ClockGuard(
            lambda: self._database.value(queries.CLOCK, {}), self._charges.server_time
        )
        self._accounts = AccountWatch(self._database, account, ADAPTERS, self._follow)
        self._gateway: Gateway | None = None
        self._settler = Settler(self._database)
        breaker = Breaker()
        self._charging = Dispatcher(
            self._charge,
            throttle=self._charges,
            breaker=breaker,
            settler=self._settler,
            give_back=self._give_back,
        )
        self._asking = Dispatcher(
            self._look_up,
            throttle=self._look_ups,
            breaker=breaker,
            settler=self._settler,
            give_back=_leave,
        )
        self._collector = Collector(
            self._database,
            accounts=self._accounts,
            dispatcher=self._charging,
            throttle=self._charges,
            breaker=breaker,
            clocks=self._clocks,
            worker=self.name,
        )
        self._reconciler = Reconciler(
            self._database,
            accounts=self._accounts,
            dispatcher=self._asking,
            throttle=self._look_ups,
            breaker=breaker,
            clocks=self._clocks,
            worker=self.name,
        )
        self._refunder = Refunder(
            self._database,
            accounts=self._accounts,
            gateway=self._known_gateway,
            throttle=self._refunds,
            breaker=breaker,
            clocks=self._clocks,
            worker=self.name,
        )
        self._settlements = Settlements(
            self._database,
            accounts=self._accounts,
            gateway=self._known_gateway,
            throttle=self._look_ups,
            breaker=breaker,
            clocks=self._clocks,
        )
        self._renewer = Renewer(self._database, clocks=self._clocks, worker=self.name)
        self._queue = JobQueue(
            options.database_url,
            self._tasks(),
            worker=self.name,
            heartbeat_seconds=options.heartbeat_seconds,
            stalled_after_seconds=options.stalled_after_seconds,
        )

    def stop(self) -> None:
        """Claims nothing more; `run` then finishes what is in flight, and returns."""
        self._stop.set()

    async def run(self) -> bool:
        """Works until told to stop.

        Returns:
            Whether everything in flight was answered and recorded in the time that there was. What
            was not is looked up by others, or by the next one.

        Raises:
            DatabaseError: the first connection failed; later ones are waited for.
        """
        async with AsyncExitStack() as stack:
            stack.push_async_callback(self._redis.aclose)
            await stack.enter_async_context(self._database)
            stack.push_async_callback(self._close_gateway)
            settling = asyncio.create_task(self._settler.run(), name="settler")
            stack.callback(settling.cancel)
            _log.info("worker_started", worker=self.name, account=self._options.gateway_account)
            async with asyncio.TaskGroup() as group:
                group.create_task(self._collector.run(self._stop), name="collector")
                group.create_task(self._queue.run(self._stop), name="queue")
                group.create_task(self._end_with(settling), name="watch")
            return await self._drain()

    async def _end_with(self, settling: asyncio.Task[None]) -> None:
        """Without its settler a worker must not go on; it never ends but by a fault of ours."""
        stopped = asyncio.create_task(self._stop.wait())
        await asyncio.wait({settling, stopped}, return_when=asyncio.FIRST_COMPLETED)
        stopped.cancel()
        if settling.done():
            settling.result()

    async def _drain(self) -> bool:
        loop = asyncio.get_running_loop()
        deadline = loop.time() + self._options.drain_seconds
        _log.info(
            "worker_drains",
            worker=self.name,
            in_flight=self._charging.in_flight + self._asking.in_flight,
            unsettled=self._settler.unsettled,
            at_most_seconds=self._options.drain_seconds,
        )
        answered = await asyncio.gather(
            *(d.drain(deadline - loop.time()) for d in (self._charging, self._asking))
        )
        settled = await self._settler.drain(max(0.0, deadline - loop.time()))
        done = all(answered) and settled
        (_log.info if done else _log.error)(
            "worker_stopped",
            worker=self.name,
            settled=self._settler.settled,
            unsettled=self._settler.unsettled,
            unanswered=not all(answered),
        )
        return done

    def _tasks(self) -> list[PeriodicTask]:
        cadence = self._options.cadence
        account = self._options.gateway_account
        return [
            PeriodicTask(
                name="renew", cron=cadence.renew, run=lambda: self._renewer.run(self._stop)
            ),
            PeriodicTask(
                name="collect",
                cron=cadence.collect,
                run=self._stay_awake,
                hint=lambda: self._collector.stay_awake(_AWAKE_SECONDS),
                gateway_account=account,
            ),
            PeriodicTask(
                name="reconcile",
                cron=cadence.reconcile,
                run=lambda: self._reconciler.run(self._stop),
                gateway_account=account,
            ),
            PeriodicTask(
                name="refund",
                cron=cadence.refund,
                run=lambda: self._refunder.run(self._stop),
                gateway_account=account,
            ),
            PeriodicTask(
                name="webhooks",
                cron=cadence.webhooks,
                run=lambda: process_webhooks(self._database, self._stop),
            ),
            PeriodicTask(
                name="dunning",
                cron=cadence.dunning,
                run=lambda: end_dunning(self._database, self._stop),
            ),
            PeriodicTask(name="housekeeping", cron=cadence.housekeeping, run=self._keep_house),
            PeriodicTask(
                name="settlements",
                cron=cadence.settlements,
                run=lambda: self._settlements.run(self._stop),
                gateway_account=account,
            ),
        ]

    async def _stay_awake(self) -> int:
        """Lasts for as long as hints keep the collector awake, so that the job shows that it is.

        Returns how many answers are recorded by then.
        """
        while not self._stop.is_set() and self._collector.awake_seconds > 0:
            await pause(self._collector.awake_seconds, self._stop)
        return self._settler.settled

    async def _keep_house(self) -> None:
        await self._queue.sweep_stalled_jobs()
        await keep_house(self._database, self._stop, self._options.retention)

    def _follow(self, account: GatewayAccount) -> None:
        self._charges.limit_per_second = account.charge_rate
        self._look_ups.limit_per_second = account.look_up_rate
        self._refunds.limit_per_second = account.refund_rate
        if self._gateway is None:
            self._gateway = ADAPTERS[account.adapter](
                self._options.gateway_url, self._options.api_keys.get(account.adapter)
            )

    async def _charge(self, request: ChargeRequest, seconds: float, gate: Gate) -> ChargeResult:
        return await self._known_gateway().charge(request, timeout=seconds, gate=gate)

    async def _look_up(self, request: ChargeRequest, seconds: float, gate: Gate) -> ChargeResult:
        return await self._known_gateway().look_up(request, timeout=seconds, gate=gate)

    def _known_gateway(self) -> Gateway:
        if self._gateway is None:
            raise RuntimeError("a request was claimed before its account was read")
        return self._gateway

    async def _close_gateway(self) -> None:
        if self._gateway is not None:
            await self._gateway.aclose()

    def _give_back(self, request: ChargeRequest, reason: str) -> None:
        """Has an attempt that was definitely not sent put back into the queue."""
        self._settler.report(
            ChargeResult(
                customer_id=request.customer_id,
                attempt_id=request.attempt_id,
                claim_epoch=request.claim_epoch,
                outcome=Outcome.NOT_ATTEMPTED,
                gateway_payment_id=None,
                amount=None,
                currency=None,
                code=reason,
                retry_after=None,
                action_expires_at=None,
                source=Source.SEND,
            )
        )


def _leave(_request: ChargeRequest, _reason: str) -> None:
    """A look-up that was not made: its attempt is due again as its claim has set it."""
