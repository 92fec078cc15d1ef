"""Nobody finds what they may not see now. A model of memberships, blocks and mutes says who may."""

import random
from dataclasses import dataclass, field

import pytest

from tests.resolvers.chat.test_conversations import LEAVE as LEAVE_CONVERSATION
from tests.resolvers.chat.test_conversations import start
from tests.resolvers.people import DELETE, EDIT, POST, Person, SignIn
from tests.resolvers.search import test_posts, test_topics
from tests.resolvers.search.test_messages import SEARCH, found

pytestmark = pytest.mark.anyio

WORDS = ("red", "boat", "花火", "大会")
QUERIES = (*WORDS, "red boat", "花火大会", '"boat red"')
VISIBILITIES = ("PUBLIC", "LISTED", "PRIVATE")
STEPS = 120
DELETE_POST = "mutation ($id: ID!) { deletePost(id: $id) { id } }"
MUTE = "mutation ($id: ID!) { muteUser(userId: $id) { id } }"
UNMUTE = "mutation ($id: ID!) { unmuteUser(userId: $id) { id } }"
LEAVE_COMMUNITY = "mutation ($id: ID!) { leaveCommunity(communityId: $id) { id } }"


@dataclass
class MessagePlace:
    """A community with one topic, or a conversation."""

    topic: str
    people: set[str]
    community: str | None = None


@dataclass
class PostedMessage:
    place: MessagePlace
    author: str
    text: str


@dataclass
class CreatedTopic:
    place: MessagePlace
    title: str


@dataclass
class CreatedPost:
    author: str
    text: str


@dataclass
class SearchRightsModel:
    """Executes random operations of people, and knows which messages, topics and posts each person may see."""

    people: dict[str, Person]
    random: random.Random
    places: list[MessagePlace] = field(default_factory=list)
    messages: dict[str, PostedMessage] = field(default_factory=dict)
    topics: list[CreatedTopic] = field(default_factory=list)
    posts: dict[str, CreatedPost] = field(default_factory=dict)
    blocks: set[tuple[str, str]] = field(default_factory=set)
    mutes: set[tuple[str, str]] = field(default_factory=set)

    def visible(self, viewer: str, query: str) -> list[str]:
        """Returns the texts that the viewer finds, the newest first."""
        return [
            each.text
            for each in reversed(self.messages.values())
            if viewer in each.place.people and (viewer, each.author) not in self.blocks and has_parts(each.text, query)
        ]

    def visible_topics(self, viewer: str, query: str) -> list[str]:
        """Returns the titles that the viewer finds, sorted."""
        titles = [each.title for each in self.topics if viewer in each.place.people]
        return sorted(title for title in titles if has_parts(title, query))

    def visible_posts(self, viewer: str, query: str) -> list[str]:
        """Returns the texts of posts that the viewer finds, the newest first."""
        hidden = {other for one, other in self.blocks | self.mutes if one == viewer}
        texts = [each.text for each in reversed(self.posts.values()) if each.author not in hidden]
        return [text for text in texts if has_parts(text, query)]

    async def create_places(self) -> None:
        names = list(self.people)
        for visibility in VISIBILITIES:
            owner = self.random.choice(names)
            community = await self.people[owner].create_community(visibility, visibility=visibility)
            topic = await self.people[owner].create_topic(community)
            self.places.append(MessagePlace(topic, {owner}, community))
        for owner, *others in (("ann", "bob"), ("bob", "cat", "dog")):
            topic = await start(self.people[owner], *(self.people[name] for name in others))
            self.places.append(MessagePlace(topic, {owner, *others}))

    async def step(self) -> None:
        """Executes a random operation, and applies it to the model."""
        on_messages = (self.post, self.post, self.post, self.edit, self.delete)
        on_others = (self.create_topic, self.create_post, self.create_post, self.delete_post)
        on_rights = (self.join, self.leave, self.block, self.mute)
        await self.random.choice((*on_messages, *on_others, *on_rights))()

    async def post(self) -> None:
        place = self.random.choice(self.places)
        if not (writers := sorted(place.people)):
            return
        author, text = self.random.choice(writers), self.text()
        answer = await self.people[author].execute(POST, input={"topicId": place.topic, "text": text})
        if not answer["errors"]:
            self.messages[answer["data"]["done"]["id"]] = PostedMessage(place, author, text)

    def text(self) -> str:
        return " ".join(self.random.choices(WORDS, k=self.random.randint(1, 4))).replace("花火 大会", "花火大会")

    async def edit(self) -> None:
        if not (ids := [id_ for id_, each in self.messages.items() if each.author in each.place.people]):
            return
        id_, text = self.random.choice(ids), self.text()
        if await self.people[self.messages[id_].author].code(EDIT, id=id_, text=text) is None:
            self.messages[id_].text = text

    async def delete(self) -> None:
        if not (ids := [id_ for id_, each in self.messages.items() if each.author in each.place.people]):
            return
        id_ = self.random.choice(ids)
        if await self.people[self.messages[id_].author].code(DELETE, id=id_) is None:
            del self.messages[id_]

    async def create_topic(self) -> None:
        place = self.random.choice(self.places[: len(VISIBILITIES)])
        if place.community is None or not place.people:
            return
        title = self.text()
        await self.people[self.random.choice(sorted(place.people))].create_topic(place.community, title)
        self.topics.append(CreatedTopic(place, title))

    async def create_post(self) -> None:
        author, text = self.random.choice(list(self.people)), self.text()
        self.posts[await self.people[author].create_post(text)] = CreatedPost(author, text)

    async def delete_post(self) -> None:
        if not self.posts:
            return
        id_ = self.random.choice(list(self.posts))
        await self.people[self.posts.pop(id_).author].run(DELETE_POST, id=id_)

    async def mute(self) -> None:
        one, other = self.random.sample(list(self.people), 2)
        is_muted = (one, other) in self.mutes
        await self.people[one].run(UNMUTE if is_muted else MUTE, id=other)
        self.mutes ^= {(one, other)}

    async def join(self) -> None:
        place, name = self.places[0], self.random.choice(list(self.people))
        assert place.community is not None
        await self.people[name].join(place.community)
        place.people.add(name)

    async def leave(self) -> None:
        place = self.random.choice(self.places)
        name = self.random.choice(sorted(place.people) or ["ann"])
        if place.community is None:
            left = await self.people[name].code(LEAVE_CONVERSATION, id=place.topic)
        else:
            left = await self.people[name].code(LEAVE_COMMUNITY, id=place.community)
        if left is None:
            place.people.discard(name)

    async def block(self) -> None:
        one, other = self.random.sample(list(self.people), 2)
        if (one, other) in self.blocks:
            await self.people[one].unblock(self.people[other])
            self.blocks.discard((one, other))
            return
        await self.people[one].block(self.people[other])
        self.blocks.add((one, other))
        pair = self.places[3]
        if {one, other} == {"ann", "bob"}:
            pair.people.discard(one)


def has_parts(text: str, query: str) -> bool:
    """Returns whether the text contains the words or the phrase of the query."""
    parts = [query.strip('"')] if query.startswith('"') else query.split()
    return all(part in text for part in parts)


async def check_searches(model: SearchRightsModel, viewer: str, query: str) -> None:
    """Checks that the viewer finds exactly the messages, topics and posts that the model says."""
    person = model.people[viewer]
    assert await found(person, query) == model.visible(viewer, query), (viewer, query)
    assert sorted(await test_topics.found(person, query)) == model.visible_topics(viewer, query), (viewer, query)
    assert await test_posts.found(person, query) == model.visible_posts(viewer, query), (viewer, query)


@pytest.mark.parametrize("seed", [0, *(pytest.param(each, marks=pytest.mark.soak) for each in range(1, 20))])
async def test_everybody_finds_exactly_what_they_may_see(sign_in: SignIn, seed: int) -> None:
    people = {name: await sign_in(name) for name in ("ann", "bob", "cat", "dog")}
    model = SearchRightsModel(people, random.Random(seed))
    await model.create_places()
    for step in range(STEPS):
        await model.step()
        if step % 20 == 19:
            for viewer in people:
                for query in QUERIES:
                    await check_searches(model, viewer, query)
    assert model.messages
    assert model.topics
    assert model.posts


async def test_counts_and_flags_reveal_nothing(sign_in: SignIn) -> None:
    ann, bob, eve = [await sign_in(name) for name in ("ann", "bob", "eve")]
    community = await ann.create_community("Secret", visibility="PRIVATE")
    topic = await ann.create_topic(community)
    await ann.post(topic, "lighthouse")
    await ann.post(await start(ann, bob), "lighthouse")
    empty = await eve.do(SEARCH, query="nothing", latest="now")
    assert await eve.do(SEARCH, query="lighthouse", latest="now") == empty
    assert await eve.do(SEARCH, query="lighthouse", oldest="0000000000.000000") == empty
    unknown = await eve.fails(SEARCH, query="x in:Nowhere", latest="now")
    hidden = await eve.fails(SEARCH, query="x in:Secret", latest="now")
    assert {**hidden, "term": "in:Nowhere"} == unknown
    by_id = await eve.fails(SEARCH, query=f"x in:{topic}", latest="now")
    assert by_id["expected"] == unknown["expected"]
    assert await eve.code(SEARCH, query="x", latest="now", topic=topic) == "NOT_FOUND"


async def test_other_organization_finds_nothing(sign_in: SignIn) -> None:
    ann, twin = await sign_in("ann"), await sign_in("ann", "other")
    topic = await ann.create_topic(await ann.create_community())
    await ann.post(topic, "lighthouse")
    assert await found(ann, "lighthouse") == ["lighthouse"]
    assert await found(twin, "lighthouse") == await found(twin, "from:me") == []
