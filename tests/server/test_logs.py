"""Logging: one line for each event, without secrets or forged lines."""

import io
import json
import logging
from collections.abc import Iterator

import pytest
import structlog

from server.logs import configure_logging

TOKEN = "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiJ1MSJ9.c2lnbmF0dXJlLW9mLWl0"


@pytest.fixture(autouse=True)
def _restored_logging() -> Iterator[None]:
    root = logging.getLogger()
    handlers, level, config = root.handlers[:], root.level, structlog.get_config()
    yield
    root.handlers[:], root.level = handlers, level
    structlog.configure(**config)
    structlog.contextvars.clear_contextvars()


def log_stream(log_format: str = "json", level: str = "info") -> io.StringIO:
    stream = io.StringIO()
    configure_logging(log_format, level, stream)  # type: ignore[arg-type]
    return stream


def test_log_lines_are_json_with_request_id() -> None:
    stream = log_stream()
    structlog.contextvars.bind_contextvars(request_id="r-1")
    structlog.get_logger("ours").info("posted", topic="t-1")
    logging.getLogger("arq.worker").warning("job %s failed", "j-1")
    first, second = (json.loads(line) for line in stream.getvalue().splitlines())
    assert (first["event"], first["topic"], first["request_id"], first["level"]) == ("posted", "t-1", "r-1", "info")
    assert (second["event"], second["logger"], second["request_id"]) == ("job j-1 failed", "arq.worker", "r-1")


@pytest.mark.parametrize("log_format", ["json", "console"])
def test_control_characters_in_values_are_escaped(log_format: str) -> None:
    stream = log_stream(log_format)
    structlog.get_logger().info("posted", text="a\nfake line\x1b[31m", nested={"b": ["\r\u2028"]})
    assert len(stream.getvalue().splitlines()) == 1
    assert "\x1b" not in stream.getvalue()
    assert "\\x0afake" in stream.getvalue()


@pytest.mark.parametrize("log_format", ["json", "console"])
def test_tokens_and_passwords_are_hidden(log_format: str) -> None:
    stream = log_stream(log_format)
    log = structlog.get_logger()
    log.info("connected", uri="mongodb://user:hunter2@host:27017/", token="opaque-1", Authorization="opaque-2")
    try:
        raise ValueError(f"bad token {TOKEN}")
    except ValueError:
        log.exception("refused")
    for secret in ("hunter2", "opaque", TOKEN):
        assert secret not in stream.getvalue()
    assert "bad token [hidden]" in stream.getvalue()


def test_level_applies_and_chatty_libraries_log_warnings() -> None:
    stream = log_stream(level="info")
    structlog.get_logger().debug("too fine")
    logging.getLogger("pymongo.topology").info("chatter")
    logging.getLogger("pymongo.topology").warning("trouble")
    assert [json.loads(line)["event"] for line in stream.getvalue().splitlines()] == ["trouble"]
