"""Data for the screens of one member: conversations, communities, notifications, scheduled posts, call jobs, posts."""

import asyncio
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any

from storage.calls.job_changes import NewCallJob
from storage.identity.roles import Role
from storage.ids import message_key, post_key
from storage.publishing.accounts import AccountToConnect
from storage.publishing.networks import Network
from storage.publishing.records import AccountTarget, Target, TopicTarget
from storage.publishing.scheduling import NewScheduledPost
from tests.resolvers.people import Person, SignIn, until_outbox_is_empty
from tests.screens.operations import SCREENS, document
from tests.screens.round_trips import RoundTrips, recorded_round_trips

VIEWER = "viewer"
AUTHORS = 5
TOPICS_PER_COMMUNITY = 4
ORGANIZATION = "acme"
BEACON = "beacon"

_START = "mutation ($input: StartConversationInput!) { done: startConversation(input: $input) { id } }"
_FOLLOW_THREAD = "mutation ($id: ID!) { followThread(messageId: $id) { id } }"
_REACT = 'mutation ($id: ID!) { addPostReaction(postId: $id, emoji: "🔥") { id } }'


@dataclass(frozen=True)
class ScreenSizes:
    """Number of items in each list of the screens."""

    communities: int
    conversations: int
    requests: int
    threads: int
    notifications: int
    scheduled_posts: int
    call_jobs: int
    posts: int


@dataclass
class ScreenData:
    """A member, the people around the member, and what they have created."""

    sign_in: SignIn
    organization: str
    viewer: Person
    authors: Sequence[Person]
    stranger: Person
    topics: list[tuple[str, str]] = field(default_factory=list)
    """Ids of topics, each with the id of its community."""

    messages: list[str] = field(default_factory=list)
    direct_messages: dict[bool, list[str]] = field(default_factory=lambda: {True: [], False: []})
    """The first message of each conversation, by whether it is a request."""

    posts: list[str] = field(default_factory=list)
    publications: list[str] = field(default_factory=list)

    def author(self, number: int) -> Person:
        """Returns one of the authors, each in turn."""
        return self.authors[number % len(self.authors)]

    async def round_trips(self, screen: str) -> RoundTrips:
        """Executes the viewer's operation for a list in this process, and returns its commands.

        The first execution opens the connections, since a command that waits for a connection would be late.
        """
        operation, variables = SCREENS[screen]
        for _ in range(2):
            with recorded_round_trips() as recorded:
                await self.viewer.run(document(operation), **variables)
        return recorded

    async def add_communities(self, count: int) -> None:
        """Creates communities that the viewer has joined. The viewer has read half of the topics."""
        for number in range(count):
            founder = self.author(number)
            community = await founder.create_community(f"Hill {number}")
            others = [each for each in (self.viewer, *self.authors) if each is not founder]
            await asyncio.gather(*(each.join(community) for each in others))
            topics = [await founder.create_topic(community, f"Smoke {each}") for each in range(TOPICS_PER_COMMUNITY)]
            await asyncio.gather(*(self._fill_topic(topic, each) for each, topic in enumerate(topics)))
            self.topics += [(topic, community) for topic in topics]

    async def _fill_topic(self, topic: str, number: int) -> None:
        for author in range(3):
            fields = {"stampId": BEACON, "text": ""} if number % 3 == 2 else {"text": f"Beacon {author}"}
            message = await self.author(number + author).post(topic, **fields)
            self.messages.append(message["id"])
        if number % 2:
            await self.sign_in.stores.topics.mark_read(
                topic, self.viewer.id, message_key(message["id"]).timestamp, 10**16
            )

    async def add_threads(self, count: int) -> None:
        """Starts threads that the viewer follows, with a reply in each."""
        for number, message in enumerate(self.messages[:count]):
            topic = message_key(message).topic_id
            await self.author(number).post(topic, "A reply", replyTo=message)
            await self.viewer.run(_FOLLOW_THREAD, id=message)

    async def add_conversations(self, count: int, *, are_requests: bool) -> None:
        """Starts groups with the viewer, who is asked to join by a person outside of the viewer's communities."""
        for number in range(count):
            starter = self.stranger if are_requests else self.author(number)
            fields = {"userIds": [self.viewer.id, self.author(number + 1).id], "groupName": f"Group {number}"}
            topic = (await starter.do(_START, input=fields))["id"]
            message = await starter.post(topic, f"Come to hill {number}")
            self.direct_messages[are_requests].append(message["id"])

    async def add_posts(self, count: int) -> None:
        """Creates posts of people whom the viewer follows: replies, quotes, reposts and others, some with reactions."""
        for author in self.authors:
            await self.viewer.follow(author)
        for number in range(count):
            more: dict[str, Any] = {}
            if number % 5 == 3:
                more["inReplyTo"] = self.posts[0]
            if number % 5 == 4:
                more["quoteOf"] = self.posts[1]
            author = self.author(number)
            mention = f"@{self.author(number + 1).user.handle}"  # type: ignore[union-attr]
            self.posts.append(await author.create_post(f"Post {number} {mention}", **more))
            if number % 2:
                await self.viewer.run(_REACT, id=self.posts[-1])
        keys = [post_key(self.organization, each) for each in self.posts]
        owner = {"o": self.organization, "u": self.viewer.id}
        items = [
            {"_id": {**owner, "ts": key.timestamp}, "author": self.author(number).id} for number, key in enumerate(keys)
        ]
        if items:
            await self.sign_in.stores.mongo["feed_items"].insert_many(items)

    async def add_scheduled_posts(self, count: int) -> None:
        """Schedules posts of the viewer, each for a topic and an account."""
        stores = self.sign_in.stores
        new_accounts = [AccountToConnect(self.organization, Network.SANDBOX, f"Tower {n}", None) for n in range(3)]
        accounts = [await stores.accounts.connect(each, "{}", None) for each in new_accounts]
        due_at = datetime.now(UTC).replace(microsecond=0) + timedelta(days=1)
        for number in range(count):
            account, (topic, community) = accounts[number % len(accounts)], self.topics[number % len(self.topics)]
            targets: list[Target] = [TopicTarget(topic, community), AccountTarget(account.id, account.network)]
            new = NewScheduledPost(
                self.organization, self.viewer.id, f"Post {number}", (), targets, due_at, "Asia/Tokyo", 3600
            )
            post = await stores.scheduled_posts.schedule(new, None)
            self.publications += [each.id for each in await stores.scheduled_posts.publications_of(post.id)]

    async def add_call_jobs(self, count: int) -> None:
        """Launches call jobs of one number each."""
        for number in range(count):
            new = NewCallJob(self.organization, self.viewer.id, f"Calls {number}", "Hello", None, None, 1, 60, 60)
            await self.sign_in.stores.call_jobs.launch(new, "phone_number\n+819012345678\n", None)

    async def add_notifications(self, count: int) -> None:
        """Stores notifications of all kinds in turn."""
        mongo, now_us = self.sign_in.stores.mongo, int(time.time() * 1_000_000)
        reports = [self._report(number) for number in range(count)]
        await mongo["content_reports"].insert_many(reports)
        owner = {"o": self.organization, "u": self.viewer.id}
        documents = [
            {"_id": {**owner, "ts": now_us + number}, "about": str(number), **self._notification(number)}
            for number in range(count)
        ]
        await mongo["notifications"].insert_many(documents)

    def _notification(self, number: int) -> Mapping[str, Any]:
        """Returns the content of a notification."""
        key = message_key(self.messages[number % len(self.messages)])
        community = dict(self.topics)[key.topic_id]
        message = {"topic": key.topic_id, "ts": key.timestamp, "community": community}
        direct, requested = [
            {"topic": each.topic_id, "ts": each.timestamp, "community": each.topic_id}
            for messages in (self.direct_messages[False], self.direct_messages[True])
            for each in [message_key(messages[number % len(messages)])]
        ]
        post = {"post": post_key(self.organization, self.posts[number % len(self.posts)]).timestamp}
        none = {"topic": None, "ts": None, "post": None, "publication": None, "actor": self.author(number).id}
        kinds: Sequence[Mapping[str, Any]] = [
            {"kind": "MENTION", **message},
            {"kind": "REACTION", **message, "emoji": "🔥"},
            {"kind": "DIRECT_MESSAGE", **direct},
            {"kind": "CONVERSATION_REQUEST", **requested},
            {"kind": "FOLLOW"},
            {"kind": "REPLY", **post},
            {"kind": "REACTION", **post, "emoji": "👍"},
            {"kind": "REPORT_DECIDED", **message, "actor": None, "report": self._report_id(number)},
            {"kind": "WARNING", **message, "actor": None, "report": self._report_id(number)},
            {"kind": "ADDED_TO_COMMUNITY", "community": community},
            {"kind": "STAMP_PACK_RECEIVED", "pack": "no pack"},
            {
                "kind": "PUBLICATION_FAILED",
                "actor": None,
                "publication": self.publications[number % len(self.publications)],
            },
        ]
        return {**none, **kinds[number % len(kinds)]}

    def _report_id(self, number: int) -> str:
        return f"{self.organization} report {number}"

    def _report(self, number: int) -> Mapping[str, Any]:
        return {
            "_id": self._report_id(number),
            "org": self.organization,
            "kind": "MESSAGE",
            "subject": self.messages[number % len(self.messages)],
            "author": self.author(number).id,
            "reporter": self.viewer.id,
            "category": "SPAM",
            "text": "",
            "content": "Beacon",
            "at": datetime.now(UTC),
            "state": "DECIDED",
            "decision": "REMOVE",
            "note": f"Warning {number}",
        }


async def fill_screens(sign_in: SignIn, sizes: ScreenSizes, organization: str = ORGANIZATION) -> ScreenData:
    """Stores lists of these sizes for a member who is also an operator."""
    viewer = await sign_in(VIEWER, organization, (Role.MEMBER, Role.OPERATOR), VIEWER, VIEWER)
    people = [await sign_in(name, organization, name=name, handle=name) for name in _names()]
    data = ScreenData(sign_in, organization, viewer, people[:-1], people[-1])
    await data.add_communities(sizes.communities)
    await data.add_threads(sizes.threads)
    await data.add_conversations(sizes.conversations, are_requests=False)
    await data.add_conversations(sizes.requests, are_requests=True)
    await data.add_posts(sizes.posts)
    await data.add_scheduled_posts(sizes.scheduled_posts)
    await data.add_call_jobs(sizes.call_jobs)
    await until_outbox_is_empty(sign_in.stores)
    await data.add_notifications(sizes.notifications)
    return data


def _names() -> list[str]:
    return [*(f"author{number}" for number in range(AUTHORS)), "stranger"]
