"""`billing`: the command line.

Exit codes: 0 done, or stopped as asked; 1 ran, and failed or found something wrong; 2 wrong usage
or setting; 3 a server cannot be reached or started; 4 the database refused, and its SQLSTATE is
named.
"""

import importlib
import sys
from typing import NoReturn

import typer

from billing_shell import api_commands, database_commands, process_commands, trial_commands
from billing_shell.command_errors import Exit

app = typer.Typer(
    name="billing",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    help="Subscription billing inside PostgreSQL, and the processes around it.",
    epilog="Servers are found by BILLING_DATABASE_URL, BILLING_REDIS_URL, BILLING_KAFKA_BOOTSTRAP"
    " and BILLING_GATEWAY_URL; keys of gateways are BILLING_STRIPE_API_KEY and"
    " BILLING_GATEWAY_API_KEY. Exit codes: 0 done or stopped as asked, 1 failed or found something"
    " wrong, 2 wrong usage or setting, 3 a server cannot be reached or started, 4 the database"
    " refused.",
)

for _commands in (process_commands, database_commands, trial_commands, api_commands):
    _commands.register(app)

# Defined beside what they start, and imported only when called.
_ELSEWHERE = {
    "gateway": (
        "billing_shell.simulator.__main__",
        "Run the simulated payment gateway, a process with books of its own. It moves no money.",
    ),
}


def main() -> None:
    """Run the command that the arguments name."""
    try:
        "".join(sys.argv).encode()
    except UnicodeEncodeError:
        # Python keeps such bytes as halves of characters, which no server and no terminal takes.
        sys.stderr.write("error: an argument is not UTF-8 [bad_argument]\n")
        sys.exit(Exit.USAGE)
    for name, (module, text) in _ELSEWHERE.items():
        called = sys.argv[1:2] == [name]
        command = importlib.import_module(module).main if called else _not_imported
        app.command(name=name, help=text)(command)
    app()


def _not_imported() -> NoReturn:
    raise AssertionError("a command was called that was not imported")


if __name__ == "__main__":
    main()
