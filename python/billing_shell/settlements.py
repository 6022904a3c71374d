"""Settlements: asks the gateway what it has booked on each day, and has that compared.

Which day is due, and what is made of a difference, the database says: `billing reconcile` does the
same with a file. A day is loaded page by page and compared once all of it is there; a worker that
dies on the way, or a page that is not to be had, leaves the day due. Each page takes a slot for
look-ups.
"""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime

import structlog

from billing_shell import queries
from billing_shell.breaker import Breaker
from billing_shell.clocks import ClockGuard
from billing_shell.database import Database
from billing_shell.gateway import Gateway, SettledItem, SettledPage
from billing_shell.gateway_accounts import AccountWatch, GatewayAccount
from billing_shell.rate_limits import RATE_LIMITED, pause_all
from billing_shell.throttle import Lane, Slot, Throttle, ThrottleUnavailableError
from billing_shell.waiting import pause

_LEAD = 0.03

_log = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True)
class DueReport:
    """A report that is to be loaded and compared; it covers `[covers_from, covers_to)`."""

    settlement_report_id: int
    covers_from: datetime
    covers_to: datetime


class Settlements:
    """Settlement reports of one gateway account."""

    def __init__(
        self,
        database: Database,
        *,
        accounts: AccountWatch,
        gateway: Callable[[], Gateway],
        throttle: Throttle,
        breaker: Breaker,
        clocks: ClockGuard,
    ) -> None:
        """Nothing is asked yet.

        Args:
            database: where reports are compared.
            accounts: the account to ask about.
            gateway: its adapter, once the account has been read.
            throttle: slots for look-ups.
            breaker: whether the gateway is to be called at all.
            clocks: whether the clocks agree.
        """
        self._database = database
        self._accounts = accounts
        self._gateway = gateway
        self._throttle = throttle
        self._breaker = breaker
        self._clocks = clocks

    async def run(self, stop: asyncio.Event) -> int:
        """Compares every day that is due. Returns how many it has compared.

        Raises:
            DatabaseError: a report could not be opened, loaded or compared; SB211 where another
                worker was faster.
        """
        account = await self._accounts.current()
        if account is None or not await self._clocks.agree():
            return 0
        compared = 0
        while not stop.is_set():
            due = await self._database.rows(
                queries.DUE_SETTLEMENT_REPORT, {"account": account.code}, DueReport
            )
            if not due or not await self._load(account, due[0], stop):
                break
            differences: int = await self._database.value(
                queries.CLOSE_SETTLEMENT_REPORT, {"report": due[0].settlement_report_id}
            )
            compared += 1
            (_log.error if differences else _log.info)(
                "settlement_compared",
                gateway_account=account.code,
                day=due[0].covers_from.date().isoformat(),
                differences=differences,
            )
        return compared

    async def _load(self, account: GatewayAccount, due: DueReport, stop: asyncio.Event) -> bool:
        """Loads a whole report; whether all of it was to be had."""
        cursor: str | None = None
        while (slot := await self._slot(stop)) is not None:
            if not await slot.reached():
                continue
            page = await self._gateway().settled(
                due.covers_from,
                due.covers_to,
                cursor=cursor,
                timeout=account.request_timeout.total_seconds(),
            )
            if page.code is not None:
                await self._put_off(due, page)
                return False
            await self._database.value(
                queries.LOAD_SETTLEMENT_LINES, _columns(due.settlement_report_id, page.items)
            )
            cursor = page.cursor
            if cursor is None:
                return True
        return False

    async def _slot(self, stop: asyncio.Event) -> Slot | None:
        """One slot; None where nothing may be asked now."""
        while not stop.is_set() and self._breaker.permits(0) > 0:
            try:
                reservation = await self._throttle.reserve(1, Lane.BACKLOG, _LEAD)
            except ThrottleUnavailableError as error:
                _log.warning("settlements_wait", error=str(error))
                return None
            if reservation.slots:
                return reservation.slots[0]
            await pause(reservation.wait, stop)
        return None

    async def _put_off(self, due: DueReport, page: SettledPage) -> None:
        _log.warning(
            "settlement_not_loaded", day=due.covers_from.date().isoformat(), reason=page.code
        )
        if page.code == RATE_LIMITED:
            await pause_all(self._throttle, page.retry_after)


def _columns(report_id: int, items: tuple[SettledItem, ...]) -> dict[str, object]:
    return {
        "report": report_id,
        "kinds": [item.kind for item in items],
        "ids": [item.gateway_id for item in items],
        "references": [item.reference for item in items],
        "amounts": [item.amount for item in items],
        "currencies": [item.currency for item in items],
    }
