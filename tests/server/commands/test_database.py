"""The database of commands: errors of MongoDB and of the domain end a command with one line."""

import os

import pytest
from pymongo.errors import OperationFailure

from server.commands.database import open_database
from server.processes import StartupError
from storage.errors import Conflict
from tests.product import environment

pytestmark = pytest.mark.anyio


@pytest.mark.parametrize(
    ("error", "message"), [(Conflict("It is taken."), "It is taken."), (OperationFailure("no"), "MongoDB failed: no")]
)
async def test_error_of_a_command_is_one_line(
    error: Exception, message: str, monkeypatch: pytest.MonkeyPatch, mongodb_uri: str, database: str
) -> None:
    for name in set(os.environ) - set(environment()):
        monkeypatch.delenv(name)
    monkeypatch.setenv("MONGODB_URI", mongodb_uri)
    monkeypatch.setenv("NOROSHI_DATABASE", database)
    with pytest.raises(StartupError, match=message):
        async with open_database(None):
            raise error
