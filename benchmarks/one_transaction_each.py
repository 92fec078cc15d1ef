"""The product's web process with one transaction for each change: `... one_transaction_each SOCKET_FD`.

Changes never share a transaction, processes take no write leases, and conflicts are retried as in the product. /empty
serves a mutation that does nothing, through the product's own view. benchmarks.posting runs this module.
"""

import asyncio
import socket
import sys
from collections import deque
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import partial
from typing import TypeVar

import strawberry
from starlette.applications import Starlette
from starlette.routing import Route
from starlette.types import Receive, Scope, Send

import server.app
import storage.stores
from resolvers.context import Context
from server.auth.access_watch import AccessWatch
from server.auth.credentials import RequestCredentials
from server.auth.viewers import ViewerSessions
from server.graphql import GraphQLEndpoint
from server.logs import configure_logging
from server.operation_contexts import OperationContexts
from server.settings import Settings
from server.web import serve_web
from storage.streams.changes import Change
from storage.streams.log import Stream
from storage.streams.sequencer import Sequencer, _PendingChange, _StreamQueue
from storage.streams.write_leases import CommitTries, WriteLeases

Result = TypeVar("Result")
create_product = server.app.create_app


class UngroupedSequencer(Sequencer):
    """A sequencer that commits each change in a separate transaction, all concurrently."""

    async def commit(self, stream: Stream, change: Change[Result]) -> Result:
        loop = asyncio.get_running_loop()
        answer: asyncio.Future[Result] = loop.create_future()
        queue = _StreamQueue(waiting=deque([_PendingChange(change, answer, loop.time())]))
        await self._commit_batch(stream, queue)
        return await answer


class NoWriteLeases(WriteLeases):
    """Write leases that are granted at once, even while another process holds the lease."""

    @asynccontextmanager
    async def acquire(self, stream: Stream) -> AsyncIterator[CommitTries]:
        yield CommitTries()


@strawberry.type
class Query:
    nothing: bool = False


@strawberry.type
class Mutation:
    @strawberry.mutation
    async def empty(self) -> bool:
        return True


class EmptyMutationEndpoint:
    """The product's view, including sign-in, with a mutation that does nothing."""

    def __init__(self, app: Starlette, settings: Settings) -> None:
        self._app, self._settings = app, settings
        self._view: GraphQLEndpoint | None = None

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        self._view = self._view or self._make_view()
        await self._view(scope, receive, send)

    def _make_view(self) -> GraphQLEndpoint:
        stores = self._app.state.stores
        viewers = ViewerSessions(server.app.authenticators(self._settings, stores))
        access_watch = AccessWatch(stores.access_changes, stores.clock, viewers)
        contexts = OperationContexts(access_watch, RequestCredentials(), stores.online, partial(Context, stores, str))
        return GraphQLEndpoint(strawberry.Schema(Query, Mutation), contexts)


def create_app(settings: Settings) -> Starlette:
    """Returns the product's application with the additional route /empty."""
    app = create_product(settings)
    app.router.routes.insert(0, Route("/empty", EmptyMutationEndpoint(app, settings)))
    return app


def main() -> None:
    """Serves on the inherited socket until SIGTERM."""
    settings = Settings.from_environment()
    configure_logging(settings.log_format, settings.log_level)
    vars(storage.stores).update(Sequencer=UngroupedSequencer, WriteLeases=NoWriteLeases)
    vars(server.app).update(create_app=create_app)
    serve_web(settings, socket.socket(fileno=int(sys.argv[1])))


if __name__ == "__main__":
    main()
