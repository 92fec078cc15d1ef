"""The endpoint in the test's own process, and sockets that remember what they heard."""

import asyncio
import secrets
from collections.abc import AsyncIterator, Callable
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
from schema.root import build_schema
from server.auth.tokens import TokenVerifier, mint
from server.auth.viewers import Viewers
from server.graphql import Documents, GraphQLEndpoint, compiled_executor, limits_extension
from storage.stores import Stores
from tests.e2e.chat_topic import number
from tests.server.in_process import InProcess, in_process
from tests.storage.topic_scenario import TopicScenario

PATIENCE_S = 30.0
PLAIN = """
    subscription ($topic: ID!, $since: Cursor) {
      topicEvents(topicId: $topic, since: $since) {
        __typename
        ... on Event { cursor }
        ... on StreamReady { resumed }
        ... on MessagePosted { message { timestamp text author { id } } }
      }
    }
"""

Event = dict[str, Any]


async def eventually(look: Callable[[], object], deadline_s: float = PATIENCE_S) -> bool:
    """Whether `look` finds something before the deadline is over."""
    loop = asyncio.get_running_loop()
    ends_at = loop.time() + deadline_s
    while not (found := look()) and loop.time() < ends_at:
        await asyncio.sleep(0.01)
    return bool(found)


class Heard:
    """The events of one subscription so far, in order."""

    def __init__(self, ws: ClientConnection, id_: str) -> None:
        self.ws, self.id = ws, id_
        self.frames: list[dict[str, Any]] = []
        self.texts: list[str] = []
        self.ended: ConnectionClosed | None = None

    @property
    def all(self) -> list[Event]:
        """Every event and every StreamReady."""
        nexts = [frame for frame in self.frames if frame["type"] == "next"]
        return [event for frame in nexts for event in frame["payload"]["data"].values()]

    @property
    def ready(self) -> list[Event]:
        return [event for event in self.all if event["__typename"] == "StreamReady"]

    @property
    def events(self) -> list[Event]:
        return [event for event in self.all if event["__typename"] != "StreamReady"]

    @property
    def numbers(self) -> list[int]:
        return [number(event["cursor"]) for event in self.events]

    @property
    def codes(self) -> list[str]:
        """The codes of the errors that ended it."""
        errors = [error for frame in self.frames if frame["type"] == "error" for error in frame["payload"]]
        return [error["extensions"]["code"] for error in errors]

    @property
    def cursor(self) -> str:
        """Where it stands."""
        return str(self.all[-1]["cursor"])

    async def has(self, count: int, deadline_s: float = PATIENCE_S) -> bool:
        """Whether it gets that many events in time."""
        return await eventually(lambda: len(self.events) >= count, deadline_s)

    async def reaches(self, n: int, deadline_s: float = PATIENCE_S) -> bool:
        """Whether it gets event n in time."""
        return await eventually(lambda: self.numbers[-1:] >= [n], deadline_s)

    async def listen(self) -> None:
        """Until the socket is closed."""
        try:
            while True:
                text = str(await self.ws.recv())
                frame = orjson.loads(text)
                if frame.get("id") == self.id:
                    self.texts.append(text)
                    self.frames.append(frame)
        except ConnectionClosed as closed:
            self.ended = closed


@dataclass(frozen=True)
class House:
    """A web process's endpoint for WebSockets, with a topic to talk about. `view` and `stores` show its inside."""

    view: GraphQLEndpoint
    served: InProcess
    place: TopicScenario
    secret: str

    @property
    def stores(self) -> Stores:
        return self.place.stores

    async def join(self, *user_ids: str) -> None:
        """They belong to the community when this returns."""
        for id_ in user_ids:
            user = await self.stores.users.sign_in(self.place.organization_id, id_, (), None, None)
            await self.stores.communities.join(self.place.community, user)

    def token(self, user_id: str, roles: tuple[str, ...] = ()) -> str:
        return mint(self.secret, user_id=user_id, organization_id=self.place.organization_id, roles=roles)

    @asynccontextmanager
    async def socket(self, user_id: str, roles: tuple[str, ...] = ()) -> AsyncIterator[ClientConnection]:
        """An acknowledged socket."""
        protocol = Subprotocol("graphql-transport-ws")
        async with connect(self.served.url, subprotocols=[protocol], max_size=None, compression=None) as ws:
            payload = {"authorization": f"Bearer {self.token(user_id, roles)}"}
            await ws.send(orjson.dumps({"type": "connection_init", "payload": payload}).decode())
            assert orjson.loads(await ws.recv()) == {"type": "connection_ack"}
            yield ws

    @asynccontextmanager
    async def hears(
        self,
        user_id: str = "ann",
        since: str | None = None,
        query: str = PLAIN,
        id_: str = "1",
        roles: tuple[str, ...] = (),
        operation_name: str | None = None,
        **variables: Any,
    ) -> AsyncIterator[Heard]:
        """A subscription on a socket of its own, which has begun or was refused. Cut off when it is left."""
        given = {"topic": self.place.topic.id, "since": since, **variables}
        payload = {"query": query, "variables": given, "operationName": operation_name}
        async with self.socket(user_id, roles) as ws:
            heard = Heard(ws, id_)
            task = asyncio.create_task(heard.listen())
            await ws.send(orjson.dumps({"id": id_, "type": "subscribe", "payload": payload}).decode())
            try:
                assert await eventually(lambda: heard.frames)
                yield heard
            finally:
                ws.transport.abort()
                await task

    @asynccontextmanager
    async def all_hear(self, *user_ids: str) -> AsyncIterator[list[Heard]]:
        """One subscription each."""
        async with AsyncExitStack() as stack:
            yield [await stack.enter_async_context(self.hears(user_id)) for user_id in user_ids]


@asynccontextmanager
async def open_house(place: TopicScenario, **options: Any) -> AsyncIterator[House]:
    """The endpoint, on stores that are open. `options` are uvicorn's."""
    secret = secrets.token_hex(32)
    viewers = Viewers(TokenVerifier(secret=secret), place.stores.users)
    documents = Documents()
    schema = build_schema(limits_extension(documents), executor=compiled_executor(documents))
    view = GraphQLEndpoint(schema, documents, viewers, partial(Context, place.stores, str))
    app = Starlette(routes=[WebSocketRoute("/graphql", view)])
    async with in_process(app, ws_max_size=65_536, **options) as served:
        yield House(view, served, place, secret)
        assert await eventually(lambda: len(view.broadcasts) == 0)
