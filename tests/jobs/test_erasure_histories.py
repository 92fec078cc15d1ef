"""Erasures within random histories: archives, bans, conversations, moderators who act meanwhile, and killed workers."""

import asyncio
import random
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, fields, replace
from typing import Any

import pytest

from jobs.erasures import erase_users
from jobs.fan_out import finish_fan_outs, settle_follows
from storage.chat.memberships import community_stream
from storage.feed.content_reports.records import ContentReportSubject, content_report_id
from storage.identity.audit import Actor
from storage.identity.privacy_rules import ErasureMethod, read_batches
from storage.identity.records import user_stream
from storage.identity.roles import Role
from storage.ids import UserKey
from storage.notifications import NotificationKind, notification_ref
from storage.privacy.erasures import ErasureState
from storage.privacy.registry import PERSONAL_DATA
from storage.privacy.steps import Eraser, RecordErasureProgress
from storage.stores import Stores
from storage.streams.outbox import add_rows_to_streams
from tests.jobs.contexts import job_context
from tests.resolvers.people import DELETE, POST, REACT, Answer, Person, until_outbox_is_empty
from tests.stored_strings import WORD, documents_with_strings, keys_with_strings

pytestmark = pytest.mark.anyio

SEEDS = range(5)
OWN_ACTS = 8
"""Number of acts of the person and of others before the erasure."""

REMAINING = {"users", "messages", "posts", "scheduled_posts", "audit", "events"}
"""Collections that may refer to an erased person, by id: later decisions about reports add entries to the audit log."""

MAX_KILLS = 6
MAX_SWEEPS = 60
PERSON_ID = "user-1"
HANDLE = "quill"
"""The person's handle, which other people's texts may mention. Only the name and the texts hold the word."""

COMMUNITY = "mutation ($id: ID!) {{ {}(communityId: $id) {{ id }} }}"
MEMBER = "mutation ($id: ID!, $user: ID!) {{ {}(communityId: $id, userId: $user) {{ {} }} }}"
USER = "mutation ($user: ID!) {{ {}(userId: $user) {{ {} }} }}"
ON_MESSAGE = "mutation ($id: ID!) {{ {}(messageId: $id) {{ id }} }}"
ON_POST = "mutation ($id: ID!) {{ {}(postId: $id{}) {{ id }} }}"
BAN = f"""mutation ($id: ID!, $user: ID!) {{
  banMember(communityId: $id, userId: $user, reason: "{WORD} was rude") {{ until }} }}"""
MUTE_MEMBER = """mutation ($id: ID!, $user: ID!) {
  muteMember(communityId: $id, userId: $user, until: "2099-01-01T00:00:00Z") { role } }"""
SET_ROLE = """mutation ($id: ID!, $user: ID!, $role: CommunityRole!) {
  setCommunityRole(communityId: $id, userId: $user, role: $role) { role } }"""
DECIDE_REQUEST = """mutation ($id: ID!, $user: ID!) {
  decideJoinRequest(communityId: $id, userId: $user, approve: true) { id } }"""
VISIBILITY = """mutation ($id: ID!, $to: CommunityVisibility!) {
  updateCommunity(id: $id, visibility: $to) { id } }"""
ASK = f'mutation ($id: ID!) {{ requestToJoin(communityId: $id, message: "{WORD} please") {{ id }} }}'
REPORT = """mutation ($subject: ContentReportSubject!, $id: ID!, $text: String!) {
  reportContent(subject: $subject, subjectId: $id, category: OTHER, text: $text) }"""
DECIDE_REPORT = """mutation ($id: ID!, $decision: ContentReportDecision!) {
  decideContentReport(contentReportId: $id, decision: $decision, note: "decided") { id } }"""
START = "mutation ($users: [ID!]!) { done: startConversation(input: { userIds: $users }) { id } }"
ADD_PEOPLE = "mutation ($id: ID!, $user: ID!) { addToConversation(conversationId: $id, userIds: [$user]) { id } }"
LEAVE_CONVERSATION = "mutation ($id: ID!) { leaveConversation(conversationId: $id) }"
INVITE = """mutation ($input: CreateInvitationInput!) {
  done: createInvitation(input: $input) { url } }"""
ACCEPT = "mutation ($token: String!) { acceptInvitation(token: $token) { id } }"
SCHEDULE = """mutation ($input: SchedulePostInput!) { schedulePost(input: $input) { id } }"""
DEACTIVATE = f'mutation ($user: ID!) {{ deactivateUser(userId: $user, reason: "{WORD} left") {{ id }} }}'
SEARCH = "query ($query: String!, $id: ID) { done: users(query: $query, communityId: $id) { id } }"
CREATE_POST = "mutation ($input: CreatePostInput!) { done: createPost(input: $input) { id } }"


@dataclass(frozen=True, slots=True, kw_only=True)
class InterruptedEraser(Eraser):
    """Calls `interrupt` after each batch and each step."""

    interrupt: Callable[[], Awaitable[None]]

    async def run(self, step: int, person: UserKey, progress: RecordErasureProgress) -> None:
        """Carries out one step with interruptions."""

        async def record(changed: int) -> None:
            await progress(changed)
            await self.interrupt()

        await Eraser.run(self, step, person, record)
        await self.interrupt()


@dataclass
class History:
    """The acts of one seed."""

    stores: Stores
    key: UserKey
    """The person to erase."""

    rng: random.Random
    people: dict[str, Person] = field(default_factory=dict)
    communities: list[str] = field(default_factory=list)
    topics: list[str] = field(default_factory=list)
    messages: list[str] = field(default_factory=list)
    posts: list[str] = field(default_factory=list)
    conversations: list[str] = field(default_factory=list)
    acts: list[str] = field(default_factory=list)
    kills: int = 0

    async def begin(self) -> None:
        """Signs people in, and creates communities of the person and of Ann, with topics."""
        roles, sign_in = [Role.MEMBER, Role.OPERATOR], self.stores.users.sign_in
        for id_ in ("ann", "bob", "eve"):
            granted = [*roles, Role.ADMIN] if id_ == "ann" else roles
            user = await sign_in(self.key.organization_id, id_, granted, None, id_)
            self.people[id_] = Person(self.stores, user, frozenset(granted))
        user = await sign_in(self.key.organization_id, PERSON_ID, roles, f"{WORD} Q", HANDLE, f"{WORD}@example.net")
        self.people["person"] = Person(self.stores, user, frozenset(roles))
        ann, bob, person = self.people["ann"], self.people["bob"], self.people["person"]
        for founder, name in ((person, "Own"), (ann, "Open"), (ann, "Listed")):
            id_ = await founder.create_community(name)
            self.communities.append(id_)
            for other in {ann.id: ann, bob.id: bob, person.id: person}.values():
                if other is not founder and (other is not person or name == "Open"):
                    await other.join(id_)
            self.topics.append(await founder.create_topic(id_))
        await self.attempt("ann", SET_ROLE, id=self.communities[1], user="bob", role="MODERATOR")
        await self.attempt("ann", VISIBILITY, id=self.communities[2], to="LISTED")

    async def attempt(self, who: str, query: str, /, **variables: Any) -> Answer | None:
        """Executes an operation that may be refused. Returns its data, or None."""
        answer = await self.people[who].execute(query, **variables)
        codes = [error["extensions"].get("code", "INTERNAL") for error in answer["errors"]]
        self.acts.append(f"{who}: {query.split('(')[1].split('{')[-1].strip()} {variables} -> {codes or 'ok'}")
        assert set(codes) <= {"NOT_FOUND", "FORBIDDEN", "CONFLICT", "BAD_USER_INPUT", "RATE_LIMITED"}, self.acts[-1]
        return None if codes else answer["data"]

    async def attempt_new(self, made: list[str], who: str, query: str, /, **variables: Any) -> None:
        """Executes an operation that may be refused, and notes the id of the object that it creates."""
        answer = await self.attempt(who, query, **variables)
        if answer is not None:
            made.append(answer["done"]["id"])

    async def write(self, who: str) -> None:
        """Posts a message, a reply, a post, a reply to a post or a quote."""
        text = f"{WORD} text" if who == "person" else "Hello"
        answers: dict[str, Any] = {}
        if self.rng.random() < 0.5:
            if self.messages and self.rng.random() < 0.4:
                answers = {"replyTo": self.rng.choice(self.messages)}
            topic = self.rng.choice([*self.topics, *self.conversations])
            await self.attempt_new(self.messages, who, POST, input={"topicId": topic, "text": text, **answers})
            return
        if self.posts and self.rng.random() < 0.4:
            answers = {self.rng.choice(["inReplyTo", "quoteOf"]): self.rng.choice(self.posts)}
        await self.attempt_new(self.posts, who, CREATE_POST, input={"text": f"{text} @{HANDLE}", **answers})

    async def respond(self, who: str) -> None:
        """Reacts to a message, pins or deletes one, follows a thread, or responds to a post."""
        if self.messages:
            message = self.rng.choice(self.messages)
            act = self.rng.choice([REACT, ON_MESSAGE.format("pinMessage"), ON_MESSAGE.format("followThread")])
            await self.attempt(who, act, id=message, **({"emoji": "🐟"} if act is REACT else {}))
            if self.rng.random() < 0.1:
                await self.attempt(who, DELETE, id=message)
        if self.posts:
            act = self.rng.choice([ON_POST.format("addPostReaction", ', emoji: "🐟"'), ON_POST.format("repost", "")])
            await self.attempt(who, act, id=self.rng.choice(self.posts))

    async def converse(self, who: str) -> None:
        """Starts a conversation, adds the person to one, or leaves one."""
        others = [each for each in (PERSON_ID, "ann", "bob", "eve") if each != self.people[who].id]
        people = self.rng.sample(others, self.rng.choice([1, 2]))
        await self.attempt_new(self.conversations, who, START, users=people)
        if self.conversations:
            act = self.rng.choice([LEAVE_CONVERSATION, ADD_PEOPLE])
            user = {"user": PERSON_ID} if act is ADD_PEOPLE else {}
            await self.attempt(who, act, id=self.rng.choice(self.conversations), **user)

    async def live(self) -> None:
        """Lets the person do something that only members do."""
        community = self.rng.choice(self.communities)
        schedule = {"text": f"{WORD} later", "toHomeFeed": True, "dueAt": "2099-01-01T00:00:00Z", "timeZone": "UTC"}
        acts: Sequence[tuple[str, dict[str, Any]]] = (
            (ASK, {"id": community}),
            (COMMUNITY.format("joinCommunity"), {"id": community}),
            (COMMUNITY.format("leaveCommunity"), {"id": community}),
            (USER.format("follow", "id"), {"user": self.rng.choice(["ann", "bob"])}),
            (USER.format("blockUser", "id"), {"user": "eve"}),
            (USER.format("muteUser", "id"), {"user": "eve"}),
            (REPORT, {"subject": "USER", "id": "eve", "text": f"{WORD} says"}),
            (SCHEDULE, {"input": schedule}),
            (VISIBILITY, {"id": self.communities[0], "to": "PRIVATE"}),
        )
        act, variables = self.rng.choice(acts)
        await self.attempt("person", act, **variables)

    async def moderate(self, who: str) -> None:
        """Lets somebody act on the person or on a community."""
        community, user = {"id": self.rng.choice(self.communities)}, {"user": PERSON_ID}
        role = self.rng.choice(["OWNER", "MEMBER"])
        acts: Sequence[tuple[str, dict[str, Any]]] = (
            *((MEMBER.format("addMember", "role"), {**community, **user}),) * 3,
            (DECIDE_REQUEST, {**community, **user}),
            (BAN, {**community, **user}),
            (MEMBER.format("unbanMember", "id"), {**community, **user}),
            (MEMBER.format("kickMember", "id"), {**community, **user}),
            (MUTE_MEMBER, {**community, **user}),
            (SET_ROLE, {**community, **user, "role": role}),
            (COMMUNITY.format("archiveCommunity"), community),
            (COMMUNITY.format("unarchiveCommunity"), community),
            ("mutation ($id: ID!) { archiveTopic(topicId: $id) { id } }", {"id": self.rng.choice(self.topics)}),
            (VISIBILITY, {**community, "to": self.rng.choice(["PUBLIC", "LISTED", "PRIVATE"])}),
        )
        act, variables = self.rng.choice(acts)
        await self.attempt(who, act, **variables)

    async def meet(self, who: str) -> None:
        """Lets somebody follow, mute, block, report or deactivate the person, or decide a report about the person."""
        subject = ContentReportSubject.USER
        report = content_report_id(self.key.organization_id, subject, PERSON_ID, self.rng.choice(["bob", "eve"]))
        user = {"user": PERSON_ID}
        acts: Sequence[tuple[str, dict[str, Any]]] = (
            *((USER.format(name, "id"), user) for name in ("follow", "blockUser", "muteUser")),
            *((REPORT, {"subject": "USER", "id": PERSON_ID, "text": "rude"}),) * 2,
            *((REPORT, {"subject": "MESSAGE", "id": each, "text": "rude"}) for each in self.messages[:2]),
            *((DECIDE_REPORT, {"id": report, "decision": each}) for each in ("WARN", "DISMISS")),
        )
        act, variables = self.rng.choice(acts)
        await self.attempt(who, act, **variables)

    async def invite(self, is_accepted: bool) -> None:
        """Lets Ann invite to a community. The person accepts, or has accepted and becomes a member only now."""
        community = self.rng.choice(self.communities)
        if is_accepted:
            answer = await self.attempt("ann", INVITE, input={"communityId": community})
            if answer is not None:
                await self.attempt("person", ACCEPT, token=answer["done"]["url"].partition("=")[2])
            return
        notification = notification_ref(NotificationKind.FOLLOW, "bob")
        rows = [
            (community_stream(community), "InvitedMember", PERSON_ID),
            (user_stream(*self.key), "Notify", notification),
        ]
        await add_rows_to_streams(self.stores.mongo, rows)
        for stream, *_ in rows:
            self.stores.outbox.nudge(stream.name)
        self.acts.append(f"relay: invited to {community}")

    async def act_of_other(self) -> None:
        """Lets another person do something that concerns the person."""
        who = self.rng.choice(["ann", "ann", "bob", "eve"])
        acts = (self.write, self.respond, self.converse, self.moderate, self.moderate, self.moderate, self.meet)
        await self.rng.choice(acts)(who)

    async def act_of_person(self) -> None:
        """Lets the person do something."""
        act = self.rng.choice([self.write, self.respond, self.respond, self.converse, None])
        await (self.live() if act is None else act("person"))

    async def interrupt(self) -> None:
        """Lets others act while the worker waits, and sometimes kills the worker."""
        if self.rng.random() < 0.25:
            if self.rng.random() < 0.3:
                await self.invite(is_accepted=False)
            # One after the other, so that a seed is always the same history.
            for _ in range(self.rng.randint(1, 3)):
                await self.act_of_other()
        if self.kills < MAX_KILLS and self.rng.random() < 0.1:
            self.kills += 1
            self.acts.append("kill")
            raise asyncio.CancelledError

    async def live_before(self) -> None:
        """Lets the person and others act."""
        for _ in range(OWN_ACTS):
            await self.act_of_person()
            await self.act_of_other()
            if self.rng.random() < 0.05:
                await self.invite(is_accepted=True)

    async def restrict(self, number: int) -> None:
        """Lets the person react in a new community of Ann, and then lose the right to write there."""
        ann, person = self.people["ann"], self.people["person"]
        community = {"id": await ann.create_community("Last")}
        await person.join(community["id"])
        topic = await ann.create_topic(community["id"])
        await person.do(REACT, id=(await ann.post(topic))["id"], emoji="🦀")
        self.communities.append(community["id"])
        acts: Sequence[tuple[str, str, dict[str, Any]]] = (
            ("ann", COMMUNITY.format("archiveCommunity"), community),
            ("ann", BAN, {**community, "user": PERSON_ID}),
            ("ann", "mutation ($id: ID!) { archiveTopic(topicId: $id) { id } }", {"id": topic}),
            ("ann", MEMBER.format("kickMember", "id"), {**community, "user": PERSON_ID}),
            ("person", COMMUNITY.format("leaveCommunity"), community),
        )
        who, act, variables = acts[number % len(acts)]
        await self.attempt(who, act, **variables)

    async def erase(self) -> None:
        """Erases the person while others act. Fails if the erasure does not end."""
        handle = (await self.stores.users.get(*self.key)).handle
        await self.stores.erasures.request(Actor(self.key.organization_id, "ann"), PERSON_ID, handle)
        parts = {each.name: getattr(self.stores.eraser, each.name) for each in fields(Eraser)}
        eraser = InterruptedEraser(**parts, interrupt=self.interrupt)
        jobs = job_context(replace(self.stores, eraser=eraser))
        for _ in range(MAX_SWEEPS):
            await make_due(self.stores)
            await finish_fan_outs(jobs)
            with suppress(asyncio.CancelledError):
                await erase_users(jobs)
            await settle_follows(jobs)
            erasure = await self.stores.erasures.find(*self.key)
            assert erasure is not None
            if erasure.state is ErasureState.COMPLETED:
                return
        raise AssertionError(f"The erasure does not end: {erasure}")


async def make_due(stores: Stores) -> None:
    """Makes the erasure due now, also if it waits or is claimed."""
    due_now = [{"$set": {"due": {"$subtract": ["$$NOW", 1]}}}]
    await stores.mongo["erasures"].update_many({"due": {"$exists": True}}, due_now)


async def collections_with_person(stores: Stores, person: UserKey) -> set[str]:
    """Returns the collections with documents that an erasure deletes or empties."""
    return {
        entry.collection
        for entry in PERSONAL_DATA.values()
        for rule in entry.rules
        async for documents in read_batches(stores.mongo, entry.collection, rule.documents, person)
        if documents or rule.erasure is not ErasureMethod.CHANGE
    }


@pytest.mark.parametrize("seed", SEEDS)
async def test_erasure_in_any_history_leaves_nothing(shared_stores: Stores, seed: int) -> None:
    """Each history has an organization of its own, and ends with another restriction of the person."""
    stores = shared_stores
    history = History(stores, UserKey(f"acme-{seed}", PERSON_ID), random.Random(seed))
    await history.begin()
    await history.live_before()
    await history.restrict(seed)
    await history.erase()
    for _ in range(10):
        await history.act_of_other()
    await history.invite(is_accepted=False)
    await until_outbox_is_empty(stores)
    acts = "\n".join(history.acts)
    assert await documents_with_strings(stores.mongo) == {}, acts
    assert await keys_with_strings(stores.redis, stores.keys.prefix) == [], acts
    assert await collections_with_person(stores, history.key) <= REMAINING, acts
    for query in (WORD, HANDLE, "Deleted"):
        for community in (None, *history.communities):
            found = await history.attempt("ann", SEARCH, query=query, id=community)
            assert not found or not found["done"], acts
