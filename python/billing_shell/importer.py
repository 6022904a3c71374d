"""Imports a catalogue, customers and running subscriptions through the engine's own functions.

Safe to repeat and to resume: every call carries an idempotency key made from the names in the files
(`import/customer/<customer_ref>` and so on), so what is there already is answered again instead of
made again. Customers go in groups, each group with its payment methods and subscriptions in one
transaction, several groups at a time.
"""

import contextlib
import hashlib
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any

import psycopg

from billing_shell.import_files import (
    CustomerRow,
    ImportFiles,
    ImportRows,
    PriceRow,
    SubscriptionRow,
    read_files,
)
from billing_shell.import_problems import (
    ImportErrorCode,
    ImportProblem,
    ImportRefusedError,
    Problems,
)

__all__ = [
    "ImportErrorCode",
    "ImportFiles",
    "ImportProblem",
    "ImportRefusedError",
    "ImportReport",
    "import_files",
    "import_rows",
]

Progress = Callable[[int, int], None]
"""Called with how many rows are done, of how many; from several threads, one at a time."""

_GROUP = 100
_LONGEST_KEY = 255
_LETTERS = str.maketrans("0123456789", "ghijklmnop")

_KNOWN_PRICES = """
    SELECT DISTINCT ON (plan_code, currency)
        plan_code, currency, amount, interval_unit, interval_count, trial_days
    FROM billing_api.price
    WHERE effective_from <= billing.now()
    ORDER BY plan_code, currency, effective_from DESC
"""
_CREATE_PLAN = """
    SELECT plan_id
    FROM billing_api.create_plan(
        p_code => %(plan_code)s, p_name => %(name)s, p_amount => %(amount_minor)s,
        p_currency => %(currency)s, p_interval_unit => %(interval_unit)s,
        p_interval_count => %(interval_count)s, p_trial_days => %(trial_days)s,
        p_idempotency_key => %(key)s
    )
"""
_ADD_PRICE = """
    SELECT price_id
    FROM billing_api.add_price(
        p_plan_code => %(plan_code)s, p_amount => %(amount_minor)s, p_currency => %(currency)s,
        p_effective_from => billing.now()
    )
"""
_CREATE_CUSTOMER = """
    SELECT customer_id
    FROM billing_api.create_customer(
        p_external_ref => %(customer_ref)s, p_currency => %(currency)s,
        p_time_zone => %(time_zone)s, p_email => %(email)s, p_idempotency_key => %(key)s
    )
"""
_ADD_PAYMENT_METHOD = """
    SELECT payment_method_id
    FROM billing_api.add_payment_method(
        p_customer_id => %(customer_id)s, p_gateway_account => %(gateway_account)s,
        p_token => %(payment_token)s, p_brand => %(brand)s, p_last4 => %(last4)s,
        p_exp_month => %(exp_month)s, p_exp_year => %(exp_year)s,
        p_fingerprint => %(fingerprint)s, p_idempotency_key => %(key)s
    )
"""
_IMPORT_SUBSCRIPTION = """
    SELECT subscription_id
    FROM billing_api.import_subscription(
        p_customer_id => %(customer_id)s, p_plan_code => %(plan_code)s,
        p_current_period_start => %(current_period_start)s, p_idempotency_key => %(key)s,
        p_resource_ref => %(resource_ref)s, p_quantity => %(quantity)s,
        p_anchor_at => %(anchor_at)s, p_dunning_policy => %(dunning_policy)s,
        p_auto_renew => %(auto_renew)s, p_term_periods => %(term_periods)s
    )
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class ImportReport:
    """What an import brought in, whether now or by an earlier run.

    Attributes:
        seconds: how long it took.
    """

    plans: int
    prices: int
    customers: int
    payment_methods: int
    subscriptions: int
    seconds: float


def import_files(
    database_url: str,
    files: ImportFiles,
    *,
    gateway_account: str,
    connections: int = 2,
    progress: Progress | None = None,
) -> ImportReport:
    """Check the files, then import them; see `import_rows`.

    Raises:
        ImportRefusedError: the files are wrong, and nothing was sent; or the engine refused rows.
        psycopg.Error: the database cannot be reached, or broke on the way. Run it again.
    """
    rows = read_files(files)
    return import_rows(
        database_url,
        rows,
        gateway_account=gateway_account,
        connections=connections,
        progress=progress,
    )


def import_rows(
    database_url: str,
    rows: ImportRows,
    *,
    gateway_account: str,
    connections: int = 2,
    progress: Progress | None = None,
) -> ImportReport:
    """Import what was read.

    Args:
        database_url: as a member of billing_app, or more.
        rows: from `read_files`.
        gateway_account: where the payment tokens are kept.
        connections: how many groups of customers go in at a time.
        progress: told after every group.

    Raises:
        ImportRefusedError: the engine refused rows. The group of a refused row is left out as a
            whole; other groups may be in. Correct the files and run again: what is in stays.
        psycopg.Error: the database cannot be reached, or broke on the way. Run it again.
    """
    started = time.monotonic()
    with psycopg.connect(database_url, application_name="billing import") as connection:
        _import_prices(connection, rows)
    _Groups(database_url, rows, gateway_account, progress).run(connections)
    return ImportReport(
        plans=len({price.plan_code for price in rows.prices}),
        prices=len(rows.prices),
        customers=len(rows.customers),
        payment_methods=sum(c.payment_token is not None for c in rows.customers),
        subscriptions=len(rows.subscriptions),
        seconds=time.monotonic() - started,
    )


def _import_prices(connection: psycopg.Connection[Any], rows: ImportRows) -> None:
    """Prices are immutable: those that are there must say the same, the others are added."""
    problems = Problems()
    known = {
        (plan_code, currency): tuple(terms)
        for plan_code, currency, *terms in connection.execute(_KNOWN_PRICES)
    }
    plans = {plan_code for plan_code, _ in known}
    for price in rows.prices:
        terms = (price.amount_minor, price.interval_unit, price.interval_count, price.trial_days)
        if known.get((price.plan_code, price.currency), terms) != terms:
            message = f"the database has another price for {price.plan_code} in {price.currency}"
            problems.add(
                ImportProblem(
                    rows.files.plans,
                    price.line,
                    "amount_minor",
                    ImportErrorCode.CONTRADICTION,
                    message,
                )
            )
        elif (price.plan_code, price.currency) not in known:
            try:
                with connection.transaction():
                    _send_price(connection, price, is_new=price.plan_code not in plans)
            except psycopg.Error as error:
                problems.add(_refusal(rows.files.plans, price.line, error))
            plans.add(price.plan_code)
    problems.refuse()


def _send_price(connection: psycopg.Connection[Any], price: PriceRow, *, is_new: bool) -> None:
    arguments = {
        "plan_code": price.plan_code,
        "name": price.name,
        "amount_minor": price.amount_minor,
        "currency": price.currency,
        "interval_unit": price.interval_unit,
        "interval_count": price.interval_count,
        "trial_days": price.trial_days,
        "key": _key("plan", price.plan_code),
    }
    connection.execute(_CREATE_PLAN if is_new else _ADD_PRICE, arguments)


@dataclass(frozen=True, slots=True)
class _Group:
    """Customers that go in together, and what they have."""

    customers: tuple[CustomerRow, ...]
    subscriptions: tuple[SubscriptionRow, ...]

    @property
    def size(self) -> int:
        """Rows."""
        return len(self.customers) + len(self.subscriptions)


class _Groups:
    """Sends groups over several connections."""

    def __init__(
        self, database_url: str, rows: ImportRows, gateway_account: str, progress: Progress | None
    ) -> None:
        self._database_url = database_url
        self._rows = rows
        self._gateway_account = gateway_account
        self._progress = progress
        self._problems = Problems()
        self._lock = threading.Lock()
        self._groups = _grouped(rows)
        self._stop = threading.Event()
        self._done = 0
        self._total = len(rows.customers) + len(rows.subscriptions)

    def run(self, connections: int) -> None:
        """Send all; stop at the first group that is refused."""
        with ThreadPoolExecutor(connections, thread_name_prefix="import") as pool:
            for sender in [pool.submit(self._send_groups) for _ in range(connections)]:
                sender.result()
        self._problems.refuse()

    def _send_groups(self) -> None:
        try:
            with psycopg.connect(
                self._database_url, autocommit=True, application_name="billing import"
            ) as connection:
                while not self._stop.is_set() and (group := self._next()) is not None:
                    self._send(connection, group)
        except BaseException:
            self._stop.set()
            raise

    def _next(self) -> _Group | None:
        with self._lock:
            return next(self._groups, None)

    def _send(self, connection: psycopg.Connection[Any], group: _Group) -> None:
        try:
            with connection.pipeline(), connection.transaction():
                self._send_at_once(connection, group)
        except psycopg.Error as error:
            if connection.closed or not _is_refusal(error):
                raise
            self._stop.set()
            self._find_refused(connection, group)
            return
        with self._lock:
            self._done += group.size
            if self._progress is not None:
                self._progress(self._done, self._total)

    def _send_at_once(self, connection: psycopg.Connection[Any], group: _Group) -> None:
        """Send a group without waiting for single answers."""
        answers = [
            (row, _execute(connection, _CREATE_CUSTOMER, _customer(row))) for row in group.customers
        ]
        ids: dict[str, int] = {row.customer_ref: _id(answer) for row, answer in answers}
        sent = [
            _execute(connection, _ADD_PAYMENT_METHOD, self._method(row, ids[row.customer_ref]))
            for row in group.customers
            if row.payment_token is not None
        ]
        sent += [
            _execute(connection, _IMPORT_SUBSCRIPTION, _subscription(row, ids[row.customer_ref]))
            for row in group.subscriptions
        ]
        for answer in sent:
            _id(answer)

    def _find_refused(self, connection: psycopg.Connection[Any], group: _Group) -> None:
        """Send a refused group row by row, note every row that is refused, and take all back."""
        files = self._rows.files
        ids: dict[str, int] = {}
        with connection.transaction(force_rollback=True):
            for row in group.customers:
                with self._noting(connection, files.customers, row.line):
                    ids[row.customer_ref] = _id(
                        _execute(connection, _CREATE_CUSTOMER, _customer(row))
                    )
                if row.payment_token is not None and row.customer_ref in ids:
                    with self._noting(connection, files.customers, row.line):
                        method = self._method(row, ids[row.customer_ref])
                        _id(_execute(connection, _ADD_PAYMENT_METHOD, method))
            for subscription in group.subscriptions:
                customer_id = ids.get(subscription.customer_ref)
                if customer_id is not None:
                    with self._noting(connection, files.subscriptions, subscription.line):
                        arguments = _subscription(subscription, customer_id)
                        _id(_execute(connection, _IMPORT_SUBSCRIPTION, arguments))

    @contextlib.contextmanager
    def _noting(self, connection: psycopg.Connection[Any], file: Path, line: int) -> Iterator[None]:
        """Put a savepoint around one row; a refusal is noted and goes no further."""
        try:
            with connection.transaction():
                yield
        except psycopg.Error as error:
            problem = _refusal(file, line, error)
            with self._lock:
                self._problems.add(problem)

    def _method(self, row: CustomerRow, customer_id: int) -> dict[str, object]:
        assert row.payment_token is not None  # noqa: S101  the caller has looked
        return {
            "customer_id": customer_id,
            "gateway_account": self._gateway_account,
            "payment_token": row.payment_token,
            "brand": row.brand,
            "last4": row.last4,
            "exp_month": row.exp_month,
            "exp_year": row.exp_year,
            "fingerprint": row.fingerprint,
            "key": _key("payment-method", row.customer_ref, _digest(row.payment_token)),
        }


def _grouped(rows: ImportRows) -> Iterator[_Group]:
    subscriptions: dict[str, list[SubscriptionRow]] = {}
    for row in rows.subscriptions:
        subscriptions.setdefault(row.customer_ref, []).append(row)
    customers = iter(rows.customers)
    while some := tuple(islice(customers, _GROUP)):
        theirs: Sequence[SubscriptionRow] = [
            row for customer in some for row in subscriptions.get(customer.customer_ref, ())
        ]
        yield _Group(some, tuple(theirs))


def _customer(row: CustomerRow) -> dict[str, object]:
    return {
        "customer_ref": row.customer_ref,
        "currency": row.currency,
        "time_zone": row.time_zone,
        "email": row.email,
        "key": _key("customer", row.customer_ref),
    }


def _subscription(row: SubscriptionRow, customer_id: int) -> dict[str, object]:
    return {
        "customer_id": customer_id,
        "plan_code": row.plan_code,
        "current_period_start": row.current_period_start,
        "key": _key("subscription", row.resource_ref or "default"),
        "resource_ref": row.resource_ref,
        "quantity": row.quantity,
        "anchor_at": row.anchor_at,
        "dunning_policy": row.dunning_policy,
        "auto_renew": row.auto_renew,
        "term_periods": row.term_periods,
    }


def _key(*names: str) -> str:
    """Return the idempotency key of a row: its names, or their hash where they are long."""
    key = "/".join(("import", *names))
    if len(key) <= _LONGEST_KEY:
        return key
    return f"import/{names[0]}/{_digest(key)}"


def _digest(text: str) -> str:
    """Return a hash in letters: a long enough run of digits may pass for a card number."""
    return hashlib.sha256(text.encode()).hexdigest().translate(_LETTERS)


def _execute(
    connection: psycopg.Connection[Any], statement: str, arguments: dict[str, object]
) -> psycopg.Cursor[Any]:
    return connection.execute(statement.encode(), arguments, prepare=True)


def _id(answer: psycopg.Cursor[Any]) -> int:
    (made,) = answer.fetchone() or (0,)
    return int(made)


def _is_refusal(error: psycopg.Error) -> bool:
    """Tell what the engine says of a row from what befell the connection or the server."""
    return error.sqlstate is not None and error.sqlstate.startswith(("SB", "22", "23"))


def _refusal(file: Path, line: int, error: psycopg.Error) -> ImportProblem:
    """Make a problem of a refusal; raise anything else again."""
    if not _is_refusal(error):
        raise error
    return ImportProblem(
        file,
        line,
        "",
        ImportErrorCode.REFUSED,
        error.diag.message_primary or str(error),
        error.sqlstate or "",
    )
