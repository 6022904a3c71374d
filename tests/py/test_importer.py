"""Importing CSV files: what is refused, where and why; and that a second run changes nothing."""

import csv
import time
from datetime import UTC, datetime
from pathlib import Path

import psycopg
import pytest

from billing_shell.import_files import ImportFiles, read_files
from billing_shell.import_problems import MOST_PROBLEMS, ImportErrorCode, ImportRefusedError
from billing_shell.importer import import_files, import_rows
from examples import generate

ACCOUNT = "simulated"
NOW = datetime(2027, 2, 27, 12, 0, tzinfo=UTC)

PLANS = """\
plan_code,name,interval_unit,interval_count,currency,amount_minor
PRO,Pro,MONTH,1,USD,4900
PRO,Pro,MONTH,1,JPY,7400
"""
CUSTOMERS = """\
customer_ref,currency,time_zone,email,payment_token,brand,last4,exp_month,exp_year
anna,USD,America/New_York,anna@example.com,tok_ok.anna,visa,4242,12,2030
bert,JPY,Asia/Tokyo,,,,,,
"""
SUBSCRIPTIONS = """\
customer_ref,resource_ref,plan_code,quantity,anchor_at,current_period_start
anna,shop,PRO,3,2026-10-31T09:30:00-04:00,2027-01-31T14:30:00Z
bert,,PRO,1,2027-02-10T08:00:00+09:00,2027-02-09T23:00:00Z
"""


class Folder:
    """Three files, each of which a test may spoil."""

    def __init__(self, directory: Path) -> None:
        self.files = ImportFiles.in_directory(directory)
        self.files.plans.write_text(PLANS)
        self.files.customers.write_text(CUSTOMERS)
        self.files.subscriptions.write_text(SUBSCRIPTIONS)

    def path(self, name: str) -> Path:
        return {
            "plans": self.files.plans,
            "customers": self.files.customers,
            "subscriptions": self.files.subscriptions,
        }[name]


@pytest.fixture
def folder(tmp_path: Path) -> Folder:
    return Folder(tmp_path)


@pytest.fixture
def shop_url(database_url: str) -> str:
    """A test database at NOW, with a gateway account."""
    with psycopg.connect(database_url, autocommit=True) as connection:
        connection.execute("SELECT billing_ops.mark_test_database()")
        connection.execute("SELECT billing_ops.set_clock(%s)", (NOW,))
        connection.execute(
            "SELECT billing_ops.create_gateway_account(p_code => %s, p_adapter => 'simulated')",
            (ACCOUNT,),
        )
    return database_url


def rows(url: str, query: str) -> list[tuple[object, ...]]:
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute("SET timezone = 'UTC'")
        return connection.execute(query.encode()).fetchall()


def counts(url: str) -> tuple[object, ...]:
    """How much there is of everything that an import makes."""
    (found,) = rows(
        url,
        """
        SELECT
            (SELECT count(*) FROM billing.plan), (SELECT count(*) FROM billing.price),
            (SELECT count(*) FROM billing.customer), (SELECT count(*) FROM billing.payment_method),
            (SELECT count(*) FROM billing.subscription), (SELECT count(*) FROM billing.invoice),
            (SELECT count(*) FROM billing.outbox_event)
        """,
    )
    return found


def test_what_the_files_say_is_what_the_engine_has(folder: Folder, shop_url: str) -> None:
    report = import_files(shop_url, folder.files, gateway_account=ACCOUNT)

    assert (report.plans, report.prices, report.customers) == (1, 2, 2)
    assert (report.payment_methods, report.subscriptions) == (1, 2)
    # New York's 31st of a month: the period of January ends on 28 February, 9:30 local time.
    assert rows(
        shop_url,
        """
        SELECT c.external_ref, s.resource_ref, s.plan_code, s.quantity, s.status, s.unit_amount,
            s.currency, s.time_zone, s.current_period_start, s.next_renewal_at
        FROM billing_api.subscription AS s
        INNER JOIN billing_api.customer AS c ON c.customer_id = s.customer_id
        ORDER BY c.external_ref
        """,
    ) == [
        (
            *("anna", "shop", "PRO", 3, "ACTIVE", 4900, "USD", "America/New_York"),
            datetime(2027, 1, 31, 14, 30, tzinfo=UTC),
            datetime(2027, 2, 28, 14, 30, tzinfo=UTC),
        ),
        (
            *("bert", "default", "PRO", 1, "ACTIVE", 7400, "JPY", "Asia/Tokyo"),
            datetime(2027, 2, 9, 23, 0, tzinfo=UTC),
            datetime(2027, 3, 9, 23, 0, tzinfo=UTC),
        ),
    ]
    assert rows(shop_url, "SELECT token, brand, last4 FROM billing.payment_method") == [
        ("tok_ok.anna", "visa", "4242")
    ]
    assert rows(shop_url, "SELECT sum(total)::integer FROM billing.invoice") == [(0,)]


def test_a_second_run_changes_nothing(folder: Folder, shop_url: str) -> None:
    import_files(shop_url, folder.files, gateway_account=ACCOUNT)
    before = counts(shop_url)

    report = import_files(shop_url, folder.files, gateway_account=ACCOUNT)

    assert counts(shop_url) == before
    assert report.subscriptions == 2


def test_an_import_that_stopped_goes_on_where_it_was(shop_url: str) -> None:
    everything = read_files(ImportFiles.in_directory(Path(generate.__file__).parent)).first(400)
    told: list[tuple[int, int]] = []

    def stop_on_the_way(done: int, total: int) -> None:
        told.append((done, total))
        if len(told) == 2:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        import_rows(
            shop_url,
            everything,
            gateway_account=ACCOUNT,
            connections=1,
            progress=stop_on_the_way,
        )
    partly = counts(shop_url)[4]
    report = import_rows(shop_url, everything, gateway_account=ACCOUNT)

    assert isinstance(partly, int)
    assert 0 < partly < 400
    assert told[0][1] == len(everything.customers) + 400
    assert counts(shop_url)[4] == report.subscriptions == 400


def test_the_examples_are_in_within_a_quarter_of_a_minute(shop_url: str) -> None:
    files = ImportFiles.in_directory(Path(generate.__file__).parent)
    began = time.process_time()

    report = import_files(shop_url, files, gateway_account=ACCOUNT)

    assert report.subscriptions == 5100
    # The database's share depends on the machine; ours does not.
    assert time.process_time() - began < 15


def test_the_examples_are_what_their_script_writes(tmp_path: Path) -> None:
    generate.generate(tmp_path)

    shipped = Path(generate.__file__).parent
    for name in ("plans.csv", "customers.csv", "subscriptions.csv"):
        assert (tmp_path / name).read_bytes() == (shipped / name).read_bytes(), name


WRONG = [
    ("plans", 2, "amount_minor", "value_malformed", "4900", "49.00"),
    ("plans", 2, "amount_minor", "value_malformed", "4900", "-1"),
    ("plans", 2, "amount_minor", "value_malformed", "4900", "1000000000000001"),
    ("plans", 2, "interval_unit", "value_malformed", "MONTH", "FORTNIGHT"),
    ("plans", 2, "currency", "value_malformed", "USD", "usd"),
    ("plans", 2, "plan_code", "value_malformed", "PRO", "PRO PLAN"),
    ("plans", 3, "currency", "duplicate", "JPY", "USD"),
    ("plans", 3, "interval_count", "contradiction", "1,JPY", "2,JPY"),
    ("customers", 2, "customer_ref", "value_missing", "anna,USD", " ,USD"),
    ("customers", 2, "last4", "value_malformed", "4242", "42x2"),
    ("customers", 2, "exp_month", "value_malformed", ",12,", ",13,"),
    ("customers", 2, "exp_year", "value_missing", "2030", ""),
    ("customers", 2, "payment_token", "value_missing", "tok_ok.anna", ""),
    ("customers", 3, "customer_ref", "duplicate", "bert", "anna"),
    ("subscriptions", 2, "quantity", "value_malformed", ",3,", ",0,"),
    ("subscriptions", 2, "anchor_at", "value_malformed", "09:30:00-04:00", "09:30:00"),
    ("subscriptions", 2, "current_period_start", "value_malformed", "14:30:00Z", "14:30:00.5Z"),
    ("subscriptions", 2, "customer_ref", "unknown_reference", "anna,", "zoe,"),
    ("subscriptions", 2, "plan_code", "unknown_reference", ",PRO,3", ",BASIC,3"),
    ("subscriptions", 3, "resource_ref", "duplicate", "bert,,", "anna,shop,"),
    ("subscriptions", 2, "", "row_malformed", ",PRO,3,", ",PRO,"),
    ("subscriptions", 1, "", "header_wrong", "quantity", "seats"),
    ("subscriptions", 1, "", "header_wrong", "quantity", "plan_code"),
]


@pytest.mark.parametrize(("name", "line", "column", "code", "right", "wrong"), WRONG)
def test_an_error_names_file_line_column_and_code(
    folder: Folder, name: str, line: int, column: str, code: str, right: str, wrong: str
) -> None:
    path = folder.path(name)
    text = path.read_text()
    assert right in text
    place = text.splitlines(keepends=True)
    place[line - 1] = place[line - 1].replace(right, wrong, 1)
    path.write_text("".join(place))

    with pytest.raises(ImportRefusedError) as refused:
        read_files(folder.files)

    found = [(p.file, p.line, p.column, p.code) for p in refused.value.problems]
    assert (path, line, column, ImportErrorCode(code)) in found
    assert f"{path}:{line}:" in str(refused.value)


def test_a_price_in_the_customers_currency_must_be_there(folder: Folder) -> None:
    folder.files.plans.write_text(PLANS.replace("PRO,Pro,MONTH,1,JPY,7400\n", ""))

    with pytest.raises(ImportRefusedError) as refused:
        read_files(folder.files)

    (problem,) = refused.value.problems
    assert (problem.line, problem.column) == (3, "plan_code")
    assert problem.code is ImportErrorCode.UNKNOWN_REFERENCE


def test_all_errors_of_all_files_are_told_at_once(folder: Folder) -> None:
    folder.files.plans.write_text(PLANS.replace("4900", "x"))
    folder.files.customers.write_text(CUSTOMERS.replace("USD", "dollars"))
    folder.files.subscriptions.unlink()

    with pytest.raises(ImportRefusedError) as refused:
        read_files(folder.files)

    assert [p.file.name for p in refused.value.problems] == [
        "plans.csv",
        "customers.csv",
        "subscriptions.csv",
    ]


def test_errors_beyond_the_fiftieth_are_counted(folder: Folder) -> None:
    bad = "".join(f"c{number},dollars,UTC\n" for number in range(MOST_PROBLEMS + 7))
    folder.files.customers.write_text(f"customer_ref,currency,time_zone\n{bad}")

    with pytest.raises(ImportRefusedError) as refused:
        read_files(folder.files)

    assert len(refused.value.problems) == MOST_PROBLEMS
    assert refused.value.count == MOST_PROBLEMS + 7
    assert "and 7 more" in str(refused.value)


@pytest.mark.parametrize(
    ("content", "code"),
    [
        (b"\xff\xfe", ImportErrorCode.FILE_UNREADABLE),
        (b"", ImportErrorCode.HEADER_WRONG),
        (b"customer_ref,currency,time_zone\na,\x00,b\n", ImportErrorCode.VALUE_MALFORMED),
        (b'customer_ref,currency,time_zone\n"a"b,USD,UTC\n', ImportErrorCode.ROW_MALFORMED),
    ],
)
def test_a_file_that_is_no_csv_is_an_error(
    folder: Folder, content: bytes, code: ImportErrorCode
) -> None:
    folder.files.customers.write_bytes(content)

    with pytest.raises(ImportRefusedError) as refused:
        read_files(folder.files)

    assert code in {problem.code for problem in refused.value.problems}


def test_a_byte_order_mark_and_quotes_are_understood(folder: Folder) -> None:
    text = CUSTOMERS.replace("anna,USD", '"anna",USD')
    folder.files.customers.write_bytes(b"\xef\xbb\xbf" + text.encode())

    assert read_files(folder.files).customers[0].customer_ref == "anna"


def test_a_wrong_file_means_that_nothing_is_sent(folder: Folder, shop_url: str) -> None:
    folder.files.subscriptions.write_text(SUBSCRIPTIONS.replace(",3,", ",0,"))
    before = counts(shop_url)

    with pytest.raises(ImportRefusedError):
        import_files(shop_url, folder.files, gateway_account=ACCOUNT)

    assert counts(shop_url) == before


REFUSED = [
    ("customers", 2, "SB103", "America/New_York", "America/Gotham"),
    ("customers", 2, "SB105", "tok_ok.anna", "4242 4242 4242 4242"),
    ("subscriptions", 2, "SB101", "2027-01-31T14:30:00Z", "2027-01-30T14:30:00Z"),
    ("subscriptions", 2, "SB101", "2027-01-31T14:30:00Z", "2026-12-31T14:30:00Z"),
]


@pytest.mark.parametrize(("name", "line", "sqlstate", "right", "wrong"), REFUSED)
def test_what_the_engine_refuses_is_told_by_line_and_sqlstate(
    folder: Folder, shop_url: str, name: str, line: int, sqlstate: str, right: str, wrong: str
) -> None:
    path = folder.path(name)
    path.write_text(path.read_text().replace(right, wrong))

    with pytest.raises(ImportRefusedError) as refused:
        import_files(shop_url, folder.files, gateway_account=ACCOUNT)

    first = refused.value.problems[0]
    assert (first.file, first.line, first.sqlstate) == (path, line, sqlstate)
    assert first.code is ImportErrorCode.REFUSED
    assert "4242 4242" not in str(refused.value)
    assert counts(shop_url)[2:] == (0, 0, 0, 0, 0)


def test_an_unknown_currency_is_refused_with_the_line_of_its_price(
    folder: Folder, shop_url: str
) -> None:
    folder.files.plans.write_text(PLANS + "PRO,Pro,MONTH,1,XXX,100\n")

    with pytest.raises(ImportRefusedError) as refused:
        import_files(shop_url, folder.files, gateway_account=ACCOUNT)

    (problem,) = refused.value.problems
    assert (problem.line, problem.sqlstate) == (4, "SB102")


def test_a_price_that_differs_from_the_databases_is_a_contradiction(
    folder: Folder, shop_url: str
) -> None:
    import_files(shop_url, folder.files, gateway_account=ACCOUNT)
    before = counts(shop_url)
    folder.files.plans.write_text(PLANS.replace("4900", "5900"))

    with pytest.raises(ImportRefusedError) as refused:
        import_files(shop_url, folder.files, gateway_account=ACCOUNT)

    (problem,) = refused.value.problems
    assert (problem.line, problem.column) == (2, "amount_minor")
    assert problem.code is ImportErrorCode.CONTRADICTION
    assert counts(shop_url) == before


def test_a_row_that_changed_since_it_was_imported_is_refused(folder: Folder, shop_url: str) -> None:
    import_files(shop_url, folder.files, gateway_account=ACCOUNT)
    folder.files.subscriptions.write_text(SUBSCRIPTIONS.replace(",3,", ",4,"))

    with pytest.raises(ImportRefusedError) as refused:
        import_files(shop_url, folder.files, gateway_account=ACCOUNT)

    assert [(p.line, p.sqlstate) for p in refused.value.problems] == [(2, "SB305")]


def test_other_groups_stay_in_when_one_is_refused(folder: Folder, shop_url: str) -> None:
    with folder.files.customers.open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["customer_ref", "currency", "time_zone"])
        writer.writerows([f"customer {n}", "USD", "UTC"] for n in range(250))
        writer.writerow(["somebody", "USD", "Mars/Olympus"])
    folder.files.subscriptions.write_text(SUBSCRIPTIONS.partition("\n")[0] + "\n")

    with pytest.raises(ImportRefusedError) as refused:
        import_files(shop_url, folder.files, gateway_account=ACCOUNT, connections=1)

    assert [(p.line, p.sqlstate) for p in refused.value.problems] == [(252, "SB103")]
    assert counts(shop_url)[2] == 200


def test_long_names_make_keys_that_are_taken(folder: Folder, shop_url: str) -> None:
    long = "x" * 250
    for path in (folder.files.customers, folder.files.subscriptions):
        path.write_text(path.read_text().replace("anna,", f"{long},", 1))

    import_files(shop_url, folder.files, gateway_account=ACCOUNT)
    before = counts(shop_url)
    import_files(shop_url, folder.files, gateway_account=ACCOUNT)

    assert counts(shop_url) == before
