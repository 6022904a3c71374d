"""Names of processes: what the database takes of them, on hosts of any name."""

import os
import random
import secrets
import socket

import psycopg
import pytest

from billing_shell.process_names import is_fit, made_up_name

_IS_REFUSED = "SELECT billing.looks_like_card_number(%s)"
# With process 26315 and the chance below each of them would be told apart from no card number.
_CHANCE = "194024"
_HOSTS = ("ip-10-1-123-61", "4111111111111111", "job-4111-1111-1111-1111", "a_4111111111111111")


@pytest.mark.parametrize("host", _HOSTS)
def test_a_name_that_was_made_up_is_taken(
    database_url: str, monkeypatch: pytest.MonkeyPatch, host: str
) -> None:
    with psycopg.connect(database_url) as connection:
        plain = connection.execute(_IS_REFUSED, (f"{host}-26315-{_CHANCE}",)).fetchone()
        assert plain == (True,)
        monkeypatch.setattr(socket, "gethostname", lambda: host)
        monkeypatch.setattr(os, "getpid", lambda: 26315)
        monkeypatch.setattr(secrets, "token_hex", lambda _: _CHANCE)
        name = made_up_name()
        assert connection.execute(_IS_REFUSED, (name,)).fetchone() == (False,)
        assert is_fit(name)


def test_no_name_of_any_host_is_refused(database_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    chance = random.Random(20270301)  # noqa: S311 - names
    names = []
    for _ in range(3000):
        host = "-".join(["ip", *(str(chance.randrange(256)) for _ in range(4))])
        monkeypatch.setattr(socket, "gethostname", lambda host=host: host)
        names.append(made_up_name())
    refused = "SELECT count(*) FROM unnest(%s::text[]) AS n WHERE billing.looks_like_card_number(n)"
    with psycopg.connect(database_url) as connection:
        assert connection.execute(refused, (names,)).fetchone() == (0,)
    assert all(map(is_fit, names))
    assert len(set(names)) == len(names)


@pytest.mark.parametrize(
    "name", ["worker-1", "550e8400-e29b-41d4-a716-446655440000", "pod-7d9c5b6f4-x2x8k", "vm-4711"]
)
def test_what_is_no_card_number_is_left_as_it_is(
    monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    monkeypatch.setattr(socket, "gethostname", lambda: name)
    monkeypatch.setattr(os, "getpid", lambda: 7)
    assert is_fit(name)
    assert made_up_name().startswith(f"{name}-7-")
