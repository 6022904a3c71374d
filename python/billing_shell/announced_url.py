"""Where the simulated gateway listens, by what it says itself once it does."""

import json
import time

from billing_shell.server_process import ServerError, ServerErrorCode, ServerProcess

_POLL_SECONDS = 0.02


def announced_url(process: ServerProcess, seconds: float) -> str:
    """Wait for its ready line, and return the address in it.

    Args:
        process: the gateway; its output goes to its log.
        seconds: how long to wait at most.

    Raises:
        ServerError: it ended, or did not say anything in time; its last words are in the text.
    """
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline and process.running:
        # A line that is not whole yet has no closing brace.
        for line in process.last_words().splitlines():
            if line.startswith('{"event": "ready"') and line.endswith("}"):
                return str(json.loads(line)["url"])
        time.sleep(_POLL_SECONDS)
    raise ServerError(
        ServerErrorCode.START_TIMED_OUT if process.running else ServerErrorCode.START_FAILED,
        f"the simulated gateway does not answer; its log {process.log} ends: "
        f"{process.last_words(3)}",
    )
