"""Alternatives to the product's fan-out, served like its web process: `... fanout_apps VARIANT SOCKET_FD`.

The variants are ordinary Strawberry, the product without joined writes, and WebSockets without GraphQL. The latter send
frame by frame through ASGI or the transport, or join their writes.
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
from resolvers.access import joined_topic, require_member
from resolvers.chat.events import EventRecord, MessageEvent
from resolvers.chat.topics import TopicId
from resolvers.context import Context, Info
from resolvers.events import StreamReady
from schema.binding import subscription
from schema.events import TopicEvent
from schema.root import Query
from schema.scalars import SCALARS
from server.auth.viewers import ViewerSessions
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


# Ordinary Strawberry: a pub/sub subscription for each subscriber, and an execution of each event for each of them.


async def topic_events(info: Info, topic_id: TopicId) -> AsyncGenerator[EventRecord, None]:
    """Yields the events of a topic for one viewer."""
    viewer, stores = require_member(info), info.context.stores
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
            messages = await stores.messages.of_events(topic.id, events)
            for event in events:
                if viewer.id not in await stores.relations.blockers_of(
                    viewer.organization_id, messages[event.ref].author_id
                ):
                    cursor = format_cursor(stream, Position(epoch, event.n))
                    yield MessageEvent(cursor, event.at, event.kind, messages[event.ref])


@strawberry.type
class Subscription:
    topic_events: TopicEvent = subscription(topic_events, "Events of the messages of a topic.")


class OrdinaryView(GraphQL[Context, None]):
    """Strawberry's view without changes, with the product's context."""

    def __init__(self, schema: strawberry.Schema, stores: Stores, viewers: ViewerSessions) -> None:
        super().__init__(schema, subscription_protocols=[GRAPHQL_TRANSPORT_WS_PROTOCOL])
        self._stores, self._viewers = stores, viewers

    async def get_context(self, request: Request | WebSocket, response: Response | WebSocket) -> Context:
        """Returns the context of a socket."""
        return Context(self._stores, str)

    async def on_ws_connect(self, context: Context) -> Any:
        """Signs the viewer in."""
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
            view = OrdinaryView(schema, stores, ViewerSessions(server.app._verifier(settings), stores.users))
            app.router.routes.append(WebSocketRoute("/graphql", view))
            yield

    return Starlette(routes=[Route("/readyz", ready)], lifespan=lifespan)


# Without GraphQL: one pub/sub subscription receives complete payloads, which are sent to every socket.


@dataclass(frozen=True, slots=True, eq=False)
class RawSocket:
    """An open socket and the id of its operation."""

    id: str
    send: Send
    protocol: WebSocketProtocol | None


Broadcast = Callable[[Sequence[RawSocket], Sequence[bytes]], Awaitable[None]]


async def send_each_by_asgi(sockets: Sequence[RawSocket], payloads: Sequence[bytes]) -> None:
    """Sends each frame by a call of ASGI's `send`."""
    for payload in payloads:
        text = payload.decode()
        for socket_ in sockets:
            frame = f'{{"type":"next","id":"{socket_.id}","payload":{text}}}'
            await socket_.send({"type": "websocket.send", "text": frame})
        # uvloop would join writes of the same loop iteration.
        await asyncio.sleep(0)


async def write_each(sockets: Sequence[RawSocket], payloads: Sequence[bytes]) -> None:
    """Writes each frame by a call of the transport."""
    for payload in payloads:
        await write_joined(sockets, [payload])
        await asyncio.sleep(0)


async def write_joined(sockets: Sequence[RawSocket], payloads: Sequence[bytes]) -> None:
    """Writes all payloads of a socket in one write."""
    if sockets:
        placeholder = b"0" * len(sockets[0].id)
        frames = b"".join(text_frame(b'{"type":"next","id":"%b","payload":%b}' % (placeholder, p)) for p in payloads)
        for socket_ in sockets:
            assert socket_.protocol
            socket_.protocol.offer(frames.replace(placeholder, socket_.id.encode()), len(payloads))


def text_frame(payload: bytes) -> bytes:
    """Returns a server's text frame."""
    return text_frame_header(len(payload)) + payload


@dataclass(slots=True)
class RawApplication:
    """An ASGI application with the part of graphql-transport-ws that the benchmark needs."""

    redis: Redis
    broadcast: Broadcast
    sockets: dict[str, RawSocket] = field(default_factory=dict)
    pending: list[bytes] = field(default_factory=list)
    has_pending: asyncio.Event = field(default_factory=asyncio.Event)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serves one socket until it is closed."""
        await receive()
        await send({"type": "websocket.accept", "subprotocol": GRAPHQL_TRANSPORT_WS_PROTOCOL})
        ids: list[str] = []
        while (message := await receive())["type"] == "websocket.receive":
            content = orjson.loads(message["text"])
            if content["type"] == "connection_init":
                await send({"type": "websocket.send", "text": '{"type":"connection_ack"}'})
            elif content["type"] == "subscribe":
                socket_ = RawSocket(content["id"], send, protocol_of(scope))
                await send_each_by_asgi([socket_], [READY])
                self.sockets[socket_.id] = socket_
                ids.append(socket_.id)
        for id_ in ids:
            del self.sockets[id_]

    async def receive_payloads(self) -> None:
        """Collects payloads from Redis."""
        async with self.redis.pubsub() as pubsub:
            await pubsub.subscribe(RAW_CHANNEL)
            async for message in pubsub.listen():
                if message["type"] == "message":
                    self.pending.extend(message["data"].split(b"\n"))
                    self.has_pending.set()

    async def broadcast_payloads(self) -> None:
        """Sends pending payloads to all sockets, in a loop."""
        while True:
            await self.has_pending.wait()
            self.has_pending.clear()
            payloads, self.pending = self.pending, []
            await self.broadcast(list(self.sockets.values()), payloads)


def without_graphql(broadcast: Broadcast) -> Callable[[Settings], Starlette]:
    """Returns a factory of applications without GraphQL."""

    def create(settings: Settings) -> Starlette:
        assert settings.redis_url
        application = RawApplication(Redis.from_url(settings.redis_url), broadcast)

        @asynccontextmanager
        async def lifespan(_app: Starlette) -> AsyncIterator[None]:
            work = application.receive_payloads(), application.broadcast_payloads()
            tasks = [asyncio.create_task(each) for each in work]
            yield
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)

        routes = [Route("/readyz", ready), WebSocketRoute("/graphql", application)]
        return Starlette(routes=routes, lifespan=lifespan)

    return create


async def follow_single_events(
    hub: Hub, stream: Stream, since: Position | None
) -> AsyncIterator[SubscriptionStart | IdleTimeout | EventBatch]:
    """Yields the items of `follow_batches`, but each batch as single events, one in each loop iteration."""
    async with aclosing(follow_batches(hub, stream, since)) as items:
        async for item in items:
            if not isinstance(item, EventBatch):
                yield item
                continue
            for event in item.events:
                yield EventBatch(Position(item.position.epoch, event.event.n), [event])
                await asyncio.sleep(0)


APPLICATIONS: dict[str, Callable[[Settings], ASGIApp]] = {
    "ordinary": ordinary,
    "asgi": without_graphql(send_each_by_asgi),
    "legacy": without_graphql(send_each_by_asgi),
    "transport": without_graphql(write_each),
    "joined": without_graphql(write_joined),
    "one-by-one": server.app.create_app,
}

PROTOCOLS = {"ordinary": "websockets-sansio", "asgi": "websockets-sansio", "legacy": "websockets"}
"""uvicorn's names of WebSocket protocols, for variants that do not use the product's protocol."""


def main() -> None:
    """Serves on the inherited socket until SIGTERM."""
    variant, listener = sys.argv[1], socket.socket(fileno=int(sys.argv[2]))
    settings = Settings.from_environment()
    configure_logging(settings.log_format, settings.log_level)
    if variant == "library":
        from benchmarks import fanout_library

        fanout_library.main(settings, listener)
        return
    vars(server.app).update(create_app=APPLICATIONS[variant])
    if variant == "one-by-one":
        vars(server.graphql.broadcasts).update(follow_batches=follow_single_events)
    if variant in PROTOCOLS:
        vars(server.web).update(WebSocketProtocol=PROTOCOLS[variant])
    server.web.serve_web(settings, listener)


if __name__ == "__main__":
    main()
