"""Open connections are checked when their credential expires and when their viewer's access is reduced."""

import asyncio
from dataclasses import dataclass, field, replace
from typing import Any

import pytest
from starlette.datastructures import Headers

from server.graphql import session_watch
from server.graphql.protocols import Session
from server.graphql.session_watch import ROLES_CHANGED, SessionWatch
from storage.identity.roles import Role
from tests.server.graphql.graphql_server import GraphQLServer
from tests.waiting import until

pytestmark = pytest.mark.anyio


@dataclass
class OpenConnection:
    """A connection whose credential has the given session."""

    session: Any
    released: asyncio.Event = field(default_factory=asyncio.Event)
    checks: int = 0
    reasons: list[str] = field(default_factory=list)

    async def authenticate(self) -> Session | None:
        self.checks += 1
        await self.released.wait()
        session: Session | None = self.session
        return session

    async def close(self, reason: str) -> None:
        self.reasons.append(reason)


async def open_connection(server: GraphQLServer, **changes: Any) -> tuple[OpenConnection, SessionWatch]:
    """Returns a watched connection of ann. `changes` are those of the session at the next check."""
    headers = Headers({"authorization": f"Bearer {server.token('ann')}"})
    application: Any = server.endpoint._application
    session = await application.session_of_request(headers)
    connection = OpenConnection(replace(session, **changes))
    return connection, SessionWatch(application, session, connection.authenticate, connection.close)


async def test_connection_with_same_roles_stays_open(server: GraphQLServer) -> None:
    connection, watch = await open_connection(server)
    connection.released.set()
    await watch.check()
    assert (connection.checks, connection.reasons) == (1, [])
    watch.stop()


async def test_connection_with_changed_roles_is_closed(server: GraphQLServer) -> None:
    connection, watch = await open_connection(server, roles=frozenset({Role.ADMIN}))
    connection.released.set()
    await watch.check()
    assert connection.reasons == [ROLES_CHANGED]
    watch.stop()


async def test_expiry_is_checked_again_and_again(server: GraphQLServer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(session_watch, "MAX_TIMER_S", 0.01)
    connection, watch = await open_connection(server)
    connection.released.set()
    await until(lambda: connection.checks >= 3)
    watch.stop()
    assert connection.reasons == []


async def test_check_that_ends_after_stop_changes_nothing(
    server: GraphQLServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(session_watch, "MAX_TIMER_S", 0.01)
    connection, watch = await open_connection(server, roles=frozenset({Role.ADMIN}))
    await until(lambda: connection.checks == 1)
    watch.stop()
    connection.released.set()
    await asyncio.sleep(0.05)
    assert (connection.checks, connection.reasons) == (1, [])


async def test_person_is_online_while_watched(server: GraphQLServer) -> None:
    sockets, key = server.stores.online._sockets, (server.scenario.organization_id, "ann")
    _, watch = await open_connection(server)
    assert sockets[key] == 1
    watch.stop()
    assert not sockets[key]
