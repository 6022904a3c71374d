"""One client process of the throttle: reserves a number of slots and keeps those it could use.

Prints one JSON object: `arrivals`, seconds on the system-wide monotonic clock at which a call was
made, and `reserved`, how many slots it got. Arguments: Redis URL, account, limit, slots wanted.
"""

import asyncio
import json
import sys
import time

from billing_shell.throttle import Lane, Slot, Throttle, connect

_BATCH = 10


async def _send(slot: Slot, arrivals: list[float]) -> None:
    await slot.reached()
    now = time.monotonic()
    if slot.usable(now):
        arrivals.append(now)


async def _run(url: str, account: str, limit: int, wanted: int) -> None:
    arrivals: list[float] = []
    reserved = 0
    async with connect(url) as client, asyncio.TaskGroup() as calls:
        throttle = Throttle(client, account, "charge", limit)
        while reserved < wanted:
            reservation = await throttle.reserve(min(_BATCH, wanted - reserved), Lane.BACKLOG)
            reserved += len(reservation.slots)
            for slot in reservation.slots:
                calls.create_task(_send(slot, arrivals))
            await asyncio.sleep(reservation.wait)
    json.dump({"arrivals": arrivals, "reserved": reserved}, sys.stdout)


if __name__ == "__main__":
    asyncio.run(_run(sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4])))
