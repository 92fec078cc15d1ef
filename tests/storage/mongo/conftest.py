"""Fixtures of tests of the access to MongoDB."""

from collections.abc import Iterator

import pytest
from pymongo import monitoring

from tests.storage.mongo.command_recorder import CommandNameRecorder


@pytest.fixture
def command_recorder() -> Iterator[CommandNameRecorder]:
    """The commands of all clients that the test opens."""
    listener = CommandNameRecorder()
    monitoring.register(listener)
    yield listener
    monitoring._LISTENERS.command_listeners.remove(listener)
