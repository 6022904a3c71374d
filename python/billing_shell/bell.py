"""The bell: tells workers through the queue that there may be something to do, ahead of the clock.

Jobs are hints, and the clock makes one of each kind every few seconds. Who has moved the business
clock, and does not want to wait for the next tick, rings.
"""

import time
from typing import Self

from procrastinate import App, SyncPsycopgConnector

from billing_shell.database import WORKER_ROLE, session_conninfo


class Bell:
    """A connection to the queue that only adds hints."""

    def __init__(self, database_url: str) -> None:
        """Nothing is connected yet.

        Args:
            database_url: as a member of billing_worker.
        """
        conninfo = session_conninfo(
            database_url,
            role=WORKER_ROLE,
            application_name="billing bell",
            search_path="procrastinate",
        )
        self._app = App(connector=SyncPsycopgConnector(conninfo=conninfo, min_size=1, max_size=1))

    def __enter__(self) -> Self:
        self._app.open()
        return self

    def __exit__(self, *_: object) -> None:
        self._app.close()

    def ring(self, task: str, gateway_account: str = "") -> None:
        """Add a hint.

        Args:
            task: name of the task, as `renew` or `reconcile`.
            gateway_account: whose workers it concerns; empty for all workers.
        """
        queue = f"gateway.{gateway_account}" if gateway_account else "billing"
        self._app.configure_task(task, queue=queue).defer(timestamp=int(time.time()))
