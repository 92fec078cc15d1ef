"""A GraphQL server in the test's own process, and subscriptions that record what they receive."""

import asyncio
import secrets
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from functools import partial
from typing import Any

import orjson
from starlette.applications import Starlette
from starlette.routing import WebSocketRoute
from websockets.asyncio.client import ClientConnection, connect
from websockets.exceptions import ConnectionClosed
from websockets.typing import Subprotocol

from resolvers.context import Context
from schema.root import schema
from server.auth.access_watch import AccessWatch
from server.auth.credentials import RequestCredentials
from server.auth.tokens import TokenVerifier, mint
from server.auth.viewers import ViewerSessions
from server.graphql import GraphQLEndpoint
from server.graphql.deadlines import EXECUTION_TIMEOUT_S
from server.graphql.frames import Listener
from server.operation_contexts import OperationContexts
from storage.stores import Stores
from storage.streams.log import StreamPosition, format_cursor
from tests.e2e.chat_topic import cursor_position
from tests.resolvers.people import fake_signed_url
from tests.server.auth.authenticators import token_authenticators
from tests.server.in_process import InProcessServer, serve_in_process
from tests.storage.topic_scenario import TopicScenario
from tests.waiting import poll_until_true

DEADLINE_S = 30.0
TOPIC_EVENTS = """
    subscription ($topic: ID!, $since: Cursor) {
      topicEvents(topicId: $topic, since: $since) {
        __typename
        ... on Event { cursor }
        ... on StreamReady { resumed }
        ... on MessagePosted { message { timestamp text author { id } } }
      }
    }
"""

ReceivedEvent = dict[str, Any]


async def post_messages(scenario: TopicScenario, count: int, author: str = "ann") -> None:
    """Posts several messages concurrently."""
    await asyncio.gather(*(scenario.post(f"{author} {n}", author) for n in range(count)))


class HeldRead:
    """A read that holds back its result until it is released."""

    def __init__(self, read: Callable[..., Awaitable[Any]]) -> None:
        self.has_read, self.released = asyncio.Event(), asyncio.Event()
        self._read = read

    async def __call__(self, *args: Any) -> Any:
        result = await self._read(*args)
        self.has_read.set()
        await self.released.wait()
        return result


class RecordedSubscription:
    """One subscription on a socket of its own, and the messages that it has received so far."""

    def __init__(self, ws: ClientConnection, id_: str) -> None:
        self.ws, self.id = ws, id_
        self.frames: list[dict[str, Any]] = []
        self.texts: list[str] = []
        self.closing_error: ConnectionClosed | None = None

    @property
    def results(self) -> list[ReceivedEvent]:
        """Returns all events in order of arrival, StreamReady included."""
        nexts = [frame for frame in self.frames if frame["type"] == "next"]
        return [event for frame in nexts for event in frame["payload"]["data"].values()]

    @property
    def ready_events(self) -> list[ReceivedEvent]:
        """Returns the StreamReady events."""
        return [event for event in self.results if event["__typename"] == "StreamReady"]

    @property
    def events(self) -> list[ReceivedEvent]:
        """Returns the events without StreamReady."""
        return [event for event in self.results if event["__typename"] != "StreamReady"]

    @property
    def numbers(self) -> list[int]:
        """Returns the numbers of the events in their stream, without StreamReady."""
        return [cursor_position(event["cursor"]) for event in self.events]

    @property
    def error_codes(self) -> list[str]:
        """Returns the codes of the errors that ended the subscription."""
        errors = [error for frame in self.frames if frame["type"] == "error" for error in frame["payload"]]
        return [error["extensions"]["code"] for error in errors]

    @property
    def last_cursor(self) -> str:
        """Returns the cursor of the last event, StreamReady included."""
        return str(self.results[-1]["cursor"])

    async def receives(self, count: int, deadline_s: float = DEADLINE_S) -> bool:
        """Waits for a number of events, and returns whether they arrived before the deadline."""
        return await poll_until_true(lambda: len(self.events) >= count, deadline_s)

    async def reaches(self, n: int, deadline_s: float = DEADLINE_S) -> bool:
        """Waits for event n or a later one, and returns whether it arrived before the deadline."""
        return await poll_until_true(lambda: self.numbers[-1:] >= [n], deadline_s)

    async def record(self) -> None:
        """Records the messages of this subscription until the socket closes."""
        try:
            while True:
                text = str(await self.ws.recv())
                frame = orjson.loads(text)
                if frame.get("id") == self.id:
                    self.texts.append(text)
                    self.frames.append(frame)
        except ConnectionClosed as error:
            self.closing_error = error


@dataclass(frozen=True)
class GraphQLServer:
    """A GraphQL endpoint that is served for WebSockets, with a topic to subscribe to.

    `endpoint` and `stores` give tests access to the server's internal state.
    """

    endpoint: GraphQLEndpoint
    socket_server: InProcessServer
    scenario: TopicScenario
    secret: str

    @property
    def stores(self) -> Stores:
        return self.scenario.stores

    @property
    def listeners(self) -> list[Listener]:
        """The listeners of all broadcasts."""
        return [
            each
            for broadcast in self.endpoint.subscriptions.broadcasts._broadcasts.values()
            for each in broadcast.listeners
        ]

    async def join(self, *user_ids: str) -> None:
        """Creates the users and makes them members of the community."""
        for id_ in user_ids:
            user = await self.stores.users.sign_in(self.scenario.organization_id, id_, (), None, None)
            await self.stores.communities.join(self.scenario.community, user)

    def cursor(self, n: int, epoch: str) -> str:
        """Returns the cursor of event n of the topic."""
        return format_cursor(self.scenario.stream, StreamPosition(epoch, n))

    async def epoch(self) -> str:
        """Returns the current epoch of the topic's stream."""
        return (await self.stores.events.head(self.scenario.stream)).epoch

    def token(self, user_id: str, roles: tuple[str, ...] = ()) -> str:
        """Returns a token that the endpoint accepts."""
        return mint(self.secret, user_id=user_id, organization_id=self.scenario.organization_id, roles=roles)

    @asynccontextmanager
    async def socket(self, user_id: str, roles: tuple[str, ...] = ()) -> AsyncIterator[ClientConnection]:
        """Yields a socket whose `connection_init` has been acknowledged."""
        protocol = Subprotocol("graphql-transport-ws")
        async with connect(self.socket_server.url, subprotocols=[protocol], max_size=None, compression=None) as ws:
            payload = {"authorization": f"Bearer {self.token(user_id, roles)}"}
            await ws.send(orjson.dumps({"type": "connection_init", "payload": payload}).decode())
            assert orjson.loads(await ws.recv()) == {"type": "connection_ack"}
            yield ws

    @asynccontextmanager
    async def subscribed(
        self,
        user_id: str = "ann",
        since: str | None = None,
        query: str = TOPIC_EVENTS,
        id_: str = "1",
        roles: tuple[str, ...] = (),
        operation_name: str | None = None,
        **variables: Any,
    ) -> AsyncIterator[RecordedSubscription]:
        """Subscribes on a new socket and waits for the first message or error. Aborts the socket after the block."""
        values = {"topic": self.scenario.topic.id, "since": since, **variables}
        payload = {"query": query, "variables": values, "operationName": operation_name}
        async with self.socket(user_id, roles) as ws:
            subscription = RecordedSubscription(ws, id_)
            task = asyncio.create_task(subscription.record())
            await ws.send(orjson.dumps({"id": id_, "type": "subscribe", "payload": payload}).decode())
            try:
                assert await poll_until_true(lambda: subscription.frames)
                yield subscription
            finally:
                ws.transport.abort()
                await task

    @asynccontextmanager
    async def all_subscribed(self, *user_ids: str) -> AsyncIterator[list[RecordedSubscription]]:
        """Subscribes once for each user."""
        async with AsyncExitStack() as stack:
            yield [await stack.enter_async_context(self.subscribed(user_id)) for user_id in user_ids]


@asynccontextmanager
async def serve_graphql(
    scenario: TopicScenario, execution_timeout_s: float = EXECUTION_TIMEOUT_S, **options: Any
) -> AsyncIterator[GraphQLServer]:
    """Serves the endpoint on the scenario's stores. `options` are passed to uvicorn."""
    secret = secrets.token_hex(32)
    viewers = ViewerSessions(token_authenticators(TokenVerifier(secret=secret), scenario.stores))
    access_watch = AccessWatch(scenario.stores.access_changes, scenario.stores.clock, viewers)
    new_context = partial(Context, scenario.stores, fake_signed_url)
    endpoint = GraphQLEndpoint(
        schema,
        OperationContexts(access_watch, RequestCredentials(), scenario.stores.online, new_context),
        execution_timeout_s=execution_timeout_s,
    )
    app = Starlette(routes=[WebSocketRoute("/graphql", endpoint)])
    async with serve_in_process(app, ws_max_size=65_536, **options) as socket_server:
        yield GraphQLServer(endpoint, socket_server, scenario, secret)
        assert await poll_until_true(lambda: len(endpoint.subscriptions.broadcasts) == 0)
