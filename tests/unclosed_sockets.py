"""Sockets that a test leaves to the garbage collector, and the mark of tests that cancel PyMongo while it connects."""

import os
import stat
from collections.abc import Callable
from typing import Any

import pytest


def open_socket_count() -> int:
    """Returns the number of open sockets of this process."""
    return sum(map(_is_socket, os.listdir("/dev/fd")))


def _is_socket(descriptor: str) -> bool:
    try:
        return stat.S_ISSOCK(os.fstat(int(descriptor)).st_mode)
    except OSError:  # The descriptor of the listing itself is closed.
        return False


def may_leave_sockets(test: Callable[..., Any]) -> Callable[..., Any]:
    """Ignores sockets that PyMongo Async leaves to the garbage collector.

    PyMongo leaves the socket of a connection that is cancelled while it opens (docs/upstream.md).
    """
    return pytest.mark.filterwarnings("ignore:unclosed <socket:ResourceWarning")(test)
