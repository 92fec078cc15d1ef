"""Alternatives to the product's delivery of events, for `benchmarks.fanout`.

`python -m benchmarks.fanout_apps VARIANT SOCKET_FD` serves one variant on an inherited socket, as `noroshi web` does.
The variants are ordinary Strawberry, the product without joined writes, and servers without GraphQL. The servers
without GraphQL write frame by frame, or join the frames of a socket in one write. benchmarks/README.md lists the
variants.
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
from resolvers.access import require_joined_topic, require_member
from resolvers.chat.events import ChatEventRecord, MessageEvent
from resolvers.chat.topics import TopicId
from resolvers.context import Context, Info
from resolvers.events import StreamReady
from schema.binding import subscription
from schema.events import TopicEvent
from schema.root import Query
from schema.scalars import SCALARS
from server.auth.credentials import bearer_credential
from server.auth.viewers import ViewerSessions
from server.graphql.socket_writer import WebSocketProtocol, connection_of, text_frame_header
from server.logs import configure_logging
from server.settings import Settings
from storage.stores import Stores, open_stores
from storage.streams.event_sender import decode
from storage.streams.hub import Hub
from storage.streams.log import Stream, StreamPosition, format_cursor
from storage.streams.subscription import EventBatch, IdleTimeout, SubscriptionStart, follow_batches

PAYLOADS_CHANNEL = "fanout"
"""The Redis channel of complete payloads, for the variants without GraphQL."""

READY_PAYLOAD = b'{"data":{"topicEvents":{"__typename":"StreamReady"}}}'


async def answer_readiness(_request: Request) -> Response:
    """Answers readiness checks."""
    return Response()


# Ordinary Strawberry: each subscriber has its own pub/sub subscription and its own execution of each event.


async def topic_events(info: Info, topic_id: TopicId) -> AsyncGenerator[ChatEventRecord, None]:
    """Yields the events of a topic for one viewer."""
    viewer, stores = require_member(info), info.context.stores
    topic = await require_joined_topic(info, topic_id)
    stream = Stream("topic", topic.id)
    async with stores.redis.pubsub() as pubsub:
        await pubsub.subscribe(stores.keys.channel(stream.name))
        head = await stores.events.head(stream)
        yield StreamReady(format_cursor(stream, StreamPosition(head.epoch, head.n)), topic.created_at, False)
        async for message in pubsub.listen():
            if message["type"] != "message":
                continue
            epoch, events = decode(message["data"])
            messages = await stores.messages.of_events(topic.id, events)
            for event in events:
                author_id = messages[event.ref].author_id
                if not await stores.relations.blockers_among(viewer.organization_id, author_id, [viewer.id]):
                    cursor = format_cursor(stream, StreamPosition(epoch, event.n))
                    yield MessageEvent(cursor, event.at, event.kind, messages[event.ref])


@strawberry.type
class Subscription:
    topic_events: TopicEvent = subscription(topic_events, "Events of the messages of a topic.")


class OrdinaryView(GraphQL[Context, None]):
    """Strawberry's ASGI view with the product's context and sign-in."""

    def __init__(self, schema: strawberry.Schema, stores: Stores, viewers: ViewerSessions) -> None:
        super().__init__(schema, subscription_protocols=[GRAPHQL_TRANSPORT_WS_PROTOCOL])
        self._stores, self._viewers = stores, viewers

    async def get_context(self, request: Request | WebSocket, response: Response | WebSocket) -> Context:
        """Returns the context of a socket."""
        return Context(self._stores, sign_image=str)

    async def on_ws_connect(self, context: Context) -> Any:
        """Signs the viewer in."""
        session = await self._viewers.session(bearer_credential((context.connection_params or {})["authorization"]))
        assert session is not None
        context.viewer, context.roles = session.user, session.roles
        return strawberry.UNSET


def create_ordinary_app(settings: Settings) -> Starlette:
    """Returns an ordinary Strawberry application with the product's types and data."""
    schema = strawberry.Schema(query=Query, subscription=Subscription, config=StrawberryConfig(scalar_map=SCALARS))

    @asynccontextmanager
    async def lifespan(app: Starlette) -> AsyncIterator[None]:
        assert settings.mongodb_uri
        assert settings.redis_url
        async with open_stores(
            settings.mongodb_uri, settings.redis_url, settings.database, settings.mongo_driver
        ) as stores:
            view = OrdinaryView(schema, stores, ViewerSessions(server.app.authenticators(settings, stores)))
            app.router.routes.append(WebSocketRoute("/graphql", view))
            yield

    return Starlette(routes=[Route("/readyz", answer_readiness)], lifespan=lifespan)


# Without GraphQL: one pub/sub subscription receives complete payloads, and every payload is sent to every socket.


@dataclass(frozen=True, slots=True, eq=False)
class SubscribedSocket:
    """An open socket with one subscription. The client chose `operation_id`."""

    operation_id: str
    send: Send
    protocol: WebSocketProtocol | None
    """The product's WebSocket protocol. None for variants that use one of uvicorn's protocols."""


SendPayloads = Callable[[Sequence[SubscribedSocket], Sequence[bytes]], Awaitable[None]]


async def send_each_by_asgi(sockets: Sequence[SubscribedSocket], payloads: Sequence[bytes]) -> None:
    """Sends each frame with a separate call of ASGI's `send`."""
    for payload in payloads:
        text = payload.decode()
        for socket_ in sockets:
            frame = f'{{"type":"next","id":"{socket_.operation_id}","payload":{text}}}'
            await socket_.send({"type": "websocket.send", "text": frame})
        await _end_loop_iteration()


async def write_each_frame(sockets: Sequence[SubscribedSocket], payloads: Sequence[bytes]) -> None:
    """Writes each frame separately to the socket's transport."""
    for payload in payloads:
        await write_joined(sockets, [payload])
        await _end_loop_iteration()


async def _end_loop_iteration() -> None:
    """Ends the loop iteration, because uvloop joins all writes of one iteration."""
    await asyncio.sleep(0)


async def write_joined(sockets: Sequence[SubscribedSocket], payloads: Sequence[bytes]) -> None:
    """Writes the frames of all payloads to each socket, in one write to its transport."""
    if sockets:
        # The frames are built once for all sockets, with zeros in place of the operation id. The ids are UUIDs, so they
        # all have the same length. No payload contains 36 zeros in a row.
        placeholder = b"0" * len(sockets[0].operation_id)
        frames = b"".join(text_frame(b'{"type":"next","id":"%b","payload":%b}' % (placeholder, p)) for p in payloads)
        for socket_ in sockets:
            assert socket_.protocol
            socket_.protocol.write_events(frames.replace(placeholder, socket_.operation_id.encode()), len(payloads))


def text_frame(payload: bytes) -> bytes:
    """Returns an unmasked text frame, as servers send them."""
    return text_frame_header(len(payload)) + payload


@dataclass(slots=True)
class PayloadApplication:
    """An ASGI application with the part of graphql-transport-ws that the benchmark needs."""

    redis: Redis
    send_payloads: SendPayloads
    sockets: dict[str, SubscribedSocket] = field(default_factory=dict)
    pending: list[bytes] = field(default_factory=list)
    has_pending: asyncio.Event = field(default_factory=asyncio.Event)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serves one socket until it is closed."""
        await receive()  # websocket.connect
        await send({"type": "websocket.accept", "subprotocol": GRAPHQL_TRANSPORT_WS_PROTOCOL})
        ids: list[str] = []
        while (message := await receive())["type"] == "websocket.receive":
            content = orjson.loads(message["text"])
            if content["type"] == "connection_init":
                await send({"type": "websocket.send", "text": '{"type":"connection_ack"}'})
            elif content["type"] == "subscribe":
                socket_ = SubscribedSocket(content["id"], send, connection_of(scope))
                await send_each_by_asgi([socket_], [READY_PAYLOAD])
                self.sockets[socket_.operation_id] = socket_
                ids.append(socket_.operation_id)
        for id_ in ids:
            del self.sockets[id_]

    async def receive_payloads(self) -> None:
        """Collects payloads from Redis."""
        async with self.redis.pubsub() as pubsub:
            await pubsub.subscribe(PAYLOADS_CHANNEL)
            async for message in pubsub.listen():
                if message["type"] == "message":
                    self.pending.extend(message["data"].split(b"\n"))
                    self.has_pending.set()

    async def send_pending_payloads(self) -> None:
        """Sends pending payloads to all sockets, in a loop."""
        while True:
            await self.has_pending.wait()
            self.has_pending.clear()
            payloads, self.pending = self.pending, []
            await self.send_payloads(list(self.sockets.values()), payloads)


def factory_without_graphql(send_payloads: SendPayloads) -> Callable[[Settings], Starlette]:
    """Returns a factory of applications without GraphQL that send payloads with `send_payloads`."""

    def create_app(settings: Settings) -> Starlette:
        assert settings.redis_url
        application = PayloadApplication(Redis.from_url(settings.redis_url), send_payloads)

        @asynccontextmanager
        async def lifespan(_app: Starlette) -> AsyncIterator[None]:
            loops = application.receive_payloads(), application.send_pending_payloads()
            tasks = [asyncio.create_task(loop) for loop in loops]
            yield
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)

        routes = [Route("/readyz", answer_readiness), WebSocketRoute("/graphql", application)]
        return Starlette(routes=routes, lifespan=lifespan)

    return create_app


async def follow_single_events(
    hub: Hub, stream: Stream, since: StreamPosition | None
) -> AsyncIterator[SubscriptionStart | IdleTimeout | EventBatch]:
    """Follows a stream like `follow_batches`, but yields each event as a batch, in its own loop iteration."""
    async with aclosing(follow_batches(hub, stream, since)) as items:
        async for item in items:
            if not isinstance(item, EventBatch):
                yield item
                continue
            for event in item.events:
                yield EventBatch(StreamPosition(item.position.epoch, event.event.n), [event])
                await _end_loop_iteration()


FACTORIES: dict[str, Callable[[Settings], ASGIApp]] = {
    "ordinary": create_ordinary_app,
    "asgi": factory_without_graphql(send_each_by_asgi),
    "legacy": factory_without_graphql(send_each_by_asgi),
    "transport": factory_without_graphql(write_each_frame),
    "joined": factory_without_graphql(write_joined),
    "one-by-one": server.app.create_app,
}
"""Factories of applications by variant, except `library`, which has a server of its own."""

UVICORN_PROTOCOLS = {"ordinary": "websockets-sansio", "asgi": "websockets-sansio", "legacy": "websockets"}
"""uvicorn's names of WebSocket protocols, by variant. The other variants of FACTORIES use the product's."""


def main() -> None:
    """Serves a variant on the inherited socket until SIGTERM. All but `library` replace parts of the product."""
    variant, listener = sys.argv[1], socket.socket(fileno=int(sys.argv[2]))
    settings = Settings.from_environment()
    configure_logging(settings.log_format, settings.log_level)
    if variant == "library":
        # Not at the top, because fanout_library imports this module.
        from benchmarks import fanout_library

        fanout_library.main(settings, listener)
        return
    vars(server.app).update(create_app=FACTORIES[variant])
    if variant == "one-by-one":
        vars(server.graphql.broadcasts).update(follow_batches=follow_single_events)
    if variant in UVICORN_PROTOCOLS:
        vars(server.web).update(WebSocketProtocol=UVICORN_PROTOCOLS[variant])
    server.web.serve_web(settings, listener)


if __name__ == "__main__":
    main()
