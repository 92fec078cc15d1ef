"""Ordinary Strawberry over the product's data: `python -m benchmarks.peers.ordinary_strawberry web --fd=SOCKET_FD`.

Strawberry's executor without changes, a resolver that reads MongoDB, a DataLoader for authors, and a DataLoader for the
viewer's reactions. The server supports only the benchmark's query, and answers it like the product.
"""

import socket
import sys
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from functools import partial

import orjson
import strawberry
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route
from starlette.websockets import WebSocket
from strawberry.asgi import GraphQL
from strawberry.dataloader import DataLoader
from strawberry.schema.config import StrawberryConfig

import server.app
import server.web
from schema.scalars import SCALARS
from server.auth.credentials import bearer_credential
from server.auth.viewers import ViewerSession, ViewerSessions
from server.logs import configure_logging
from server.settings import Settings
from storage.mongo import Document, Mongo
from storage.stores import open_stores
from storage.timeline import MAX_TIMESTAMP, NOW, Timestamp


@dataclass
class TimelineContext:
    """The viewer and the data loaders of a request."""

    mongo: Mongo
    viewer: ViewerSession
    authors: "DataLoader[str, Document]"
    viewer_emojis: "DataLoader[tuple[str, int], set[str]]"


Info = strawberry.Info[TimelineContext, None]


@strawberry.type
class User:
    id: strawberry.ID
    handle: str
    name: str


@strawberry.type
class Reaction:
    emoji: str
    count: int
    reacted: bool


@strawberry.type
class Message:
    id: strawberry.ID
    timestamp: Timestamp
    text: str
    document: strawberry.Private[Document]

    @strawberry.field
    async def author(self, info: Info) -> User:
        author = await info.context.authors.load(self.document["author"])
        return User(id=author["_id"]["id"], handle=author["handle"], name=author["name"])

    @strawberry.field
    async def reactions(self, info: Info) -> list[Reaction]:
        counts = self.document.get("reactions", ())
        own_emojis = await info.context.viewer_emojis.load(tuple(self.document["_id"].values())) if counts else set()
        return [
            Reaction(emoji=each["emoji"], count=each["count"], reacted=each["emoji"] in own_emojis) for each in counts
        ]


@strawberry.type
class Page:
    items: list[Message]
    has_older: bool
    has_newer: bool


def _message(document: Document) -> Message:
    topic, at = document["_id"]["t"], document["_id"]["ts"]
    return Message(id=f"{topic}-{at}", timestamp=at, text=document["text"], document=document)  # type: ignore[arg-type]


@strawberry.type
class Query:
    @strawberry.field
    async def messages(self, info: Info, topic_id: strawberry.ID, latest: Timestamp, limit: int) -> Page:
        mongo, viewer = info.context.mongo, info.context.viewer.user
        topic = await mongo["topics"].find_one({"_id": topic_id, "org": viewer.organization_id})
        assert topic is not None
        assert await mongo["memberships"].find_one({"community": topic["community"], "user": viewer.id})
        blocks = await mongo["blocks"].find({"org": viewer.organization_id, "user": viewer.id}).to_list(None)
        visible: Document = {"author": {"$nin": [block["blocked"] for block in blocks]}} if blocks else {}
        high = {"t": topic_id, "ts": MAX_TIMESTAMP if latest == NOW else latest}
        in_range: Document = {"_id": {"$gte": {"t": topic_id, "ts": 0}, "$lte": high}, **visible}
        documents = await mongo["messages"].find(in_range).sort("_id", -1).limit(limit + 1).to_list(None)
        return Page(
            items=[_message(each) for each in documents[:limit]],
            has_older=len(documents) > limit,
            has_newer=latest != NOW and await has_newer(mongo, topic, documents, high, visible),
        )


async def has_newer(mongo: Mongo, topic: Document, page: Sequence[Document], high: Document, visible: Document) -> bool:
    """Returns whether a visible message follows the page, from the topic's end unless the viewer blocks authors."""
    if page and not visible:
        return bool(topic["last"] > page[0]["_id"]["ts"])
    newer = {"_id": {"$gt": high, "$lte": {"t": topic["_id"], "ts": MAX_TIMESTAMP}}, **visible}
    return await mongo["messages"].find_one(newer) is not None


async def load_authors(mongo: Mongo, organization_id: str, ids: list[str]) -> Sequence[Document]:
    """Returns users in the order of the ids."""
    matching = {"_id": {"$in": [{"org": organization_id, "id": id_} for id_ in ids]}}
    users = {user["_id"]["id"]: user async for user in mongo["users"].find(matching)}
    return [users[id_] for id_ in ids]


async def load_viewer_emojis(mongo: Mongo, viewer_id: str, keys: list[tuple[str, int]]) -> Sequence[set[str]]:
    """Returns the viewer's emojis on each of these messages of one topic."""
    matching = {"_id.t": keys[0][0], "_id.ts": {"$in": [timestamp for _, timestamp in keys]}, "_id.u": viewer_id}
    emojis: dict[tuple[str, int], set[str]] = {key: set() for key in keys}
    async for reaction in mongo["reactions"].find(matching):
        emojis[reaction["_id"]["t"], reaction["_id"]["ts"]].add(reaction["_id"]["e"])
    return list(emojis.values())


class OrdinaryView(GraphQL[TimelineContext, None]):
    """Strawberry's view, with orjson for the answers, as Strawberry's documentation recommends."""

    def __init__(self, schema: strawberry.Schema, mongo: Mongo, viewers: ViewerSessions) -> None:
        super().__init__(schema)
        self._mongo, self._viewers = mongo, viewers

    async def get_context(self, request: Request | WebSocket, response: Response | WebSocket) -> TimelineContext:
        """Returns the context of a request."""
        session = await self._viewers.session(bearer_credential(request.headers["authorization"]))
        assert session is not None
        user = session.user
        authors = DataLoader(partial(load_authors, self._mongo, user.organization_id))
        return TimelineContext(
            self._mongo, session, authors, DataLoader(partial(load_viewer_emojis, self._mongo, user.id))
        )

    def encode_json(self, data: object) -> bytes:
        """Returns the body of an answer."""
        return orjson.dumps(data)


async def ready(_request: Request) -> Response:
    """Answers readiness checks."""
    return Response()


def create_app(settings: Settings) -> Starlette:
    """Returns the application."""
    schema = strawberry.Schema(query=Query, config=StrawberryConfig(scalar_map=SCALARS))

    @asynccontextmanager
    async def lifespan(app: Starlette) -> AsyncIterator[None]:
        assert settings.mongodb_uri
        assert settings.redis_url
        async with open_stores(
            settings.mongodb_uri, settings.redis_url, settings.database, settings.mongo_driver
        ) as stores:
            view = OrdinaryView(schema, stores.mongo, ViewerSessions(server.app.authenticators(settings, stores)))
            app.router.routes.append(Route("/graphql", view, methods=["POST"]))
            yield

    return Starlette(routes=[Route("/readyz", ready)], lifespan=lifespan)


def main() -> None:
    """Serves on the inherited socket until SIGTERM."""
    settings = Settings.from_environment()
    configure_logging(settings.log_format, settings.log_level)
    vars(server.app).update(create_app=create_app)
    server.web.serve_web(settings, socket.socket(fileno=int(sys.argv[2].removeprefix("--fd="))))


if __name__ == "__main__":
    main()
