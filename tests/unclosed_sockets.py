"""Marks tests that cancel PyMongo while it connects."""

from collections.abc import Callable
from typing import Any

import pytest


def may_leave_sockets(test: Callable[..., Any]) -> Callable[..., Any]:
    """Ignores sockets that PyMongo Async leaves to the garbage collector, and collects them when the test ends.

    PyMongo leaves the socket of a connection that is cancelled while it opens (docs/upstream.md).
    Without the collection, the warning about the socket would fail any later test.
    """
    ignoring = pytest.mark.filterwarnings("ignore:unclosed <socket:ResourceWarning")
    return pytest.mark.usefixtures("garbage_collection")(ignoring(test))
