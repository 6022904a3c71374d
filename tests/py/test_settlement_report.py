"""`billing reconcile`: a report of the gateway against the database."""

import json
import os
import random
import subprocess
import sys
from datetime import datetime
from pathlib import Path
from typing import NoReturn

import pytest
from typer.testing import CliRunner

from billing_shell import doctor as doctor_module
from billing_shell import settlement_report
from billing_shell.cli import app
from billing_shell.gateway import SettledItem
from billing_shell.settlement_report import ReportError, read_report
from tests.py.support.servers import TestPostgres
from tests.py.support.world import ACCOUNT, DUE, World

HEADER = "kind,gateway_id,reference,amount,currency,fee\n"


def paid(world: World, people: int) -> list[str]:
    """Renewals that were paid; their payments at the gateway."""
    world.subscribe(people)
    world.rows("SELECT billing_worker.renew_due(100)")
    world.rows(
        "SELECT s.verdict FROM (SELECT array_agg(ROW(q.customer_id, q.attempt_id, q.claim_epoch,"
        " 'SUCCEEDED', 'pay_' || q.attempt_id, q.amount, q.currency, NULL, NULL, NULL, 'SEND')"
        "::billing.charge_result) AS results"
        " FROM billing_worker.start_attempts(%s, 100, 'test') AS q) AS r"
        " CROSS JOIN LATERAL billing_worker.settle_attempts(r.results) AS s",
        ACCOUNT,
    )
    rows = world.rows("SELECT gateway_payment_id FROM billing.payment_attempt ORDER BY 1")
    return [payment for (payment,) in rows]


def run(url: str, report: Path) -> subprocess.CompletedProcess[str]:
    """Run the command over the month in which everything was due."""
    return subprocess.run(
        [
            *(sys.executable, "-m", "billing_shell", "reconcile", "--json"),
            *("--gateway-report", str(report), "--account", ACCOUNT),
            *("--from", DUE.strftime("%Y-%m-%d"), "--to", "2027-04-01"),
        ],
        env=os.environ | {"BILLING_DATABASE_URL": url},
        capture_output=True,
        text=True,
        check=False,
    )


def doctor(url: str) -> subprocess.CompletedProcess[str]:
    """Run the integrity check."""
    return subprocess.run(
        [sys.executable, "-m", "billing_shell", "doctor"],
        env=os.environ | {"BILLING_DATABASE_URL": url},
        capture_output=True,
        text=True,
        check=False,
    )


def test_what_agrees_says_nothing_and_what_does_not_is_a_case(
    database_url: str, tmp_path: Path
) -> None:
    world = World(database_url)
    payments = paid(world, 3)
    report = tmp_path / "report.csv"
    report.write_text(HEADER + "".join(f"charge,{p},,3000,USD,9\n" for p in payments))
    agreed = run(database_url, report)
    assert (agreed.returncode, json.loads(agreed.stdout)["differences"]) == (0, [])

    lines = [f"charge,{payments[0]},,3000,USD,9", f"Charge,{payments[1]},,2999,USD,9"]
    report.write_text(HEADER + "\n".join([*lines, "refund,ref_x,,5,USD,0"]) + "\n")
    found = run(database_url, report)
    assert found.returncode == 1, found.stderr
    assert [
        (d["kind"], d["item"], d["gateway_id"]) for d in json.loads(found.stdout)["differences"]
    ] == [
        ("MISSING_AT_GATEWAY", "CHARGE", payments[2]),
        ("MISSING_HERE", "REFUND", "ref_x"),
        ("SETTLEMENT_MISMATCH", "CHARGE", payments[1]),
    ]
    assert world.count("reconciliation_case", "resolved_at IS NULL") == 3
    world.close()


def test_a_report_that_cannot_be_read_changes_nothing(database_url: str, tmp_path: Path) -> None:
    world = World(database_url)
    report = tmp_path / "report.csv"
    report.write_text(HEADER + "charge,pay_1,,3000,USD,0\ncharge,pay_2,,30.00,USD,0\n")
    refused = run(database_url, report)
    assert refused.returncode == 2
    assert "report.csv:3: amount" in refused.stderr
    assert world.count("settlement_report") == 0
    world.close()


@pytest.mark.parametrize(
    ("content", "complaint"),
    [
        (bytes(range(256)) * 40, "no CSV file in UTF-8"),
        (HEADER.encode() + b"charge,\xff\xfe,,1,USD,0\n", "no CSV file in UTF-8"),
        (b"kind,gateway_id,amount,currency\ncharge," + b"x" * 200_000 + b",1,USD\n", "no CSV file"),
        (HEADER.encode() + b"charge,a\0b,,1,USD,0\n", ":2: a value holds a NUL"),
        (HEADER.encode() + b"charge,x,,9" + b"9" * 5000 + b",USD,0\n", ":2: amount is no whole"),
        (HEADER.encode() + b"charge\n", ":2: has more or fewer values"),
        (HEADER.encode() + b"charge,x,,1,USD,0,1\n", ":2: has more or fewer values"),
        (HEADER.encode() + b'charge,"x"y,,1,USD,0\n', "no CSV file in UTF-8, after line"),
        (b"kind,kind,gateway_id,amount,currency\n", "several columns kind"),
        (b"", "no column amount, currency, gateway_id, kind"),
    ],
)
def test_garbage_is_named_as_such(tmp_path: Path, content: bytes, complaint: str) -> None:
    report = tmp_path / "report.csv"
    report.write_bytes(content)
    with pytest.raises(ReportError, match=complaint):
        list(read_report(report))


def test_garbage_and_a_database_without_the_schema_end_in_words(
    postgres: TestPostgres, database_url: str, tmp_path: Path
) -> None:
    report = tmp_path / "report.csv"
    report.write_bytes(random.Random(20270301).randbytes(5000))  # noqa: S311 - garbage
    World(database_url).close()
    refused = run(database_url, report)
    assert (refused.returncode, json.loads(refused.stdout)["error"]["code"]) == (
        2,
        "report_unreadable",
    )
    report.write_text(HEADER)
    with postgres.database() as name:
        empty = postgres.database_url(name)
        for found in (run(empty, report), doctor(empty)):
            assert "run billing migrate" in found.stderr
            assert "Traceback" not in found.stderr
            assert found.returncode in {2, 4}


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("kind,amount\n", "no column currency, gateway_id"),
        (HEADER + "fee,x,,1,USD,0\n", ":2: kind is neither charge nor refund"),
        (HEADER + "charge,x,,-1,USD,0\n", ":2: amount is no whole number"),
    ],
)
def test_bad_lines_are_named(tmp_path: Path, text: str, complaint: str) -> None:
    report = tmp_path / "report.csv"
    report.write_text(text)
    with pytest.raises(ReportError, match=complaint):
        list(read_report(report))


def test_other_columns_and_a_byte_order_mark_do_no_harm(tmp_path: Path) -> None:
    report = tmp_path / "report.csv"
    report.write_text("\ufeff" + HEADER + "refund,ref_1,our-key,98,USD,1\n", encoding="utf-8")
    assert list(read_report(report)) == [SettledItem("REFUND", "ref_1", "our-key", 98, "USD")]


@pytest.mark.parametrize(
    ("given", "meant"),
    [
        ("2027-03-01", "2027-03-01T00:00:00+00:00"),
        ("2027-03-01T02:00:00", "2027-03-01T02:00:00+00:00"),
        ("2027-03-01T02:00:00Z", "2027-03-01T02:00:00+00:00"),
        ("2027-03-01T02:00:00+05:00", "2027-02-28T21:00:00+00:00"),
    ],
)
def test_an_instant_with_an_offset_means_what_it_says(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, given: str, meant: str
) -> None:
    seen: list[object] = []

    def look(*arguments: object) -> NoReturn:
        seen.extend(each for each in arguments if isinstance(each, datetime))
        raise ReportError("seen enough")

    monkeypatch.setattr(settlement_report, "compare", look)
    monkeypatch.setattr(doctor_module, "examine", look)
    report = tmp_path / "report.csv"
    report.write_text(HEADER)
    runner = CliRunner(env={"BILLING_DATABASE_URL": "postgresql://postgres@127.0.0.1:1/none"})
    runner.invoke(
        app, ["reconcile", "--gateway-report", str(report), "--from", given, "--to", given]
    )
    runner.invoke(app, ["doctor", "--since", given])
    assert seen == [datetime.fromisoformat(meant)] * 3
