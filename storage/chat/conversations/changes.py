"""Changes of conversations: starting one, changing the states of its people, and renaming it.

A start is committed to the stream of the person who starts, since the topic does not exist yet. All other changes are
committed to the topic, as messages are.
"""

import secrets
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from storage.chat.conversations.contacts import Contacts, contact_count_key, count_contacts
from storage.chat.conversations.documents import DirectFields
from storage.chat.conversations.records import ConversationState
from storage.chat.conversations.rules import announce_change, direct_fields, is_blocked_pair, load_pair_block, people_of
from storage.chat.documents import MembershipDocument, TopicDocument
from storage.chat.memberships import MEMBERSHIPS, loaded_memberships, new_membership, removals_stream, stored_user
from storage.errors import Conflict, Forbidden, NotFound
from storage.idempotency import IdempotencyKey
from storage.identity.records import User
from storage.identity.rights import IsActive, IsNotErased
from storage.mongo import Mongo, Session
from storage.streams.changes import Batch, Change, DocumentKey, Result, Right

TOPICS = "topics"

MAX_PEOPLE = 50
"""Maximum number of people who have joined a group or are asked."""

MAX_PEOPLE_EVER = 200
"""Maximum number of people of a group, with those who have declined or left."""


@dataclass(slots=True)
class StartConversation(Change[bool]):
    """Creates a conversation, unless it exists. The result says whether it is new."""

    max_timestamps = 1
    usual_events: ClassVar[int] = 0

    id: str
    starter: User
    contacts: Contacts
    name: str
    is_pair: bool
    idempotency: IdempotencyKey | None = None

    def needs(self) -> Sequence[DocumentKey]:
        """Returns the topic, and the count of people whom the starter has brought into conversations."""
        return [(TOPICS, self.id), contact_count_key(self.starter.organization_id, self.starter.id)]

    def rights(self) -> Sequence[Right]:
        """Returns that the starter's account is active, and that nobody is being erased."""
        organization_id, people = self.starter.organization_id, self.contacts.people
        return IsActive(self.starter.id, organization_id), *(IsNotErased(id_, organization_id) for id_ in people)

    def plan(self, batch: Batch) -> bool:
        """Puts the topic and the memberships. Raises: RateLimited."""
        if batch.get(TOPICS, self.id) is not None:
            return False
        count_contacts(batch, self.starter.organization_id, self.contacts, len(self.contacts.people))
        direct = self._direct_fields()
        batch.put(TOPICS, self._topic(batch, direct))
        for user in (self.starter, *self.contacts.people.values()):
            state = ConversationState.REQUESTED if user.id in direct["requested"] else ConversationState.JOINED
            batch.put(MEMBERSHIPS, _membership(batch, self.id, user, state))
        return True

    def result_id(self, result: bool) -> str:
        """Returns the id of the conversation."""
        return self.id

    def _direct_fields(self) -> DirectFields:
        strangers = self.contacts.strangers
        known = [each for each in self.contacts.people if each not in strangers]
        return {
            "pair": self.is_pair,
            "joined": [self.starter.id, *known],
            "requested": sorted(strangers),
            "declined": [],
            "left": [],
            "written": False,
            "asked": False,
        }

    def _topic(self, batch: Batch, direct: DirectFields) -> TopicDocument:
        return {
            "_id": self.id,
            "org": self.starter.organization_id,
            "community": self.id,
            "title": self.name,
            "creator": self.starter.id,
            "created_at": batch.at,
            # Conversations of different starters may get equal timestamps. They are listed by `last`, so a random
            # offset makes equal values rare.
            "last": batch.take_timestamp() + secrets.randbelow(1000),
            "n": 0,
            "floor": 0,
            "epoch": secrets.token_hex(4),
            "direct": direct,
        }


@dataclass(slots=True)
class ConversationChange(Change[Result]):
    """Base of changes of an existing conversation by one of its people."""

    usual_events: ClassVar[int] = 0

    organization_id: str
    actor_id: str
    """The person who acts."""

    @property
    def changed_ids(self) -> Collection[str]:
        """The people whose states may change."""
        return (self.actor_id,)

    def rights(self) -> Sequence[Right]:
        """Returns that the actor's account is active. `copy_direct` and `require_joined` check the actor's state."""
        return (IsActive(self.actor_id, self.organization_id),)

    async def load(self, mongo: Mongo, session: Session, batch: Batch) -> None:
        """Reads the memberships of the people, and whether there is a block between a pair."""
        await load_pair_block(mongo, session, batch)
        memberships = loaded_memberships(batch)
        missing = [each for each in self.changed_ids if each not in memberships]
        query = {"community": batch.stream.id, "user": {"$in": missing}}
        stored: list[MembershipDocument] = await mongo.find(MEMBERSHIPS, query, session=session)
        memberships.update(dict.fromkeys(missing))
        for membership in stored:
            memberships[membership["user"]] = membership
            batch.add_loaded(MEMBERSHIPS, membership)

    def copy_direct(self, batch: Batch) -> DirectFields:
        """Returns a copy of the states, to be changed and put back. Raises: NotFound for people outside."""
        direct = direct_fields(batch)
        if direct is None or batch.head["org"] != self.organization_id or self.actor_id not in people_of(direct):
            raise NotFound("conversation", batch.stream.id)
        lists: Any = {name: [*value] if isinstance(value, list) else value for name, value in direct.items()}
        copied: DirectFields = lists
        return copied

    def require_joined(self, batch: Batch) -> DirectFields:
        """Returns a copy of the states.

        Raises: NotFound for people who do not see the conversation; Forbidden for people who were asked.
        """
        direct = self.copy_direct(batch)
        if self.actor_id in direct["requested"]:
            raise Forbidden("Accept the conversation first.")
        if self.actor_id not in direct["joined"]:
            raise NotFound("conversation", batch.stream.id)
        return direct

    def put_direct(self, batch: Batch, direct: DirectFields) -> None:
        """Puts the states back, and announces the change to the actor and to everybody who has joined."""
        batch.change_head(direct=direct)
        announce_change(batch, list(dict.fromkeys([*direct["joined"], self.actor_id])))


@dataclass(slots=True)
class AcceptConversation(ConversationChange[None]):
    """Makes a person join who was asked, even after declining. Idempotent."""

    actor: User

    def plan(self, batch: Batch) -> None:
        """Moves the person to the people who have joined.

        Raises: NotFound for people outside the conversation and for people who have left; Conflict for a full group.
        """
        direct = self.copy_direct(batch)
        if self.actor_id in direct["joined"]:
            return
        if self.actor_id in direct["left"]:
            raise NotFound("conversation", batch.stream.id)
        require_room(direct, int(self.actor_id in direct["declined"]))
        _set_state(batch, direct, self.actor, ConversationState.JOINED)
        self.put_direct(batch, direct)


@dataclass(slots=True)
class LeaveConversation(ConversationChange[None]):
    """Declines a request, or leaves. Idempotent."""

    only_request: bool = False
    """True for declining: a person who has joined then does not leave."""

    def rights(self) -> Sequence[Right]:
        """Returns no right: everybody may leave."""
        return ()

    def plan(self, batch: Batch) -> None:
        """Moves the person to the people who have left or declined.

        Raises: NotFound; Conflict for a person who has joined, if `only_request`.
        """
        direct = self.copy_direct(batch)
        if self.actor_id in direct["joined"]:
            if self.only_request:
                raise Conflict("You have joined this conversation. Use leaveConversation.")
            direct["joined"].remove(self.actor_id)
            direct["left"].append(self.actor_id)
        elif self.actor_id in direct["requested"]:
            direct["requested"].remove(self.actor_id)
            direct["declined"].append(self.actor_id)
        else:
            return
        self._end_membership(batch)
        batch.change_head(direct=direct)
        # Nobody else notices that a request was declined.
        announce_change(batch, [self.actor_id, *(direct["joined"] if self.actor_id in direct["left"] else ())])

    def _end_membership(self, batch: Batch) -> None:
        membership = loaded_memberships(batch).get(self.actor_id)
        if membership is not None:
            loaded_memberships(batch)[self.actor_id] = None
            batch.remove(MEMBERSHIPS, membership["_id"])
        batch.change_head(departures=batch.head.get("departures", 0) + 1)
        batch.add_outbox_row(removals_stream(batch.stream.id), "MemberRemoved", self.actor_id)


@dataclass(slots=True)
class BringPeople(ConversationChange[None]):
    """Base of changes that bring people into an existing conversation."""

    actor: User
    contacts: Contacts

    @property
    def changed_ids(self) -> Collection[str]:
        """The people, and the person who brings them."""
        return (self.actor_id, *self.contacts.people)

    def needs(self) -> Sequence[DocumentKey]:
        """Returns the count of people whom the actor has brought into conversations."""
        return [contact_count_key(self.organization_id, self.actor_id)]

    def rights(self) -> Sequence[Right]:
        """Returns that the actor's account is active, and that nobody is being erased."""
        others = (IsNotErased(each, self.organization_id) for each in self.contacts.people)
        return IsActive(self.actor_id, self.organization_id), *others

    def bring(self, batch: Batch, direct: DirectFields) -> bool:
        """Moves the people who have not joined, are not asked and have not declined. Returns whether there are any.

        People to whom the actor is a stranger, and people who have left, are asked. All others join.
        Raises: RateLimited.
        """
        present = {*direct["joined"], *direct["requested"], *direct["declined"]}
        new = [user for user in self.contacts.people.values() if user.id not in present]
        count_contacts(batch, self.organization_id, self.contacts, len(new))
        for user in new:
            is_asked = user.id in self.contacts.strangers or user.id in direct["left"]
            state = ConversationState.REQUESTED if is_asked else ConversationState.JOINED
            _set_state(batch, direct, user, state)
            if is_asked and direct["written"]:
                announce_change(batch, [user.id])
        return bool(new)


@dataclass(slots=True)
class ReopenPair(BringPeople):
    """Makes a person who starts an existing conversation of two join it. Asks the other person again who has left."""

    def plan(self, batch: Batch) -> None:
        """Moves the two people. Raises: NotFound, RateLimited; Forbidden if one of them has blocked the other."""
        direct = self.copy_direct(batch)
        if is_blocked_pair(batch):
            raise Forbidden("You cannot write to this person.")
        has_new = self.bring(batch, direct)
        if has_new:
            direct["asked"] = False
        if self.actor_id not in direct["joined"]:
            _set_state(batch, direct, self.actor, ConversationState.JOINED)
        elif not has_new:
            return
        self.put_direct(batch, direct)


@dataclass(slots=True)
class AddPeople(BringPeople):
    """Adds people to a group. Those to whom the actor is a stranger, and those who have left, are asked. Idempotent."""

    def plan(self, batch: Batch) -> None:
        """Adds the people. Raises: NotFound, Forbidden, RateLimited; Conflict for a pair and for a full group."""
        direct = self.require_joined(batch)
        if direct["pair"]:
            raise Conflict("A conversation between two people stays between them. Start a group.")
        new = [each for each in self.contacts.people if each not in people_of({**direct, "left": []})]
        require_room(direct, len(new))
        if len({*people_of(direct), *new}) > MAX_PEOPLE_EVER:
            raise Conflict(
                f"A group can have at most {MAX_PEOPLE_EVER} people in all, with people who have left or declined. "
                "Start a new group."
            )
        if self.bring(batch, direct):
            self.put_direct(batch, direct)


@dataclass(slots=True)
class RenameConversation(ConversationChange[None]):
    """Renames a group, which its topic's subscribers receive as TopicChanged. Idempotent."""

    usual_events: ClassVar[int] = 1

    name: str

    def plan(self, batch: Batch) -> None:
        """Sets the title of the topic. Raises: NotFound, Forbidden; Conflict for a pair."""
        direct = self.require_joined(batch)
        if direct["pair"]:
            raise Conflict("Only groups have names.")
        if batch.head["title"] != self.name:
            batch.change_head(title=self.name)
            batch.emit("TopicChanged", batch.stream.id)
            announce_change(batch, direct["joined"])


def require_room(direct: DirectFields, count: int) -> None:
    """Raises Conflict if `count` further people would be too many for the group."""
    if len(direct["joined"]) + len(direct["requested"]) + count > MAX_PEOPLE:
        raise Conflict(f"A group has at most {MAX_PEOPLE} people.")


def _set_state(batch: Batch, direct: DirectFields, user: User, state: ConversationState) -> None:
    """Moves a person to the people who have joined or who are asked, by `state`, and puts the membership."""
    for people in (direct["joined"], direct["requested"], direct["declined"], direct["left"]):
        if user.id in people:
            people.remove(user.id)
    (direct["joined"] if state is ConversationState.JOINED else direct["requested"]).append(user.id)
    memberships = loaded_memberships(batch)
    stored = memberships[user.id]
    membership = _membership(batch, batch.stream.id, user, state) if stored is None else stored.copy()
    membership["conversation"] = state.value
    memberships[user.id] = membership
    batch.put(MEMBERSHIPS, membership)


def _membership(batch: Batch, id_: str, user: User, state: ConversationState) -> MembershipDocument:
    membership = new_membership(id_, stored_user(batch, user), batch.at)
    membership["conversation"] = state.value
    return membership
