"""Waiting that ends early when there is a reason to."""

import asyncio


async def pause(seconds: float, *reasons: asyncio.Event) -> None:
    """Sleeps for so long, or until one of the events is set."""
    waits = [asyncio.create_task(reason.wait()) for reason in reasons]
    try:
        await asyncio.wait(waits, timeout=seconds, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for wait in waits:
            wait.cancel()


async def happened(event: asyncio.Event, seconds: float) -> bool:
    """Waits for an event for at most so long, and tells whether it came."""
    try:
        async with asyncio.timeout(seconds):
            await event.wait()
    except TimeoutError:
        return False
    return True
