"""A topic of a community, and posts to it from one or several processes."""

import secrets
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, replace

from storage.chat.changes import NewMessage, PostMessage
from storage.chat.communities import NewCommunity
from storage.chat.records import Community, Message, Topic
from storage.chat.roles import CommunityRole, Moderator
from storage.idempotency import IdempotencyKey, idempotency_key
from storage.mongo import Document
from storage.stores import Stores
from storage.streams.log import Stream

OpenStores = Callable[..., AbstractAsyncContextManager[Stores]]
"""A function that opens the stores of another process."""


@dataclass(frozen=True)
class TopicScenario:
    """A topic, and the stores of one process."""

    stores: Stores
    community: Community
    topic: Topic

    @property
    def organization_id(self) -> str:
        return self.topic.organization_id

    @property
    def stream(self) -> Stream:
        return Stream("topic", self.topic.id)

    @property
    def community_stream(self) -> Stream:
        return Stream("community", self.community.id)

    def with_stores(self, stores: Stores) -> "TopicScenario":
        """Returns the same topic with the stores of another process."""
        return replace(self, stores=stores)

    def new_message(self, text: str = "hello", author: str = "ann") -> NewMessage:
        """Returns a new message for this topic."""
        return NewMessage(self.topic.id, self.community.id, author, text, None, ())

    def idempotency_key(self, key: str, text: str = "hello", author: str = "ann") -> IdempotencyKey:
        """Returns the key as the mutation postMessage would use it to post this text."""
        arguments = {"topicId": self.topic.id, "text": text}
        scoped_key = idempotency_key(self.organization_id, author, "postMessage", key, arguments)
        assert scoped_key is not None
        return scoped_key

    def post_change(self, text: str = "hello", key: str | None = None) -> PostMessage:
        """Returns the change that posts a message."""
        return PostMessage(self.new_message(text), None if key is None else self.idempotency_key(key, text))

    async def post(self, text: str = "hello", author: str = "ann", key: str | None = None) -> Message:
        """Posts a message in the process of these stores."""
        scoped_key = None if key is None else self.idempotency_key(key, text, author)
        return await self.stores.messages.post(self.new_message(text, author), scoped_key)

    async def age_events(self, up_to: int) -> None:
        """Makes the topic's events up to number `up_to` older than the retention period."""
        first_events = {"_id.s": self.stream.name, "_id.n": {"$lte": up_to}}
        hours_25_ms = 25 * 3600 * 1000
        subtract_25_hours = [{"$set": {"at": {"$subtract": ["$at", hours_25_ms]}}}]
        await self.stores.mongo["events"].update_many(first_events, subtract_25_hours)

    async def hand_over_and_leave(self) -> None:
        """Makes another person the owner of the community, which ann then leaves."""
        heir = await self.stores.users.sign_in(self.organization_id, "heir", (), None, None)
        await self.stores.communities.join(self.community, heir)
        await self.stores.moderation.set_role(self.community, Moderator("ann"), heir.id, CommunityRole.OWNER)
        await self.stores.communities.leave(self.community, "ann")

    async def messages(self) -> list[Document]:
        """Returns the topic's stored messages in order."""
        cursor = self.stores.mongo["messages"].find({"_id.t": self.topic.id}).sort("_id", 1)
        return await cursor.to_list(None)

    async def events(self) -> list[Document]:
        """Returns the topic's stored events in order."""
        cursor = self.stores.mongo["events"].find({"_id.s": self.stream.name}).sort("_id", 1)
        return await cursor.to_list(None)


async def keep_all(ids: set[str]) -> set[str]:
    """Returns all ids, as for a viewer who has joined every community."""
    return ids


async def create_topic_scenario(stores: Stores, organization_id: str | None = None) -> TopicScenario:
    """Creates a community that ann owns, with one topic. Without `organization_id`, the organization is new."""
    organization_id = organization_id or secrets.token_hex(6)
    founder = await stores.users.sign_in(organization_id, "ann", (), "Ann", None)
    community = await stores.communities.create(NewCommunity(organization_id, "Hilltops", ""), founder, None)
    return TopicScenario(stores, community, await stores.topics.create(community, "ann", "Beacons", None))
