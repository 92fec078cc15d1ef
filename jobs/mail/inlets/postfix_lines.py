"""Reads lines of Postfix's log that log shippers send: as text, or in JSON objects of Vector, Fluent Bit or journald.

journald has no line, so one is composed of its fields, in the format of a log file.
"""

import re
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime, tzinfo
from typing import Any

import orjson
from cachetools import TTLCache

from jobs.mail.inlets.read_events import ReadEvents
from jobs.mail.postfix import PostfixLogParser

MAX_DEFERRED = 10_000
"""The most queue ids with deferred recipients that are stored for a log."""

FINISHED_S = 600.0
"""How long the recipients of a message that left the queue are kept, so that a repeated request has the same events."""

_LOG_LINE = re.compile(rb"(?:\d{4}-\d\d-\d\dT\S+|[A-Z][a-z]{2} [ \d]\d \d\d:\d\d:\d\d) \S+ \S")
_PROGRAM = re.compile(r"[\w.-]+(?:/[\w.-]+)*")
_MESSAGES = ("message", "log", "MESSAGE")
_PROGRAMS = ("SYSLOG_IDENTIFIER", "appname", "ident", "program")
_PROCESS_IDS = ("_PID", "SYSLOG_PID", "procid", "pid")
_HOSTS = ("_HOSTNAME", "host", "hostname")
_MICROSECONDS = ("_SOURCE_REALTIME_TIMESTAMP", "__REALTIME_TIMESTAMP")
_TIMES = ("timestamp", "date", "time", "@timestamp")


class _NotALine(Exception):
    """An item has no line of a log. The message says what was expected."""


class PostfixLineReader:
    """Reads the lines of one log. It keeps the deferred recipients, whom the line of an expired message does not name.

    They are lost when the process ends. Their deferrals have counted by then.
    """

    def __init__(self, local_zone: tzinfo) -> None:
        """`local_zone` is the zone of times that have none."""
        self._parser = PostfixLogParser(local_zone, _DeferredRecipients(), MAX_DEFERRED)

    def read(self, items: Iterable[tuple[int, bytes]], now: datetime) -> ReadEvents:
        """Returns the events of lines. Lines without an outcome of a delivery are ignored, all else is rejected."""
        read = ReadEvents()
        for index, text in items:
            try:
                events = list(self._parser.parse_line(_log_line(text), now))
            except _NotALine as error:
                read.reject(index, f"line: expected {error}.")
                continue
            except (ValueError, OverflowError):
                read.reject(index, "line: expected a time that exists.")
                continue
            for event in events:
                read.add(index, event)
            if not events:
                read.ignore()
        return read


class _DeferredRecipients(dict[str, list[str]]):
    """Deferred recipients by queue id. Those of a message that left the queue can be taken again for ten minutes."""

    def __init__(self) -> None:
        super().__init__()
        self._finished: TTLCache[str, list[str]] = TTLCache(MAX_DEFERRED, FINISHED_S)

    def pop(self, queue: str, default: Any = ()) -> Any:
        """Removes and returns the recipients of a message."""
        recipients = super().pop(queue, None)
        if recipients is None:
            return list(self._finished.get(queue, default))
        self._finished[queue] = recipients
        return list(recipients)


def _log_line(text: bytes) -> bytes:
    """Returns the line of an item. Raises: _NotALine."""
    line = text
    if text.lstrip().startswith(b"{"):
        record = _decoded(text)
        message = _first(record, _MESSAGES)
        if not isinstance(message, str):
            raise _NotALine(f"a text in {', '.join(_MESSAGES)}")
        line = message.encode()
        if not _LOG_LINE.match(line):
            line = _composed_line(record, message)
    if not _LOG_LINE.match(line):
        raise _NotALine("a line of a log that begins with a time and a host")
    return line


def _decoded(text: bytes) -> dict[str, Any]:
    try:
        record = orjson.loads(text)
    except orjson.JSONDecodeError:
        record = None
    if not isinstance(record, dict):
        raise _NotALine("a JSON object or a line of a log")
    return record


def _composed_line(record: Mapping[str, Any], message: str) -> bytes:
    program = _first(record, _PROGRAMS)
    if not isinstance(program, str) or not _PROGRAM.fullmatch(program):
        raise _NotALine(f"a line of a log, or the name of a program in {', '.join(_PROGRAMS)}")
    process_id, host = str(_first(record, _PROCESS_IDS)), _first(record, _HOSTS)
    number = process_id if process_id.isdigit() else "0"
    name = host if isinstance(host, str) and re.fullmatch(r"\S+", host) else "-"
    return f"{_time(record)} {name} {program}[{number}]: {message}".encode()


def _time(record: Mapping[str, Any]) -> str:
    microseconds, time = _first(record, _MICROSECONDS), _first(record, _TIMES)
    try:
        if microseconds is not None:
            return datetime.fromtimestamp(int(microseconds) / 1_000_000, UTC).isoformat()
        if isinstance(time, int | float):
            return datetime.fromtimestamp(time, UTC).isoformat()
        if isinstance(time, str) and re.fullmatch(r"\d{4}-\d\d-\d\dT\S+", time):
            return time
    except (ValueError, TypeError, OverflowError, OSError):
        pass
    raise _NotALine(f"a time in {', '.join((*_MICROSECONDS, *_TIMES))}")


def _first(record: Mapping[str, Any], names: Iterable[str]) -> Any:
    return next((record[name] for name in names if record.get(name) is not None), None)
