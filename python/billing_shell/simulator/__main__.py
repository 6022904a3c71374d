"""`python -m billing_shell.simulator`: the gateway as a process."""

import sys
from pathlib import Path
from typing import Annotated

import structlog
import typer

from billing_shell.command_errors import Exit
from billing_shell.simulator.ledger import LedgerError
from billing_shell.simulator.options import Latency, Options
from billing_shell.simulator.server import serve


def main(  # noqa: PLR0913  one parameter per option of the command
    *,
    ledger: Annotated[Path, typer.Option(help="The SQLite file that holds the books.")],
    host: Annotated[str, typer.Option(help="Address to listen on.")] = "127.0.0.1",
    port: Annotated[int, typer.Option(help="TCP port, 0 for a free one.", max=65_535, min=0)] = 0,
    limit: Annotated[int, typer.Option(help="Arrivals a second, per operation.")] = 200,
    seed: Annotated[int, typer.Option(help="Makes latency and faults.")] = 1,
    latency: Annotated[
        str | None, typer.Option(help="Seconds, as 0.05-0.8. Default: as last controlled.")
    ] = None,
    faults: Annotated[
        float | None, typer.Option(help="Share of sends, as 0.02. Default: as last controlled.")
    ] = None,
    hang: Annotated[
        float, typer.Option(help="Seconds until an unanswered connection is cut.")
    ] = 3.0,
    key_lifetime: Annotated[
        float, typer.Option(help="Seconds of the business clock that a key is kept.")
    ] = 86_400.0,
    search_lag: Annotated[
        float, typer.Option(help="Seconds until the search by reference sees a payment.")
    ] = 0.0,
    api_key: Annotated[str | None, typer.Option(envvar="BILLING_SIMULATOR_API_KEY")] = None,
    webhook_url: Annotated[str | None, typer.Option(help="Where events go.")] = None,
    webhook_secret: Annotated[
        str | None, typer.Option(envvar="BILLING_SIMULATOR_WEBHOOK_SECRET")
    ] = None,
    webhook_retry: Annotated[
        float, typer.Option(help="Seconds until the first repetition, then doubled.")
    ] = 1.0,
    commit_window: Annotated[
        float, typer.Option(help="Seconds for which writes share a commit.")
    ] = 0.002,
    hold_webhooks: Annotated[
        bool, typer.Option(help="Write events down for others to deliver, and deliver none.")
    ] = False,
    sync: Annotated[bool, typer.Option(help="Have each commit reach the disk.")] = True,
) -> None:
    """Run a payment gateway that keeps its own books, answers late, and sometimes not at all."""
    try:
        options = Options(
            ledger=ledger,
            host=host,
            port=port,
            limit=limit,
            seed=seed,
            latency=None if latency is None else Latency.parse(latency),
            faults=faults,
            hang=hang,
            key_lifetime=key_lifetime,
            search_lag=search_lag,
            api_key=api_key,
            webhook_url=webhook_url,
            webhook_secret=webhook_secret,
            webhook_retry=webhook_retry,
            commit_window=commit_window,
            hold_webhooks=hold_webhooks,
            sync=sync,
        )
    except ValueError as error:
        raise typer.BadParameter(str(error)) from error
    # Standard output is for the ready line alone.
    structlog.configure(logger_factory=structlog.PrintLoggerFactory(sys.stderr))
    try:
        serve(options)
    except (LedgerError, OSError) as error:
        typer.echo(f"The simulated gateway cannot start: {error}", err=True)
        raise typer.Exit(Exit.UNREACHABLE) from error


if __name__ == "__main__":
    typer.run(main)
