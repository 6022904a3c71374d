"""The simulated gateway: a payment gateway in a process of its own, with books of its own.

It keeps its ledger in one SQLite file, commits there before it answers, and behaves as real
gateways do: replays, conflicts, expired keys, limits, slow answers, lost answers. Nothing in it
touches the billing database. `docs/simulated-gateway.md` is its manual.
"""

from billing_shell.simulator.options import Options
from billing_shell.simulator.server import serve

__all__ = ["Options", "serve"]
