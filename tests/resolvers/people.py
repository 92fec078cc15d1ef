"""Users that execute operations in this process, on real stores and without a server."""

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Iterable, Sequence
from contextlib import aclosing, asynccontextmanager, suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

import orjson
from graphql import ExecutionResult

from resolvers.context import Context, ImageSigner
from resolvers.limits.concurrency import ConcurrencyLimiter
from schema.root import schema
from server.graphql import CostPerMinute, DocumentLimits, Operations
from server.graphql.documents import OperationRefused, OperationRequest
from server.graphql.subscriptions import Subscriptions
from storage.identity.records import User
from storage.identity.roles import Role
from storage.publishing.credentials.connections import BegunConnection, ConnectionOwner, ConnectionRequest
from storage.publishing.networks import Network
from storage.stores import Stores
from tests.client import GraphQLFailed
from tests.execution import refusal, run_operation

DEADLINE_S = 60.0
OPERATIONS = Operations(
    schema,
    # Generated operations select more than clients may.
    DocumentLimits(tokens=10**6, depth=20, aliases=10**4, root_fields=10**4, cost=10**12),
    cost_per_minute=CostPerMinute(10**15, 10**15, 10**15),
    concurrency=ConcurrencyLimiter(max_wait_s=DEADLINE_S),
)
"""The product's operations, as the server runs them. All tests of this process share the prepared documents."""

Answer = dict[str, Any]

MESSAGE = """
fragment message on Message {
  id timestamp topicId text editedAt deletedAt
  author { id } stamp { id } mentions { handle } reactions { emoji count reacted users { handle } }
}
"""
POST = "mutation ($input: PostMessageInput!) { done: postMessage(input: $input) { ...message } }" + MESSAGE
PAGE = (
    """
query ($topic: ID!, $oldest: Timestamp, $latest: Timestamp, $limit: Int! = 50) {
  messages(topicId: $topic, oldest: $oldest, latest: $latest, limit: $limit) {
    items { ...message } hasOlder hasNewer oldest newest
  }
}
"""
    + MESSAGE
)
REACT = (
    "mutation ($id: ID!, $emoji: String!) { done: addReaction(messageId: $id, emoji: $emoji) { ...message } }" + MESSAGE
)
UNREACT = REACT.replace("addReaction", "removeReaction")
EDIT = "mutation ($id: ID!, $text: String!) { done: editMessage(id: $id, text: $text) { ...message } }" + MESSAGE
DELETE = "mutation ($id: ID!) { done: deleteMessage(id: $id) { ...message } }" + MESSAGE
TOPIC_EVENTS = (
    """
subscription ($topic: ID!, $since: Cursor) {
  topicEvents(topicId: $topic, since: $since) {
    type: __typename
    ... on Event { cursor }
    ... on StreamReady { resumed }
    ... on MessagePosted { message { ...message } }
    ... on MessageEdited { message { ...message } }
    ... on MessageDeleted { message { ...message } }
    ... on ReactionsChanged { message { ...message } }
  }
}
"""
    + MESSAGE
)

CREATE_POST = "mutation ($input: CreatePostInput!) { done: createPost(input: $input) { id timestamp text } }"
HOME = """
query ($oldest: Timestamp, $latest: Timestamp, $limit: Int! = 50) {
  homeFeed(oldest: $oldest, latest: $latest, limit: $limit) {
    items { id text author { id } } hasOlder hasNewer oldest newest state
  }
}
"""


def fake_signed_url(url: str, copy_id: str = "") -> str:
    """Returns a recognizable substitute for a signed image URL."""
    return f"/images/signed/{url}#{copy_id}" if copy_id else f"/images/signed/{url}"


class EventReader:
    """A client's connection in this process, which keeps the events that are written to it."""

    def __init__(self) -> None:
        self._answers: asyncio.Queue[Answer | None] = asyncio.Queue()

    def write_events(self, frames: bytes, events: int) -> None:
        """Keeps the events of complete text frames."""
        for _ in range(events):
            size_bytes = {126: 2, 127: 8}.get(frames[1], 0)
            start = 2 + size_bytes
            end = start + (int.from_bytes(frames[2:start]) if size_bytes else frames[1])
            self._answers.put_nowait({"errors": [], **orjson.loads(frames[start:end])["payload"]})
            frames = frames[end:]
        assert not frames

    async def wait_for_room(self) -> None:
        """Returns at once, since the events take memory of this process only."""

    def end(self, errors: Sequence[Exception] = ()) -> None:
        """Ends the events, with the errors that ended the subscription."""
        if errors:
            self._answers.put_nowait(_answer(refusal(errors)))
        self._answers.put_nowait(None)

    async def __aiter__(self) -> AsyncGenerator[Answer, None]:
        """Yields the data and errors of each event, and last the errors that ended the subscription."""
        while (answer := await self._answers.get()) is not None:
            yield answer


@dataclass
class RecordedConnections:
    """Stands for the social networks, which are on the other side of the use cases. Keeps what was begun."""

    connectable: Sequence[Network] = tuple(Network)
    begun: list[tuple[ConnectionOwner, ConnectionRequest]] = field(default_factory=list)

    async def begin(self, owner: ConnectionOwner, request: ConnectionRequest, /) -> BegunConnection:
        self.begun.append((owner, request))
        return BegunConnection("https://network.example/allow", datetime(2030, 1, 1, tzinfo=UTC))


@dataclass
class Person:
    """A user that executes operations. `user` is None for an anonymous viewer."""

    stores: Stores
    user: User | None = None
    roles: frozenset[Role] = frozenset()
    sign_image: ImageSigner = fake_signed_url
    subscriptions: Subscriptions = field(default_factory=lambda: Subscriptions(OPERATIONS))
    has_public_address: bool = False
    scopes: frozenset[str] | None = None
    """The scopes of a service key; None for a person."""

    session_id: str | None = None
    """The id of a browser's session, which is not stored; None for a token."""

    connections: RecordedConnections = field(default_factory=RecordedConnections)

    @property
    def id(self) -> str:
        assert self.user is not None
        return self.user.id

    @property
    def context(self) -> Context:
        return Context(
            self.stores,
            self.sign_image,
            self.user,
            self.roles,
            self.scopes,
            session_id=self.session_id,
            account_connections=self.connections,
            has_public_address=self.has_public_address,
        )

    async def execute(self, query: str, /, **variables: Any) -> Answer:
        """Executes a query or a mutation, and returns its data and errors."""
        return _answer(await run_operation(OPERATIONS, self.context, query, variables))

    async def run(self, query: str, /, **variables: Any) -> Answer:
        """Executes a query or a mutation, and returns its data. Raises: GraphQLFailed."""
        return _data(await self.execute(query, **variables))

    async def fails(self, query: str, /, **variables: Any) -> Answer:
        """Executes an operation that must fail with one error, and returns the extensions of that error."""
        (error,) = (await self.execute(query, **variables))["errors"]
        extensions: Answer = error["extensions"]
        return extensions

    async def code(self, query: str, /, **variables: Any) -> str | None:
        """Executes an operation, and returns the code of its error, or None if it succeeds."""
        errors = (await self.execute(query, **variables))["errors"]
        assert len(errors) <= 1, errors
        return errors[0]["extensions"]["code"] if errors else None

    async def answers(self, query: str, /, **variables: Any) -> AsyncGenerator[Answer, None]:
        """Subscribes, and yields the data and errors of each event."""
        reader = EventReader()
        task = asyncio.create_task(self._serve(query, variables, reader))
        try:
            async with aclosing(aiter(reader)) as answers:
                async for answer in answers:
                    yield answer
        finally:
            task.cancel()
            with suppress(asyncio.CancelledError):
                await task

    async def _serve(self, query: str, variables: dict[str, Any], reader: EventReader) -> None:
        try:
            operation = OPERATIONS.documents.operation(OperationRequest(query, variables))
            error = await self.subscriptions.serve(operation, self.context, reader, b"1")
        except OperationRefused as refused:
            reader.end(refused.errors)
        except Exception as failure:
            reader.end([failure])
        else:
            reader.end([error] if error else [])

    @asynccontextmanager
    async def subscribed(self, query: str, /, **variables: Any) -> AsyncIterator["RunningSubscription"]:
        """Subscribes, waits for the first event, and ends the subscription after the block."""
        async with aclosing(self.answers(query, **variables)) as answers:
            subscription = RunningSubscription(answers)
            await subscription.next_event()
            yield subscription

    async def create_community(self, name: str = "Fishers", **more: Any) -> str:
        """Creates a community and returns its id."""
        query = "mutation ($input: CreateCommunityInput!) { done: createCommunity(input: $input) { id } }"
        return str((await self.run(query, input={"name": name, **more}))["done"]["id"])

    async def join(self, community: str) -> None:
        """Joins a community."""
        await self.run("mutation ($id: ID!) { joinCommunity(communityId: $id) { id } }", id=community)

    async def leave(self, community: str) -> None:
        """Leaves a community."""
        await self.run("mutation ($id: ID!) { leaveCommunity(communityId: $id) { id } }", id=community)

    async def create_topic(self, community: str, title: str = "Tides") -> str:
        """Creates a topic and returns its id."""
        query = "mutation ($input: CreateTopicInput!) { done: createTopic(input: $input) { id } }"
        return str((await self.run(query, input={"communityId": community, "title": title}))["done"]["id"])

    async def post(self, topic: str, text: str = "Hello", **more: Any) -> Answer:
        """Posts a message and returns it."""
        return await self.do(POST, input={"topicId": topic, "text": text, **more})

    async def create_post(self, text: str = "Hello", **more: Any) -> str:
        """Creates a post and returns its id."""
        return str((await self.do(CREATE_POST, input={"text": text, **more}))["id"])

    async def follow(self, other: "Person") -> None:
        """Follows a user."""
        await self.run("mutation ($id: ID!) { follow(userId: $id) { following } }", id=other.id)

    async def unfollow(self, other: "Person") -> None:
        """Unfollows a user."""
        await self.run("mutation ($id: ID!) { unfollow(userId: $id) { following } }", id=other.id)

    async def home(self, **bounds: Any) -> list[str]:
        """Returns the texts of a page of the home feed, by default the newest page."""
        page = await self.run(HOME, **(bounds or {"latest": "now"}))
        return [item["text"] for item in page["homeFeed"]["items"]]

    async def do(self, query: str, /, **variables: Any) -> Answer:
        """Executes an operation, and returns its field with the alias `done`."""
        done: Answer = (await self.run(query, **variables))["done"]
        return done

    async def page(self, topic: str, **bounds: Any) -> Answer:
        """Returns a page of a topic, by default the newest page."""
        page: Answer = (await self.run(PAGE, topic=topic, **(bounds or {"latest": "now"})))["messages"]
        return page

    async def texts(self, topic: str) -> list[str]:
        """Returns the texts of the newest page, oldest first."""
        return [item["text"] for item in reversed((await self.page(topic))["items"])]

    async def block(self, other: "Person") -> None:
        """Blocks a user."""
        await self.run("mutation ($id: ID!) { blockUser(userId: $id) { blocked } }", id=other.id)

    async def unblock(self, other: "Person") -> None:
        """Unblocks a user."""
        await self.run("mutation ($id: ID!) { unblockUser(userId: $id) { blocked } }", id=other.id)


class RunningSubscription:
    """A running subscription."""

    def __init__(self, answers: AsyncIterator[Answer]) -> None:
        self._answers = answers

    async def next_answer(self) -> Answer:
        """Returns the data and errors of the next event."""
        async with asyncio.timeout(DEADLINE_S):
            return await anext(self._answers)

    async def next_event(self) -> Answer:
        """Returns the next event. Raises: GraphQLFailed."""
        (event,) = _data(await self.next_answer()).values()
        result: Answer = event
        return result


@dataclass
class ChatScenario:
    """A community of Ann and Bob with one topic. Eve belongs to their organization but to no community."""

    ann: Person
    bob: Person
    eve: Person
    community: str
    topic: str


class SignIn:
    """A function that signs users in on the stores."""

    def __init__(self, stores: Stores) -> None:
        self.stores = stores

    async def __call__(
        self,
        id_: str,
        organization: str = "acme",
        roles: Iterable[Role] = (Role.MEMBER,),
        name: str | None = None,
        handle: str | None = None,
    ) -> Person:
        """Signs in the user with this id, and creates the user if the organization has none with this id."""
        user = await self.stores.users.sign_in(organization, id_, list(roles), name, handle)
        return Person(self.stores, user, frozenset(roles))


async def until_outbox_is_empty(stores: Stores) -> None:
    """Waits until the outbox is empty."""
    async with asyncio.timeout(DEADLINE_S):
        while await stores.mongo["outbox"].count_documents({}):
            await asyncio.sleep(0.02)


def _answer(result: ExecutionResult) -> Answer:
    return {"data": result.data, "errors": [error.formatted for error in result.errors or ()]}


def _data(answer: Answer) -> Answer:
    if answer["errors"]:
        raise GraphQLFailed(answer["errors"])
    data: Answer = answer["data"]
    return data
