"""Settings read from the environment: what is absent, what is right, what makes no sense."""

import dataclasses
import traceback
from pathlib import Path

import pytest

from billing_shell.settings import LogFormat, Settings, SettingsError, SettingsErrorCode


def test_nothing_in_the_environment_means_everything_embedded() -> None:
    assert Settings.from_environment({}) == Settings(
        database_url=None,
        redis_url=None,
        kafka_bootstrap=None,
        gateway_url=None,
        gateway_account="simulated",
        data_dir=None,
        webhook_secrets=(),
        log_format=None,
    )


def test_every_variable_reaches_its_setting() -> None:
    settings = Settings.from_environment(
        {
            "BILLING_DATABASE_URL": "postgresql://billing:pw@db:5432/billing?connect_timeout=3",
            "BILLING_REDIS_URL": "rediss://:pw@redis:6380/1",
            "BILLING_KAFKA_BOOTSTRAP": "kafka-1:9092, [::1]:9093",
            "BILLING_GATEWAY_URL": "https://gateway.example/base/",
            "BILLING_GATEWAY_ACCOUNT": "eu-cards",
            "BILLING_GATEWAY_API_KEY": "gw_key_0001",
            "BILLING_STRIPE_API_KEY": "rk_live_0001",
            "BILLING_DATA_DIR": "/var/lib/billing",
            "BILLING_WEBHOOK_SECRETS": "the-new-secret-0001,the-old-secret-0000",
            "BILLING_LOG_FORMAT": "json",
            "SOMETHING_ELSE": "",
        }
    )
    assert settings == Settings(
        database_url="postgresql://billing:pw@db:5432/billing?connect_timeout=3",
        redis_url="rediss://:pw@redis:6380/1",
        kafka_bootstrap="kafka-1:9092,[::1]:9093",
        gateway_url="https://gateway.example/base",
        gateway_account="eu-cards",
        gateway_api_key="gw_key_0001",
        stripe_api_key="rk_live_0001",
        data_dir=Path("/var/lib/billing"),
        webhook_secrets=("the-new-secret-0001", "the-old-secret-0000"),
        log_format=LogFormat.JSON,
    )


@pytest.mark.parametrize(
    ("variable", "value"),
    [
        ("BILLING_DATABASE_URL", "postgresql:///billing?host=/run/postgresql"),
        (
            "BILLING_DATABASE_URL",
            "postgres://a:5432,b:5433/billing?target_session_attrs=read-write",
        ),
        ("BILLING_REDIS_URL", "unix:///run/redis.sock"),
        ("BILLING_REDIS_URL", " redis://127.0.0.1:6379 "),
        ("BILLING_GATEWAY_URL", "http://127.0.0.1:8099"),
    ],
)
def test_every_form_of_address_that_the_clients_take_is_taken(variable: str, value: str) -> None:
    settings = Settings.from_environment({variable: value})
    assert getattr(settings, variable.removeprefix("BILLING_").lower()) == value.strip()


@pytest.mark.parametrize(
    ("variable", "value", "code"),
    [
        ("BILLING_DATABASE_URL", "", SettingsErrorCode.EMPTY),
        ("BILLING_DATABASE_URL", "mysql://db/billing", SettingsErrorCode.BAD_SCHEME),
        ("BILLING_DATABASE_URL", "host=db dbname=billing", SettingsErrorCode.BAD_SCHEME),
        ("BILLING_DATABASE_URL", "postgresql://db:port/billing", SettingsErrorCode.BAD_ADDRESS),
        ("BILLING_DATABASE_URL", "postgresql://db:0/billing", SettingsErrorCode.BAD_ADDRESS),
        ("BILLING_DATABASE_URL", "postgresql://db:65536/billing", SettingsErrorCode.BAD_ADDRESS),
        ("BILLING_DATABASE_URL", "postgresql://db/x?no_such=1", SettingsErrorCode.BAD_ADDRESS),
        ("BILLING_REDIS_URL", "  ", SettingsErrorCode.EMPTY),
        ("BILLING_REDIS_URL", "redis:6379", SettingsErrorCode.BAD_ADDRESS),
        ("BILLING_REDIS_URL", "http://redis:6379", SettingsErrorCode.BAD_SCHEME),
        ("BILLING_REDIS_URL", "redis://host:99999", SettingsErrorCode.BAD_ADDRESS),
        ("BILLING_REDIS_URL", "redis://[::1", SettingsErrorCode.BAD_ADDRESS),
        ("BILLING_REDIS_URL", "unix://", SettingsErrorCode.BAD_ADDRESS),
        ("BILLING_KAFKA_BOOTSTRAP", "", SettingsErrorCode.EMPTY),
        ("BILLING_KAFKA_BOOTSTRAP", "kafka", SettingsErrorCode.BAD_ADDRESS),
        ("BILLING_KAFKA_BOOTSTRAP", "kafka:9092,", SettingsErrorCode.BAD_ADDRESS),
        ("BILLING_KAFKA_BOOTSTRAP", "kafka:0", SettingsErrorCode.BAD_ADDRESS),
        ("BILLING_KAFKA_BOOTSTRAP", "kafka://kafka:9092", SettingsErrorCode.BAD_SCHEME),
        ("BILLING_GATEWAY_URL", "", SettingsErrorCode.EMPTY),
        ("BILLING_GATEWAY_URL", "ftp://gateway", SettingsErrorCode.BAD_SCHEME),
        ("BILLING_GATEWAY_URL", "https:///v1", SettingsErrorCode.BAD_ADDRESS),
        ("BILLING_GATEWAY_URL", "https://gateway/v1?key=1", SettingsErrorCode.BAD_VALUE),
        ("BILLING_GATEWAY_URL", "https://user:pw@gateway", SettingsErrorCode.BAD_VALUE),
        ("BILLING_GATEWAY_ACCOUNT", "", SettingsErrorCode.EMPTY),
        ("BILLING_GATEWAY_ACCOUNT", "EU cards", SettingsErrorCode.BAD_VALUE),
        ("BILLING_GATEWAY_ACCOUNT", "a" * 64, SettingsErrorCode.BAD_VALUE),
        ("BILLING_DATA_DIR", "", SettingsErrorCode.EMPTY),
        ("BILLING_DATA_DIR", __file__, SettingsErrorCode.BAD_VALUE),
        ("BILLING_DATA_DIR", "~no-such-user-here/x", SettingsErrorCode.BAD_VALUE),
        ("BILLING_WEBHOOK_SECRETS", "", SettingsErrorCode.EMPTY),
        ("BILLING_WEBHOOK_SECRETS", "the-new-secret-0001,", SettingsErrorCode.EMPTY),
        ("BILLING_WEBHOOK_SECRETS", "short", SettingsErrorCode.BAD_VALUE),
        ("BILLING_LOG_FORMAT", "", SettingsErrorCode.EMPTY),
        ("BILLING_LOG_FORMAT", "xml", SettingsErrorCode.BAD_VALUE),
    ],
)
def test_nonsense_is_refused_and_names_its_variable(
    variable: str, value: str, code: SettingsErrorCode
) -> None:
    with pytest.raises(SettingsError) as caught:
        Settings.from_environment({variable: value})
    assert caught.value.code is code
    assert caught.value.variable == variable
    assert str(caught.value).startswith(f"{variable} ")


@pytest.mark.parametrize(
    ("variable", "value"),
    [
        ("BILLING_DATABASE_URL", "postgresql://billing:hunter2-hunter2@db:port/billing"),
        ("BILLING_DATABASE_URL", "mysql://billing:hunter2-hunter2@db/billing"),
        ("BILLING_REDIS_URL", "redis://:hunter2-hunter2@host:port"),
        ("BILLING_REDIS_URL", "redis://:hunter2/hunter2@host"),
        ("BILLING_GATEWAY_URL", "https://user:hunter2-hunter2@gateway"),
        ("BILLING_WEBHOOK_SECRETS", "hunter2-hunter2"),
    ],
)
def test_an_error_never_repeats_a_password(variable: str, value: str) -> None:
    with pytest.raises(SettingsError) as caught:
        Settings.from_environment({variable: value})
    shown = "".join(traceback.format_exception(caught.value))
    assert "hunter2" not in shown


def test_settings_never_show_their_secrets_and_never_change() -> None:
    settings = Settings.from_environment(
        {
            "BILLING_DATABASE_URL": "postgresql://billing:hunter2@db/billing",
            "BILLING_REDIS_URL": "redis://:hunter2@redis",
            "BILLING_WEBHOOK_SECRETS": "hunter2-hunter2-hunter2",
        }
    )
    assert "hunter2" not in repr(settings)
    with pytest.raises(dataclasses.FrozenInstanceError):
        settings.gateway_account = "other"  # type: ignore[misc]


def test_each_gateway_account_has_webhook_secrets_of_its_own() -> None:
    settings = Settings.from_environment(
        {
            "BILLING_GATEWAY_ACCOUNT": "main",
            "BILLING_WEBHOOK_SECRETS": "the-secret-of-main-01",
            "BILLING_WEBHOOK_SECRETS_EU_WEST": "the-secret-of-eu-001,the-older-one-of-eu-1",
        }
    )
    assert settings.secrets_of("main") == ("the-secret-of-main-01",)
    assert settings.secrets_of("eu-west") == ("the-secret-of-eu-001", "the-older-one-of-eu-1")
    assert settings.secrets_of("nowhere") == ()
    assert "secret-of-eu" not in repr(settings)


def test_each_adapter_has_a_key_of_its_own_that_is_not_shown() -> None:
    settings = Settings.from_environment({"BILLING_STRIPE_API_KEY": "rk_live_0001"})
    assert settings.api_keys == {"stripe": "rk_live_0001"}
    assert "rk_live" not in repr(settings)
    with pytest.raises(SettingsError, match="BILLING_GATEWAY_API_KEY") as refused:
        Settings.from_environment({"BILLING_GATEWAY_API_KEY": "two\nlines"})
    assert "lines" not in str(refused.value)


def test_a_bad_secret_of_an_account_is_named_by_its_variable() -> None:
    with pytest.raises(SettingsError) as refused:
        Settings.from_environment({"BILLING_WEBHOOK_SECRETS_EU": "short"})
    assert refused.value.variable == "BILLING_WEBHOOK_SECRETS_EU"
    assert "short" not in str(refused.value)
