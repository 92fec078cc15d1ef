"""Users that execute operations in this process, on real stores and without a server."""

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Iterable
from contextlib import aclosing, asynccontextmanager
from dataclasses import dataclass
from typing import Any

from strawberry import Schema
from strawberry.extensions import ParserCache, ValidationCache
from strawberry.types import ExecutionResult

from resolvers.context import Context, ImageSigner
from schema.root import build_schema
from storage.identity.records import User
from storage.identity.roles import Role
from storage.stores import Stores
from tests.client import GraphQLFailed

CACHED_DOCUMENTS = 4096
"""Number of parsed and validated documents that are kept."""

schema = build_schema(lambda: ParserCache(CACHED_DOCUMENTS), lambda: ValidationCache(CACHED_DOCUMENTS))
"""The product's schema. Validation takes longer than most operations, so each document is validated once."""

Answer = dict[str, Any]
DEADLINE_S = 60.0

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


@dataclass
class Person:
    """A user that executes operations. `user` is None for an anonymous viewer."""

    stores: Stores
    user: User | None = None
    roles: frozenset[Role] = frozenset()
    sign_image: ImageSigner = fake_signed_url
    schema: Schema = schema

    @property
    def id(self) -> str:
        assert self.user is not None
        return self.user.id

    @property
    def context(self) -> Context:
        return Context(self.stores, self.sign_image, self.user, self.roles)

    async def execute(self, query: str, /, **variables: Any) -> Answer:
        """Executes a query or a mutation, and returns its data and errors."""
        result = await self.schema.execute(query, variables, context_value=self.context)
        assert isinstance(result, ExecutionResult)
        return _answer(result)

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
        results = await self.schema.subscribe(query, variables, context_value=self.context)
        if isinstance(results, ExecutionResult):
            yield _answer(results)
            return
        async with aclosing(results) as open_results:
            async for result in open_results:
                yield _answer(result)

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
