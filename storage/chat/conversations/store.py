"""Starts, reads and changes conversations."""

from collections.abc import Collection, Iterable, Sequence
from contextlib import suppress

from storage.chat.conversations.changes import (
    AcceptConversation,
    AddPeople,
    ConversationChange,
    LeaveConversation,
    RenameConversation,
    ReopenPair,
    StartConversation,
)
from storage.chat.conversations.contacts import CONTACTS_PER_DAY, Contacts, find_contacts
from storage.chat.conversations.records import Conversation, ConversationState, pair_id
from storage.chat.conversations.rules import notification_content
from storage.chat.documents import TopicDocument
from storage.chat.threads.rules import wait_for_thread_commits
from storage.chat.topics import TOPIC_FIELDS, topic_record
from storage.errors import NotFound
from storage.idempotency import DuplicateRequest, IdempotencyKey
from storage.identity.records import User, user_stream
from storage.ids import new_id
from storage.mongo import Document, Mongo
from storage.mongo.batch_loader import BatchLoader
from storage.notifications import NOTIFICATIONS
from storage.streams.log import Stream
from storage.streams.outbox import Outbox, add_rows
from storage.streams.sequencer import Sequencer
from storage.timeline import TimelinePage, TimelineRange, read_page

_FIELDS = {**TOPIC_FIELDS, "direct": 1}


class ConversationStore:
    """Starts, reads and changes conversations. For people outside a conversation, it does not exist."""

    def __init__(
        self, mongo: Mongo, sequencer: Sequencer, outbox: Outbox, contacts_per_day: int = CONTACTS_PER_DAY
    ) -> None:
        self._mongo = mongo
        self._sequencer = sequencer
        self._outbox = outbox
        self._contacts_per_day = contacts_per_day
        self._by_id: BatchLoader[str, Conversation] = BatchLoader(self._load)

    async def find(self, viewer: User, id_: str) -> Conversation | None:
        """Returns a conversation that the person sees, or None."""
        conversation = await self._by_id.get(id_)
        if conversation is None or conversation.topic.organization_id != viewer.organization_id:
            return None
        return conversation if conversation.state_of(viewer.id) is not None else None

    async def get(self, viewer: User, id_: str) -> Conversation:
        """Returns a conversation that the person sees. Raises: NotFound."""
        conversation = await self.find(viewer, id_)
        if conversation is None:
            raise NotFound("conversation", id_)
        return conversation

    async def find_many(self, viewer: User, ids: Collection[str]) -> dict[str, Conversation]:
        """Returns those of the conversations that the person sees. Concurrent calls share one read."""
        found = await self._by_id.find(ids)
        own = {id_: each for id_, each in found.items() if each.topic.organization_id == viewer.organization_id}
        return {id_: each for id_, each in own.items() if each.state_of(viewer.id) is not None}

    async def joined_count(self, id_: str) -> int:
        """Returns how many people have joined a conversation; 0 if it does not exist. Checks no viewer's right."""
        conversation = await self._by_id.get(id_)
        return 0 if conversation is None else len(conversation.direct["joined"])

    async def joined_people(self, organization_id: str, id_: str) -> set[str] | None:
        """Returns the people who have joined; None if the organization has no such conversation. Checks no right."""
        conversation = await self._by_id.get(id_)
        if conversation is None or conversation.topic.organization_id != organization_id:
            return None
        return set(conversation.direct["joined"])

    async def by_id(self, ids: Iterable[str]) -> dict[str, Conversation]:
        """Returns the conversations of these ids, of any people, with one read."""
        return await self._load(list(set(ids)))

    async def page(self, viewer: User, state: ConversationState, range_: TimelineRange) -> TimelinePage[Conversation]:
        """Returns a page of the conversations in which the person has this state, by last activity.

        Leaves out conversations that somebody else has started and that have no message yet.
        """
        filters: Document = {"org": viewer.organization_id}
        if state is ConversationState.JOINED:
            filters |= {"direct.joined": viewer.id, "$or": [{"direct.written": True}, {"creator": viewer.id}]}
        else:
            filters |= {"direct.requested": viewer.id, "direct.written": True}

        async def fetch(low: int, high: int, ascending: bool, limit: int) -> list[Conversation]:
            query, order = {**filters, "last": {"$gte": low, "$lte": high}}, 1 if ascending else -1
            sort = [("last", order), ("_id", order)]
            rows: list[TopicDocument] = await self._mongo.find("topics", query, _FIELDS, sort, limit)
            return [_record(row) for row in rows]

        return await read_page(range_, fetch, lambda each: each.topic.last_activity)

    async def start(self, starter: User, people: Sequence[User], name: str, key: IdempotencyKey | None) -> Conversation:
        """Starts a new group or, with one other person, starts or reopens the conversation of the two people.

        A repeated key returns the conversation that it started. Raises: Forbidden, RateLimited, Conflict.
        """
        contacts = await find_contacts(self._mongo, starter, people, self._contacts_per_day)
        is_pair = len(people) == 1
        id_ = pair_id(starter.organization_id, starter.id, people[0].id) if is_pair else new_id()
        change = StartConversation(id_, starter, contacts, name, is_pair, key)
        try:
            is_new = await self._sequencer.commit(user_stream(starter.organization_id, starter.id), change)
        except DuplicateRequest as duplicate:
            return await self.get(starter, duplicate.result_id)
        if not is_new:
            await self._commit(id_, ReopenPair(starter.organization_id, starter.id, starter, contacts))
        return await self.get(starter, id_)

    async def accept(self, person: User, id_: str) -> Conversation:
        """Makes a person who was asked join. Idempotent. Raises: NotFound, Conflict for a full group."""
        await self._commit(id_, AcceptConversation(person.organization_id, person.id, person))
        return await self.get(person, id_)

    async def leave(self, organization_id: str, user_id: str, id_: str, only_request: bool = False) -> None:
        """Declines a request, or leaves. Idempotent. Raises: NotFound; Conflict for joined people if `only_request`."""
        await self._commit(id_, LeaveConversation(organization_id, user_id, only_request))
        await wait_for_thread_commits(self._mongo, id_)

    async def leave_pair(self, organization_id: str, user_id: str, other_id: str) -> None:
        """Makes a person leave the conversation with another person, if there is one."""
        with suppress(NotFound):
            await self.leave(organization_id, user_id, pair_id(organization_id, user_id, other_id))

    async def add(self, actor: User, id_: str, people: Collection[User]) -> Conversation:
        """Adds people to a group. Idempotent. Raises: NotFound, Forbidden, RateLimited, Conflict."""
        await self.get(actor, id_)
        contacts: Contacts = await find_contacts(self._mongo, actor, people, self._contacts_per_day)
        await self._commit(id_, AddPeople(actor.organization_id, actor.id, actor, contacts))
        return await self.get(actor, id_)

    async def rename(self, actor: User, id_: str, name: str) -> Conversation:
        """Renames a group. Idempotent. Raises: NotFound, Forbidden; Conflict for a pair."""
        await self._commit(id_, RenameConversation(actor.organization_id, actor.id, name))
        return await self.get(actor, id_)

    async def update_notification(self, reader: User, id_: str) -> None:
        """Lets the person's notification of the conversation follow a read mark that was moved.

        Does nothing if there is no notification, and none that is about to be stored for the mark of before.
        """
        stream = user_stream(reader.organization_id, reader.id)
        row = {"stream": stream.name, "kind": "ConversationNotification", "ref": id_}
        stored = {"_id.o": reader.organization_id, "_id.u": reader.id, "about": notification_content(id_)}
        # Rows are read first. A relay that has read the mark of before removes its row in the commit that stores the
        # notification. So either the row or the notification is found.
        if await self._exists("outbox", row) or await self._exists(NOTIFICATIONS, stored):
            await add_rows(self._mongo, stream, "ConversationNotification", [id_])
            self._outbox.nudge(stream.name)

    async def _exists(self, collection: str, query: Document) -> bool:
        return bool(await self._mongo.find(collection, query, {"_id": 1}, limit=1))

    async def _commit(self, id_: str, change: ConversationChange[None]) -> None:
        # The change itself checks the rights. This earlier check keeps people outside from causing commits, and finds
        # no topics of communities.
        conversation = (await self._load([id_])).get(id_)
        if conversation is None or not conversation.is_known_to(change.organization_id, change.actor_id):
            raise NotFound("conversation", id_)
        await self._sequencer.commit(Stream("topic", id_), change)

    async def _load(self, ids: Sequence[str]) -> dict[str, Conversation]:
        query = {"_id": {"$in": list(ids)}, "direct": {"$exists": True}}
        rows: list[TopicDocument] = await self._mongo.find("topics", query, _FIELDS)
        return {row["_id"]: _record(row) for row in rows}


def _record(row: TopicDocument) -> Conversation:
    return Conversation(topic_record(row), row["direct"])
