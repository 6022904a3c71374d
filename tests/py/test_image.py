"""What can be said of the image and of docker-compose.yml where no Docker engine is."""

import re
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.py.support import containers

ROOT = Path(__file__).parents[2]
COMPOSE: dict[str, Any] = yaml.safe_load((ROOT / "docker-compose.yml").read_text())
SERVICES: dict[str, dict[str, Any]] = COMPOSE["services"]
_OURS = [name for name, service in SERVICES.items() if service.get("image") == "billing-shell"]


def test_the_image_is_built_from_all_that_the_package_is_made_of() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())
    wheel = project["tool"]["hatch"]["build"]["targets"]["wheel"]
    needed = {
        project["project"]["readme"],
        "pyproject.toml",
        "requirements.lock",
        *wheel["force-include"],
        *(package.split("/")[0] for package in wheel["packages"]),
    }
    build, _ = (ROOT / "Dockerfile").read_text().rsplit("FROM ", 1)
    copied = {
        source
        for sources in re.findall(r"^COPY (.+) \S+$", build, flags=re.MULTILINE)
        for source in sources.split()
    }
    let_through = set(re.findall(r"^!(.+)$", (ROOT / ".dockerignore").read_text(), re.MULTILINE))
    assert copied == needed
    assert let_through == needed


@pytest.mark.parametrize("name", _OURS)
def test_a_service_runs_a_command_that_there_is(name: str) -> None:
    command = SERVICES[name]["command"]
    arguments = [part for part in command if part not in {"billing", "sh", "-c"}]
    if command[0] == "sh":
        # What the shell adds where its variable is set is an option like the others.
        words = arguments[0].replace("$${BILLING_SIMULATOR_WEBHOOK_SECRET:+", "").replace("}", "")
        assert words.split()[:4] == ["exec", "python", "-m", "billing_shell.simulator"]
        module, arguments = "billing_shell.simulator", words.split()[4:]
    else:
        module = "billing_shell"
    # With --help nothing starts, and an option that there is not is refused all the same.
    ended = subprocess.run(
        [sys.executable, "-m", module, *arguments, "--help"],
        check=False,
        capture_output=True,
        text=True,
        env={"COLUMNS": "300"},
    )
    assert ended.returncode == 0, ended.stderr
    for option in arguments:
        if option.startswith("--"):
            assert option.split("=")[0] in ended.stdout


@pytest.mark.parametrize("name", _OURS)
def test_a_service_sets_only_what_the_program_reads(name: str) -> None:
    program = "\n".join(
        file.read_text() for file in sorted((ROOT / "python/billing_shell").rglob("*.py"))
    )
    for variable in SERVICES[name].get("environment", {}):
        assert f'"{variable}"' in program


@pytest.mark.parametrize("service", containers.IMAGES)
def test_servers_are_those_that_the_container_tests_run(service: str) -> None:
    assert SERVICES[service]["image"] == containers.IMAGES[service]


def test_addresses_name_services_and_their_ports() -> None:
    ports = {"postgres": 5432, "redis": 6379, "kafka": 9092, "gateway": 8080, "api": 8000}
    texts = [
        str(value)
        for name in _OURS
        for value in SERVICES[name].get("environment", {}).values()
        if value
    ]
    addresses = {
        (host, int(port))
        for text in texts
        for host, port in re.findall(r"(?:://|@|^)([a-z]+):([0-9]{4,5})(?=/|$|,)", text)
    }
    assert addresses == {(host, ports[host]) for host in ("postgres", "redis", "kafka", "gateway")}


def test_databases_logins_are_members_of_roles_that_there_are() -> None:
    logins = COMPOSE["configs"]["postgres-logins"]["content"]
    roles = {
        role for given in re.findall(r"IN ROLE ([a-z_, ]+);", logins) for role in given.split(", ")
    }
    made = (ROOT / "db/roles/roles.sql").read_text()
    assert roles == {
        *("billing_worker", "billing_relay", "billing_http", "billing_app", "billing_operator")
    }
    for role in roles:
        assert role in made
