"""One client process of the throttle: reserves a number of slots and keeps those it could use.

Says `ready`, and begins once it is told to by a line. Prints one JSON object, in seconds on the
system-wide monotonic clock: `slots`, when it might have made its calls, and `arrivals`, when it
made those that it did not miss. Arguments: Redis URL, account, limit, slots wanted.
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
    slots: list[float] = []
    async with connect(url) as client, asyncio.TaskGroup() as calls:
        throttle = Throttle(client, account, "charge", limit)
        while len(slots) < wanted:
            reservation = await throttle.reserve(min(_BATCH, wanted - len(slots)), Lane.BACKLOG)
            for slot in reservation.slots:
                slots.append(slot.at)
                calls.create_task(_send(slot, arrivals))
            await asyncio.sleep(reservation.wait)
    json.dump({"arrivals": arrivals, "slots": slots}, sys.stdout)


if __name__ == "__main__":
    sys.stdout.write("ready\n")
    sys.stdout.flush()
    sys.stdin.readline()
    asyncio.run(_run(sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4])))
