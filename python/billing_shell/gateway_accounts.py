"""The gateway account of a worker, read anew every few seconds: its limits are data."""

import time
from collections.abc import Callable, Collection
from dataclasses import dataclass
from datetime import timedelta

import structlog

from billing_shell import queries
from billing_shell.adapters import AdapterMissingError
from billing_shell.database import Database

_READ_EVERY = 5.0

_log = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True)
class GatewayAccount:
    """One merchant account; rates are the most calls in any one second."""

    code: str
    adapter: str
    request_timeout: timedelta
    lease_margin: timedelta
    charge_rate: int
    look_up_rate: int
    refund_rate: int
    collecting_paused: bool


class AccountWatch:
    """The present state of one account."""

    def __init__(
        self,
        database: Database,
        code: str,
        adapters: Collection[str],
        follow: Callable[[GatewayAccount], None],
    ) -> None:
        """Nothing is read yet.

        Args:
            database: where the account stands.
            code: which one.
            adapters: names of those that this process has.
            follow: told of every state that is read; raises AdapterMissingError where it has no
                use for the account.
        """
        self._database = database
        self._code = code
        self._adapters = adapters
        self._follow = follow
        self._read_at = float("-inf")
        self._account: GatewayAccount | None = None
        self._complained = ""

    async def current(self) -> GatewayAccount | None:
        """The account, at most five seconds old; None where it is not to be had, or not for us.

        Raises:
            DatabaseError: it cannot be read.
        """
        now = time.monotonic()
        if now - self._read_at < _READ_EVERY:
            return self._account
        found = await self._database.rows(
            queries.GATEWAY_ACCOUNTS, {"account": self._code}, GatewayAccount
        )
        account = found[0] if found else None
        if account is None:
            self._complain("gateway_account_missing", "billing_ops.create_gateway_account makes it")
        elif account.adapter not in self._adapters:
            self._complain("gateway_adapter_unknown", f"this program has no {account.adapter!r}")
            account = None
        elif not self._followed(account):
            account = None
        else:
            self._complained = ""
        self._account, self._read_at = account, now
        return account

    def _followed(self, account: GatewayAccount) -> bool:
        try:
            self._follow(account)
        except AdapterMissingError as error:
            self._complain("gateway_adapter_unusable", str(error))
            return False
        return True

    def _complain(self, event: str, hint: str) -> None:
        """Says what is wrong with the account, once."""
        if self._complained != event:
            _log.error(event, gateway_account=self._code, hint=hint)
        self._complained = event
