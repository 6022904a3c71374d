"""Settings: where the servers are; read from the environment once, checked before any start."""

import os
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path
from typing import Self, TypeVar
from urllib.parse import SplitResult, urlsplit

import psycopg.conninfo
from psycopg import ProgrammingError

DEFAULT_GATEWAY_ACCOUNT = "simulated"

_ACCOUNT_CODE = re.compile(r"[a-z0-9][a-z0-9_-]{0,62}")
_BROKER = re.compile(r"(?P<host>\[[0-9A-Fa-f:.]+\]|[A-Za-z0-9._-]+):(?P<port>[0-9]{1,5})")
_API_KEY = re.compile(r"[\x21-\x7e]{1,255}")
_SHORTEST_SECRET = 16
_HIGHEST_PORT = 65535
_SECRETS_OF = "BILLING_WEBHOOK_SECRETS_"

_Value = TypeVar("_Value")


class SettingsErrorCode(StrEnum):
    """What is wrong with a setting."""

    EMPTY = "empty"
    """Set, but to nothing. Unset it to mean "absent"."""
    BAD_SCHEME = "bad_scheme"
    """A URL of another kind than the setting takes."""
    BAD_ADDRESS = "bad_address"
    """Not an address: no host, no such port, unreadable."""
    BAD_VALUE = "bad_value"
    """Not one of the values, or not the form, that the setting takes."""


class SettingsError(ValueError):
    """A setting in the environment makes no sense.

    Its text never repeats a value that may hold a password or a secret.

    Attributes:
        variable: name of the environment variable.
        code: what is wrong with it.
    """

    def __init__(self, variable: str, code: SettingsErrorCode, explanation: str) -> None:
        super().__init__(f"{variable} {explanation}")
        self.variable = variable
        self.code = code


class LogFormat(StrEnum):
    """How log lines look."""

    CONSOLE = "console"
    JSON = "json"


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """Where the servers are and how to talk to them.

    None means that the variable is absent: a server without an address is started embedded, from
    the binaries in the Python environment, for as long as the command runs.

    Attributes:
        database_url: BILLING_DATABASE_URL, PostgreSQL 15 to 18 as a `postgresql://` URL with
            anything libpq takes. A direct connection, not through a transaction pooler.
        redis_url: BILLING_REDIS_URL, a server of the Redis protocol (Redis 6 or later, Valkey) as
            `redis://`, `rediss://` or `unix://`. Holds the throttle only.
        kafka_bootstrap: BILLING_KAFKA_BOOTSTRAP, brokers as `host:port[,host:port...]`.
        gateway_url: BILLING_GATEWAY_URL, base address of the payment gateway as `http://` or
            `https://`, without a slash at the end. Absent: the simulated gateway.
        gateway_account: BILLING_GATEWAY_ACCOUNT, code of the merchant account to collect through,
            a row of `billing.gateway_account`. Default `simulated`.
        gateway_api_key: BILLING_GATEWAY_API_KEY, what the simulated gateway asks for as its bearer
            token. Absent: none is sent.
        stripe_api_key: BILLING_STRIPE_API_KEY, the secret or restricted key of the Stripe account
            that the adapter `stripe` collects through.
        data_dir: BILLING_DATA_DIR, absolute directory that embedded servers keep their data in.
        webhook_secrets: BILLING_WEBHOOK_SECRETS, comma separated, each at least 16 characters;
            several while they are in rotation, a signature by any of them counts. Absent: empty,
            and no webhook is accepted. They are those of `gateway_account`.
        account_webhook_secrets: BILLING_WEBHOOK_SECRETS_<ACCOUNT>, the same for another account,
            its code in capitals with _ for -. By the end of the variable's name.
        log_format: BILLING_LOG_FORMAT, `console` or `json`. Absent: console on a terminal, else
            json.
    """

    database_url: str | None = field(default=None, repr=False)
    redis_url: str | None = field(default=None, repr=False)
    kafka_bootstrap: str | None = None
    gateway_url: str | None = None
    gateway_account: str = DEFAULT_GATEWAY_ACCOUNT
    gateway_api_key: str | None = field(default=None, repr=False)
    stripe_api_key: str | None = field(default=None, repr=False)
    data_dir: Path | None = None
    webhook_secrets: tuple[str, ...] = field(default=(), repr=False)
    account_webhook_secrets: Mapping[str, tuple[str, ...]] = field(default_factory=dict, repr=False)
    log_format: LogFormat | None = None

    @classmethod
    def from_environment(cls, environ: Mapping[str, str] = os.environ) -> Self:
        """Read and check every setting.

        Args:
            environ: variables by name.

        Raises:
            SettingsError: the first setting that makes no sense.
        """
        account = _read(environ, "BILLING_GATEWAY_ACCOUNT", _account_code)
        secrets = _read(environ, "BILLING_WEBHOOK_SECRETS", _webhook_secrets)
        return cls(
            database_url=_read(environ, "BILLING_DATABASE_URL", _database_url),
            redis_url=_read(environ, "BILLING_REDIS_URL", _redis_url),
            kafka_bootstrap=_read(environ, "BILLING_KAFKA_BOOTSTRAP", _kafka_bootstrap),
            gateway_url=_read(environ, "BILLING_GATEWAY_URL", _gateway_url),
            gateway_account=DEFAULT_GATEWAY_ACCOUNT if account is None else account,
            gateway_api_key=_read(environ, "BILLING_GATEWAY_API_KEY", _api_key),
            stripe_api_key=_read(environ, "BILLING_STRIPE_API_KEY", _api_key),
            data_dir=_read(environ, "BILLING_DATA_DIR", _data_dir),
            webhook_secrets=() if secrets is None else secrets,
            account_webhook_secrets={
                variable.removeprefix(_SECRETS_OF): _read(environ, variable, _webhook_secrets) or ()
                for variable in environ
                if variable.startswith(_SECRETS_OF)
            },
            log_format=_read(environ, "BILLING_LOG_FORMAT", _log_format),
        )

    @property
    def api_keys(self) -> dict[str, str]:
        """The keys that adapters present to their gateways, by the adapter's name."""
        keys = {"simulated": self.gateway_api_key, "stripe": self.stripe_api_key}
        return {adapter: key for adapter, key in keys.items() if key is not None}

    def secrets_of(self, account: str) -> tuple[str, ...]:
        """The webhook secrets of a gateway account, by its code; empty where it has none."""
        name = account.upper().replace("-", "_")
        own = self.account_webhook_secrets.get(name, ())
        return own + self.webhook_secrets if account == self.gateway_account else own


def _read(
    environ: Mapping[str, str], variable: str, parse: Callable[[str, str], _Value]
) -> _Value | None:
    raw = environ.get(variable)
    if raw is None:
        return None
    value = raw.strip()
    if not value:
        raise SettingsError(
            variable, SettingsErrorCode.EMPTY, "is set but empty; unset it if it is not wanted"
        )
    return parse(variable, value)


def _split_url(variable: str, value: str, schemes: tuple[str, ...]) -> SplitResult:
    try:
        url = urlsplit(value)
        port = url.port
    except ValueError:
        # Without the cause: a password with a slash in it is quoted there as the port.
        raise SettingsError(
            variable, SettingsErrorCode.BAD_ADDRESS, "is no URL: its host or port cannot be read"
        ) from None
    if url.scheme not in schemes:
        wanted = " or ".join(f"{scheme}://" for scheme in schemes)
        raise SettingsError(variable, SettingsErrorCode.BAD_SCHEME, f"must start with {wanted}")
    if port == 0:
        raise SettingsError(variable, SettingsErrorCode.BAD_ADDRESS, "names port 0")
    return url


def _database_url(variable: str, value: str) -> str:
    if not value.startswith(("postgresql://", "postgres://")):
        raise SettingsError(
            variable, SettingsErrorCode.BAD_SCHEME, "must start with postgresql:// or postgres://"
        )
    try:
        # libpq reads it: several hosts, a socket in the query and all its options are valid.
        options = psycopg.conninfo.conninfo_to_dict(value)
    except ProgrammingError:
        options = {}
    ports = str(options.get("port", "")).split(",")
    if not options or any(port and not _is_port(port) for port in ports):
        # Without the cause: libpq repeats the URL, password and all.
        raise SettingsError(
            variable,
            SettingsErrorCode.BAD_ADDRESS,
            "is no URL that libpq can read; the form is postgresql://user:password@host:5432/name",
        ) from None
    return value


def _redis_url(variable: str, value: str) -> str:
    url = _split_url(variable, value, ("redis", "rediss", "unix"))
    if not (url.path if url.scheme == "unix" else url.hostname):
        raise SettingsError(
            variable,
            SettingsErrorCode.BAD_ADDRESS,
            "names no server; the form is redis://host:6379/0 or unix:///path/to/socket",
        )
    return value


def _kafka_bootstrap(variable: str, value: str) -> str:
    brokers = [broker.strip() for broker in value.split(",")]
    for broker in brokers:
        match = _BROKER.fullmatch(broker)
        if match is None or not _is_port(match["port"]):
            raise SettingsError(
                variable,
                SettingsErrorCode.BAD_SCHEME if "://" in broker else SettingsErrorCode.BAD_ADDRESS,
                f"holds {broker!r}; the form is host:9092[,host:9092...] without a scheme",
            )
    return ",".join(brokers)


def _gateway_url(variable: str, value: str) -> str:
    url = _split_url(variable, value, ("http", "https"))
    if not url.hostname:
        raise SettingsError(variable, SettingsErrorCode.BAD_ADDRESS, "names no host")
    if url.query or url.fragment or url.username or url.password:
        raise SettingsError(
            variable,
            SettingsErrorCode.BAD_VALUE,
            "is a base address: no query, fragment, user or password",
        )
    return value.rstrip("/")


def _account_code(variable: str, value: str) -> str:
    if _ACCOUNT_CODE.fullmatch(value) is None:
        raise SettingsError(
            variable,
            SettingsErrorCode.BAD_VALUE,
            "must be 1 to 63 lower-case letters, digits, - or _, the first a letter or digit",
        )
    return value


def _api_key(variable: str, value: str) -> str:
    if _API_KEY.fullmatch(value) is None:
        raise SettingsError(
            variable,
            SettingsErrorCode.BAD_VALUE,
            "must be 1 to 255 visible ASCII characters: it stands in an HTTP header",
        )
    return value


def _data_dir(variable: str, value: str) -> Path:
    try:
        directory = Path(value).expanduser().absolute()
        usable = directory.is_dir() or not directory.exists()
    except (OSError, RuntimeError, ValueError) as error:
        raise SettingsError(
            variable, SettingsErrorCode.BAD_VALUE, f"cannot be used as a directory: {error}"
        ) from error
    if not usable:
        raise SettingsError(
            variable, SettingsErrorCode.BAD_VALUE, f"is {directory}, which is no directory"
        )
    return directory


def _webhook_secrets(variable: str, value: str) -> tuple[str, ...]:
    secrets = tuple(secret.strip() for secret in value.split(","))
    if not all(secrets):
        raise SettingsError(
            variable, SettingsErrorCode.EMPTY, "holds an empty secret: a comma too many"
        )
    if any(len(secret) < _SHORTEST_SECRET for secret in secrets):
        raise SettingsError(
            variable,
            SettingsErrorCode.BAD_VALUE,
            f"holds a secret of fewer than {_SHORTEST_SECRET} characters",
        )
    return secrets


def _log_format(variable: str, value: str) -> LogFormat:
    try:
        return LogFormat(value)
    except ValueError as error:
        raise SettingsError(
            variable,
            SettingsErrorCode.BAD_VALUE,
            f"is {value!r}; it takes {' or '.join(LogFormat)}",
        ) from error


def _is_port(text: str) -> bool:
    return text.isascii() and text.isdigit() and 0 < int(text) <= _HIGHEST_PORT
