"""Log lines: structured, one event each, as JSON or for people; those of libraries alike.

Nothing secret goes into them: no tokens, no payloads, no URLs with passwords, no rows of customers.
Ids, counts, SQLSTATEs and the engine's own messages do.
"""

import logging
import sys
from typing import Any

import structlog

from billing_shell.settings import LogFormat

# What these say at INFO is one line per job or per request.
_QUIET = ("procrastinate", "httpx", "httpcore", "psycopg.pool", "asyncio", "stripe")


class _Line(str):
    """A line of ours, written out already."""

    __slots__ = ()


def _as_line(_logger: object, _method: str, text: Any) -> _Line:  # noqa: ANN401 - as structlog has it
    return _Line(text)


class _Formatter(structlog.stdlib.ProcessorFormatter):
    """Writes out the lines of libraries, and leaves ours as they are: there are many of them."""

    def format(self, record: logging.LogRecord) -> str:
        """Return the line."""
        return record.msg if type(record.msg) is _Line else super().format(record)


def configure_logs(log_format: LogFormat | None) -> None:
    """Sends all log lines to standard error.

    Args:
        log_format: None means for people on a terminal, else JSON.
    """
    if log_format is None:
        log_format = LogFormat.CONSOLE if sys.stderr.isatty() else LogFormat.JSON
    shared: list[Any] = [
        structlog.contextvars.merge_contextvars,
        structlog.stdlib.add_log_level,
        structlog.stdlib.add_logger_name,
        structlog.processors.TimeStamper(fmt="iso", utc=True),
    ]
    # Neither shows the variables of a traceback, as both would by default.
    traceback = structlog.tracebacks.ExceptionDictTransformer(show_locals=False)
    last: list[Any] = (
        [structlog.processors.ExceptionRenderer(traceback), structlog.processors.JSONRenderer()]
        if log_format is LogFormat.JSON
        else [
            structlog.dev.ConsoleRenderer(
                colors=sys.stderr.isatty(), exception_formatter=structlog.dev.plain_traceback
            )
        ]
    )
    structlog.configure(
        processors=[
            structlog.stdlib.filter_by_level,
            *shared,
            structlog.processors.StackInfoRenderer(),
            *last,
            _as_line,
        ],
        logger_factory=structlog.stdlib.LoggerFactory(),
        cache_logger_on_first_use=True,
    )
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(
        _Formatter(
            foreign_pre_chain=shared,
            processors=[structlog.stdlib.ProcessorFormatter.remove_processors_meta, *last],
        )
    )
    # No line says which thread, process or file it is from, so none is found out.
    logging.logThreads = logging.logProcesses = logging.logMultiprocessing = False
    logging._srcfile = None  # noqa: SLF001 - as Python's manual says
    root = logging.getLogger()
    root.handlers = [handler]
    root.setLevel(logging.INFO)
    for name in _QUIET:
        logging.getLogger(name).setLevel(logging.WARNING)
