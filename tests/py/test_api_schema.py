"""schemathesis over the whole specification: all of its checks, in all of its phases.

Derandomised, so that a failure is one for everybody. CONTRIBUTING.md says how to run it at random,
and for longer.
"""

import json
import os
import random
import re
import subprocess
import sys
from pathlib import Path

from billing_shell.api_endpoints import ENDPOINTS
from billing_shell.api_keys import Scope
from tests.py.support.door import RunningDoor, Shop

SHOP_VARIABLE = "BILLING_TEST_SHOP"  # as schemathesis_hooks reads it
HERE = Path(__file__).parent
EXAMPLES = os.environ.get("BILLING_SCHEMATHESIS_EXAMPLES", "5")
SEED = os.environ.get("BILLING_SCHEMATHESIS_SEED", "1")
OTHER_ENDPOINTS = 5  # two for webhooks, two for health, one for figures


def test_the_door_keeps_to_its_specification(door: RunningDoor, shop: Shop, tmp_path: Path) -> None:
    seed = str(random.getrandbits(32)) if SEED == "random" else SEED
    program = Path(sys.executable).with_name("schemathesis")
    run = subprocess.run(
        [
            program,
            "--config-file",
            HERE / "schemathesis.toml",
            "run",
            f"{door.url}/openapi.json",
            "--phases=examples,coverage,fuzzing,stateful",
            "--checks=all",
            "--continue-on-failure",
            # How long anything takes is the machine's affair.
            "--suppress-health-check=too_slow",
            "--request-timeout=300",
            f"--max-examples={EXAMPLES}",
            f"--seed={seed}",
            f"--header=Authorization: Bearer {door.key(*Scope)}",
        ],
        cwd=tmp_path,
        env={
            **os.environ,
            "SCHEMATHESIS_HOOKS": "tests.py.support.schemathesis_hooks",
            "PYTHONPATH": str(HERE.parents[1]),
            SHOP_VARIABLE: json.dumps({"url": shop.url, "mine": dict(shop.mine)}),
        },
        capture_output=True,
        text=True,
        check=False,
    )
    assert run.returncode == 0, f"seed {seed}\n{run.stdout}\n{run.stderr}"
    tested = re.search(r"Tested: ([0-9]+)", run.stdout)
    assert tested is not None, run.stdout
    assert int(tested[1]) == len(ENDPOINTS) + OTHER_ENDPOINTS
    for phase in ("Examples", "Coverage", "Fuzzing", "Stateful"):
        assert re.search(rf"✅ {phase}", run.stdout), run.stdout
