"""Logging: one line for each event on stderr, as JSON or in columns, for Noroshi and its libraries.

Lines hold no tokens and no passwords. Control characters in values are escaped, so that values can't forge lines.
"""

import logging
import re
import sys
from collections.abc import Mapping, MutableMapping
from typing import Any, Literal, TextIO

import structlog

HIDDEN = "[hidden]"
# Libraries whose messages below WARNING are dropped.
QUIET_LOGGERS = ("uvicorn", "arq", "pymongo", "motor", "httpx2", "httpcore2", "websockets", "asyncio")

_SENSITIVE_KEYS = frozenset({"authorization", "cookie", "credentials", "password", "secret", "token"})
# A JWT, or the user and password of an address.
_SENSITIVE_TEXT = re.compile(r"eyJ[\w-]{8,}\.[\w-]+\.[\w-]*|(?<=://)[^\s/@\"']+(?=@)")
_CONTROL = re.compile("[\x00-\x1f\x7f-\x9f\u2028\u2029]")

EventDict = MutableMapping[str, Any]


def configure_logging(log_format: Literal["console", "json"], level: str, stream: TextIO | None = None) -> None:
    """Sends the records of structlog and the standard library to `stream`, by default stderr."""
    out = stream or sys.stderr
    shared: list[Any] = [
        structlog.contextvars.merge_contextvars,
        structlog.stdlib.add_log_level,
        structlog.stdlib.add_logger_name,
        structlog.processors.TimeStamper(fmt="iso", utc=True),
        structlog.stdlib.PositionalArgumentsFormatter(),
        structlog.stdlib.ExtraAdder(),
    ]
    structlog.configure(
        processors=[*shared, structlog.stdlib.ProcessorFormatter.wrap_for_formatter],
        logger_factory=structlog.stdlib.LoggerFactory(),
        wrapper_class=structlog.stdlib.BoundLogger,
        cache_logger_on_first_use=True,
    )
    _install(_formatter(log_format, shared, colors=out.isatty()), level.upper(), out)


def _formatter(log_format: str, shared: list[Any], *, colors: bool) -> logging.Formatter:
    # The tracebacks of rich would show local variables, including secrets.
    plain = structlog.dev.plain_traceback
    rendering: list[Any] = (
        [structlog.dev.ConsoleRenderer(colors=colors, exception_formatter=plain)]
        if log_format == "console"
        else [structlog.processors.format_exc_info, structlog.processors.JSONRenderer(default=str)]
    )
    strip = structlog.stdlib.ProcessorFormatter.remove_processors_meta
    processors = [strip, _hide_secrets, _escape, *rendering, _hide_tokens]
    return structlog.stdlib.ProcessorFormatter(foreign_pre_chain=shared, processors=processors)


def _install(formatter: logging.Formatter, level: str, stream: TextIO) -> None:
    handler = logging.StreamHandler(stream)
    handler.setFormatter(formatter)
    root = logging.getLogger()
    root.handlers[:] = [handler]
    root.setLevel(level)
    for name in QUIET_LOGGERS:
        logging.getLogger(name).setLevel(max(logging.WARNING, root.level))


def _hide_secrets(_logger: object, _method: str, event: EventDict) -> EventDict:
    return {key: HIDDEN if key.lower() in _SENSITIVE_KEYS else value for key, value in event.items()}


def _escape(_logger: object, _method: str, event: EventDict) -> EventDict:
    return {key: _escaped(value) for key, value in event.items()}


def _escaped(value: object) -> object:
    if isinstance(value, str):
        return _CONTROL.sub(lambda match: f"\\x{ord(match[0]):02x}", value)
    if isinstance(value, Mapping):
        return {str(_escaped(key)): _escaped(item) for key, item in value.items()}
    return [_escaped(item) for item in value] if isinstance(value, list | tuple) else value


def _hide_tokens(_logger: object, _method: str, line: str) -> str:
    # Applied to the finished line, because a traceback may hold a token.
    return _SENSITIVE_TEXT.sub(HIDDEN, line)
