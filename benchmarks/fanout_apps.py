"""Alternatives to the product's fan-out, served like its web process: `... fanout_apps WAY SOCKET_FD`.

Ordinary Strawberry; WebSockets without GraphQL, frame by frame through ASGI or the transport, and with joined writes;
and the product without joined writes.
"""

import asyncio
import socket
import sys
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Sequence
from contextlib import aclosing, asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

import orjson
import strawberry
from redis.asyncio import Redis
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route, WebSocketRoute
from starlette.types import ASGIApp, Receive, Scope, Send
from starlette.websockets import WebSocket
from strawberry.asgi import GraphQL
from strawberry.schema.config import StrawberryConfig
from strawberry.subscriptions import GRAPHQL_TRANSPORT_WS_PROTOCOL

import server.app
import server.graphql.broadcasts
import server.web
from resolvers.access import joined_topic, member
from resolvers.chat.events import EventRecord, MessageEvent
from resolvers.chat.topics import TopicId
from resolvers.context import Context, Info
from resolvers.events import StreamReady
from schema.binding import subscription
from schema.events import TopicEvent
from schema.root import Query
from schema.scalars import SCALARS
from server.auth.viewers import Viewers
from server.graphql.socket_writer import WebSocketProtocol, protocol_of, text_frame_header
from server.logs import configure_logging
from server.settings import Settings
from storage.stores import Stores, open_stores
from storage.streams.hub import Hub
from storage.streams.log import Position, Stream, format_cursor
from storage.streams.publisher import decode
from storage.streams.subscription import EventBatch, IdleTimeout, SubscriptionStart, follow_batches

RAW_CHANNEL = "fanout"
READY = b'{"data":{"topicEvents":{"__typename":"StreamReady"}}}'


async def ready(_request: Request) -> Response:
    """Answers readiness checks."""
    return Response()


# Ordinary Strawberry: each subscriber has its own pub/sub subscription and executes each event.


async def topic_events(info: Info, topic_id: TopicId) -> AsyncGenerator[EventRecord, None]:
    """Yields the events of a topic for one viewer."""
    viewer, stores = member(info), info.context.stores
    topic = await joined_topic(info, topic_id)
    stream = Stream("topic", topic.id)
    async with stores.redis.pubsub() as pubsub:
        await pubsub.subscribe(stores.keys.channel(stream.name))
        head = await stores.events.head(stream)
        yield StreamReady(format_cursor(stream, Position(head.epoch, head.n)), topic.created_at, False)
        async for message in pubsub.listen():
            if message["type"] != "message":
                continue
            epoch, events = decode(message["data"])
            found = await stores.messages.of_events(topic.id, events)
            for event in events:
                if viewer.id not in await stores.relations.blockers_of(
                    viewer.organization_id, found[event.ref].author_id
                ):
                    cursor = format_cursor(stream, Position(epoch, event.n))
                    yield MessageEvent(cursor, event.at, event.kind, found[event.ref])


@strawberry.type
class Subscription:
    topic_events: TopicEvent = subscription(topic_events, "What happens to the messages of a topic.")


class OrdinaryView(GraphQL[Context, None]):
    """Strawberry's view without changes, with the product's context."""

    def __init__(self, schema: strawberry.Schema, stores: Stores, viewers: Viewers) -> None:
        super().__init__(schema, subscription_protocols=[GRAPHQL_TRANSPORT_WS_PROTOCOL])
        self._stores, self._viewers = stores, viewers

    async def get_context(self, request: Request | WebSocket, response: Response | WebSocket) -> Context:
        """A socket's context."""
        return Context(self._stores, str)

    async def on_ws_connect(self, context: Context) -> Any:
        """Signs in."""
        session = await self._viewers.session((context.connection_params or {})["authorization"])
        assert session is not None
        context.viewer, context.roles = session.user, session.roles
        return strawberry.UNSET


def ordinary(settings: Settings) -> Starlette:
    """Returns an ordinary Strawberry application on the product's schema and data."""
    schema = strawberry.Schema(query=Query, subscription=Subscription, config=StrawberryConfig(scalar_map=SCALARS))

    @asynccontextmanager
    async def lifespan(app: Starlette) -> AsyncIterator[None]:
        assert settings.mongodb_uri
        assert settings.redis_url
        async with open_stores(
            settings.mongodb_uri, settings.redis_url, settings.database, settings.mongo_driver
        ) as stores:
            view = OrdinaryView(schema, stores, Viewers(server.app._verifier(settings), stores.users))
            app.router.routes.append(WebSocketRoute("/graphql", view))
            yield

    return Starlette(routes=[Route("/readyz", ready)], lifespan=lifespan)


# Without GraphQL: complete payloads arrive by one pub/sub subscription and go to every socket.


@dataclass(frozen=True, slots=True, eq=False)
class RawSocket:
    """An open socket and its operation's id."""

    id: str
    send: Send
    wire: WebSocketProtocol | None


Give = Callable[[Sequence[RawSocket], Sequence[bytes]], Awaitable[None]]


async def frame_by_frame_by_asgi(sockets: Sequence[RawSocket], payloads: Sequence[bytes]) -> None:
    """Sends each frame by ASGI."""
    for payload in payloads:
        text = payload.decode()
        for each in sockets:
            await each.send({"type": "websocket.send", "text": f'{{"type":"next","id":"{each.id}","payload":{text}}}'})
        # uvloop would join writes of the same loop iteration.
        await asyncio.sleep(0)


async def frame_by_frame(sockets: Sequence[RawSocket], payloads: Sequence[bytes]) -> None:
    """Writes each frame separately."""
    for payload in payloads:
        await joined(sockets, [payload])
        await asyncio.sleep(0)


async def joined(sockets: Sequence[RawSocket], payloads: Sequence[bytes]) -> None:
    """Writes all payloads of a socket at once."""
    if sockets:
        stand_in = b"0" * len(sockets[0].id)
        frames = b"".join(text_frame(b'{"type":"next","id":"%b","payload":%b}' % (stand_in, p)) for p in payloads)
        for each in sockets:
            assert each.wire
            each.wire.offer(frames.replace(stand_in, each.id.encode()), len(payloads))


def text_frame(payload: bytes) -> bytes:
    """Returns a text frame of a server."""
    return text_frame_header(len(payload)) + payload


@dataclass(slots=True)
class Raw:
    """An ASGI application that speaks just enough of the protocol."""

    redis: Redis
    give: Give
    sockets: dict[str, RawSocket] = field(default_factory=dict)
    waiting: list[bytes] = field(default_factory=list)
    some: asyncio.Event = field(default_factory=asyncio.Event)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serves one socket to its end."""
        await receive()
        await send({"type": "websocket.accept", "subprotocol": GRAPHQL_TRANSPORT_WS_PROTOCOL})
        mine: list[str] = []
        while (message := await receive())["type"] == "websocket.receive":
            said = orjson.loads(message["text"])
            if said["type"] == "connection_init":
                await send({"type": "websocket.send", "text": '{"type":"connection_ack"}'})
            elif said["type"] == "subscribe":
                each = RawSocket(said["id"], send, protocol_of(scope))
                await frame_by_frame_by_asgi([each], [READY])
                self.sockets[each.id] = each
                mine.append(each.id)
        for id_ in mine:
            del self.sockets[id_]

    async def listen(self) -> None:
        """Collects payloads."""
        async with self.redis.pubsub() as pubsub:
            await pubsub.subscribe(RAW_CHANNEL)
            async for message in pubsub.listen():
                if message["type"] == "message":
                    self.waiting.extend(message["data"].split(b"\n"))
                    self.some.set()

    async def hand_on(self) -> None:
        """Sends pending payloads to all sockets, in a loop."""
        while True:
            await self.some.wait()
            self.some.clear()
            payloads, self.waiting = self.waiting, []
            await self.give(list(self.sockets.values()), payloads)


def raw(give: Give) -> Callable[[Settings], Starlette]:
    """An application without GraphQL."""

    def create(settings: Settings) -> Starlette:
        assert settings.redis_url
        application = Raw(Redis.from_url(settings.redis_url), give)

        @asynccontextmanager
        async def lifespan(_app: Starlette) -> AsyncIterator[None]:
            tasks = [asyncio.create_task(application.listen()), asyncio.create_task(application.hand_on())]
            yield
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)

        routes = [Route("/readyz", ready), WebSocketRoute("/graphql", application)]
        return Starlette(routes=routes, lifespan=lifespan)

    return create


async def one_at_a_time(
    hub: Hub, stream: Stream, since: Position | None
) -> AsyncIterator[SubscriptionStart | IdleTimeout | EventBatch]:
    """Yields the product's event batches split into single events, one for each loop iteration."""
    async with aclosing(follow_batches(hub, stream, since)) as steps:
        async for step in steps:
            if not isinstance(step, EventBatch):
                yield step
                continue
            for event in step.events:
                yield EventBatch(Position(step.position.epoch, event.event.n), [event])
                await asyncio.sleep(0)


APPLICATIONS: dict[str, Callable[[Settings], ASGIApp]] = {
    "ordinary": ordinary,
    "asgi": raw(frame_by_frame_by_asgi),
    "legacy": raw(frame_by_frame_by_asgi),
    "transport": raw(frame_by_frame),
    "joined": raw(joined),
    "one-by-one": server.app.create_app,
}


PROTOCOLS = {"ordinary": "websockets-sansio", "asgi": "websockets-sansio", "legacy": "websockets"}
"""uvicorn's name of the WebSocket protocol, where it is not the product's."""


def main() -> None:
    """Serves on the inherited socket until SIGTERM."""
    way, listener = sys.argv[1], socket.socket(fileno=int(sys.argv[2]))
    settings = Settings.from_environment()
    configure_logging(settings.log_format, settings.log_level)
    if way == "library":
        from benchmarks import fanout_library

        fanout_library.main(settings, listener)
        return
    vars(server.app).update(create_app=APPLICATIONS[way])
    if way == "one-by-one":
        vars(server.graphql.broadcasts).update(follow_batches=one_at_a_time)
    if way in PROTOCOLS:
        vars(server.web).update(WebSocketProtocol=PROTOCOLS[way])
    server.web.serve_web(settings, listener)


if __name__ == "__main__":
    main()
