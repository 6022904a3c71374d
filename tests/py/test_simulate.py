"""Months of business, five seeds: books agree, every fault struck, one seed has one end."""

import os
from collections import Counter
from pathlib import Path

import pytest

from billing_shell.demo_processes import DemoError, Gateway
from billing_shell.simulate import SimulationOptions, SimulationReport
from billing_shell.simulate_runs import Grounds, simulate_seeds
from tests.py.support.servers import TestPostgres

SEEDS = (1, 2, 3, 4, 5)
OPTIONS = SimulationOptions(days=36, subscriptions=24, faults=0.2)
FAULTS = {
    "429",
    "500_charged",
    "500_lost",
    "500_stored",
    "cut",
    "deaths_after_sending",
    "deaths_before_sending",
    "deaths_of_gateways",
    "deaths_of_relays",
    "freezes",
    "results_of_frozen_workers",
    "timeout_charged",
    "timeout_lost",
    "webhook_early",
    "webhook_twice",
    "webhooks_late",
    "webhooks_lost",
    "webhooks_twice",
}


@pytest.fixture(scope="module")
def reports(postgres: TestPostgres) -> list[SimulationReport]:
    return list(simulate_seeds(Grounds(postgres.url), OPTIONS, SEEDS))


def test_no_book_disagrees(reports: list[SimulationReport]) -> None:
    wrong = {r.seed: (*r.findings, *r.violations) for r in reports if not r.sound}
    assert wrong == {}


def test_every_fault_struck(reports: list[SimulationReport]) -> None:
    struck: Counter[str] = Counter()
    for report in reports:
        struck.update(report.faults)
    assert FAULTS - {name for name, count in struck.items() if count} == set()


def test_customers_did_everything_that_they_do(reports: list[SimulationReport]) -> None:
    done: Counter[str] = Counter()
    for report in reports:
        done.update(report.counts)
    wanted = {
        "change_plan",
        "create_manual_invoice",
        "pause_subscription",
        "refund_invoice",
        "refunds_succeeded",
        "repeated_calls",
        "retry_invoice",
        "webhooks_duplicate",
    }
    assert wanted - {name for name, count in done.items() if count} == set()


def test_the_same_seed_comes_to_the_same_end(
    reports: list[SimulationReport], postgres: TestPostgres
) -> None:
    (again,) = simulate_seeds(Grounds(postgres.url), OPTIONS, [SEEDS[0]])
    assert again.digest == reports[0].digest
    assert len({report.digest for report in reports}) == len(SEEDS)


def test_a_gateway_that_has_ended_before_its_turn_is_not_waited_for(tmp_path: Path) -> None:
    turn = tmp_path / "turn"
    os.mkfifo(turn)
    with Gateway(tmp_path / "ledger.sqlite", tmp_path / "log", (), turn=turn) as gateway:
        gateway.kill()
        with pytest.raises(DemoError, match="ended by itself"):
            gateway.take_turn()
