"""Counts for rules equal those of a model of every act, also up to a limit."""

import random
from dataclasses import dataclass, field
from datetime import timedelta

import pytest

from storage.chat.records import Message
from storage.chat.roles import Moderator
from storage.chat.stamps.rules import StampRuleKind
from storage.feed.records import Post, PostParentKind
from storage.feed.stamp_rules.counts import BATCH, ActivityCounts
from storage.identity.records import user_stream
from storage.ids import UserKey
from storage.mongo import Document
from storage.stores import Stores
from tests.storage.feed.feed_scenario import FeedScenario
from tests.storage.topic_scenario import TopicScenario, create_topic_scenario

pytestmark = pytest.mark.anyio

PEOPLE = ("ann", "bob")
MESSAGES, POSTS, REACTIONS, DAYS = StampRuleKind


@dataclass
class _Model:
    """Ann's and Bob's messages, posts and reactions."""

    scenario: TopicScenario
    feed: FeedScenario
    chance: random.Random
    messages: list[Message] = field(default_factory=list)
    posts: list[Post] = field(default_factory=list)
    reactions: set[tuple[str, str, str, bool]] = field(default_factory=set)
    """Id of the message or post, author, person who reacted, and whether it is a post."""

    async def act(self) -> None:
        person = self.chance.choice(PEOPLE)
        await self.chance.choice((self.post_message, self.create_post, self.react, self.react, self.unreact, self.end))(
            person
        )

    async def post_message(self, person: str) -> None:
        self.messages.append(await self.scenario.post("hello", person))

    async def create_post(self, person: str) -> None:
        originals = [post for post in self.posts if post.author_id != person]
        if originals and self.chance.random() < 0.3:
            original = self.chance.choice(originals)
            parent = original.as_parent(PostParentKind.REPOST)
            await self.feed.post(person, "", parent=parent)
        else:
            self.posts.append(await self.feed.post(person))

    async def react(self, person: str) -> None:
        stores, subjects = self.scenario.stores, [*self.messages, *self.posts]
        if not subjects:
            return
        subject = self.chance.choice(subjects)
        if isinstance(subject, Post):
            await stores.post_reactions.add(subject, person, "👍")
        else:
            await stores.messages.add_reaction(self.scenario.organization_id, subject.key, person, "👍")
        self.reactions.add((subject.id, subject.author_id, person, isinstance(subject, Post)))

    async def unreact(self, person: str) -> None:
        stores, own = self.scenario.stores, sorted(each for each in self.reactions if each[2] == person)
        if not own:
            return
        id_, _, _, is_post = removed = self.chance.choice(own)
        if is_post:
            post = next(post for post in self.posts if post.id == id_)
            await stores.post_reactions.remove(post.key, person, "👍")
        else:
            message = next(message for message in self.messages if message.id == id_)
            await stores.messages.remove_reaction(self.scenario.organization_id, message.key, person, "👍")
        self.reactions.remove(removed)

    async def end(self, person: str) -> None:
        """Deletes one of the person's messages or posts."""
        own = [each for each in (*self.messages, *self.posts) if each.author_id == person]
        if not own or self.chance.random() < 0.5:
            return
        subject = self.chance.choice(own)
        if isinstance(subject, Post):
            await self.scenario.stores.posts.delete(subject.key, Moderator(person))
            self.posts.remove(subject)
        else:
            await self.scenario.stores.messages.delete(subject.key, Moderator(person))
            self.messages.remove(subject)
        self.reactions = {each for each in self.reactions if each[0] != subject.id}

    def count(self, person: str, kind: StampRuleKind) -> int:
        if kind is REACTIONS:
            return sum(author == person != reacted for _, author, reacted, _ in self.reactions)
        return sum(each.author_id == person for each in (self.messages if kind is MESSAGES else self.posts))


@pytest.mark.parametrize("seed", range(4))
async def test_counts_equal_those_of_a_model(shared_stores: Stores, seed: int) -> None:
    scenario = await create_topic_scenario(shared_stores)
    # People with the same ids in another organization, whose acts must not count.
    other = await create_topic_scenario(shared_stores)
    for person in PEOPLE:
        await other.post("hello", person)
    feed = FeedScenario(shared_stores, scenario.organization_id)
    bob = await shared_stores.users.sign_in(scenario.organization_id, "bob", (), "Bob", None)
    await shared_stores.communities.join(scenario.community, bob)
    model, counts = _Model(scenario, feed, random.Random(seed)), ActivityCounts(shared_stores.mongo)
    for _ in range(60):
        await model.act()
    await feed.wait_for_relays(*(user_stream(scenario.organization_id, person) for person in PEOPLE))
    for person in PEOPLE:
        key = UserKey(scenario.organization_id, person)
        for kind in (MESSAGES, POSTS, REACTIONS):
            expected = model.count(person, kind)
            assert await counts.count(key, kind, 1000) == expected, (person, kind)
            for limit in {1, max(1, expected), expected + 1}:
                assert await counts.count(key, kind, limit) == min(limit, expected), (person, kind, limit)


async def test_counts_read_a_page_after_the_other(stores: Stores) -> None:
    ann, pages = UserKey("acme", "ann"), 2 * BATCH + 100
    topics = [{"_id": topic, "org": org, "community": "c"} for topic, org in (("t", "acme"), ("z", "zoo"))]
    await stores.mongo["topics"].insert_many(topics)
    messages = [{"_id": {"t": topic, "ts": ts}, "author": "ann", "text": ""} for topic in "tz" for ts in range(pages)]
    await stores.mongo["messages"].insert_many(messages)
    posts = [
        {"_id": {"o": "acme", "ts": ts}, "author": "ann", "reactions": [{"emoji": "👍", "count": 1}]}
        for ts in range(1, pages + 1)
    ]
    await stores.mongo["posts"].insert_many(posts)
    own = [{"_id": {"o": "acme", "ts": ts, "e": "👍", "u": "ann"}} for ts in range(1, pages + 1, 2)]
    await stores.mongo["post_reactions"].insert_many(own)
    counts = ActivityCounts(stores.mongo)
    assert await counts.count(ann, MESSAGES, 5000) == pages
    assert await counts.count(ann, REACTIONS, 5000) == pages // 2


@pytest.mark.parametrize("conversation", [{"direct": {}}, {"thread": {"direct": True}}], ids=["topic", "thread"])
async def test_counts_leave_out_conversations(stores: Stores, conversation: Document) -> None:
    """Conversations lie before, between and after the topic of a community in the order of the index."""
    ann, pages, own = UserKey("acme", "ann"), 2 * BATCH + 100, 7
    topics = [{"_id": topic, "org": "acme", "community": "c", **conversation} for topic in ("a", "p", "z")]
    await stores.mongo["topics"].insert_many([*topics, {"_id": "m", "org": "acme", "community": "c"}])
    messages = [("a", ts) for ts in range(pages)] + [("m", ts) for ts in range(own)] + [("p", 1), ("z", 1)]
    await stores.mongo["messages"].insert_many(
        {"_id": {"t": topic, "ts": ts}, "author": "ann", "text": ""} for topic, ts in messages
    )
    await stores.mongo["received_reactions"].insert_many(
        {"_id": {"o": "acme", "u": "ann", "ts": number}, "topic": topic, "ts": ts, "emoji": "👍", "from": "bob"}
        for number, (topic, ts) in enumerate(messages)
    )
    counts = ActivityCounts(stores.mongo)
    for kind in (MESSAGES, REACTIONS):
        assert [await counts.count(ann, kind, limit) for limit in (1, own, 5000)] == [1, own, own]


async def test_days_of_membership_are_whole_days(stores: Stores) -> None:
    counts, ann = ActivityCounts(stores.mongo), UserKey("acme", "ann")
    assert await counts.count(ann, DAYS, 10) == 0
    await stores.users.sign_in(*ann, (), "Ann", None)
    assert await counts.count(ann, DAYS, 10) == 0
    for age, days in ((timedelta(days=2, hours=23), 2), (timedelta(days=400), 10)):
        at = await stores.mongo.now() - age
        await stores.mongo["users"].update_one({"_id": {"org": "acme", "id": "ann"}}, {"$set": {"at": at}})
        assert await counts.count(ann, DAYS, 10) == days
