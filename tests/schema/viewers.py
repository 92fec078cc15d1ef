"""Viewers who differ in everything that may matter, a shared topic, and what each must see there."""

from dataclasses import dataclass, replace
from typing import Any

from resolvers.context import Context
from storage.chat.records import Message
from storage.identity.records import User
from storage.identity.roles import Role
from storage.link_previews import LinkPreview
from storage.stores import Stores
from tests.storage.topic_scenario import TopicScenario, create_topic_scenario

NAMES = ("ann", "bob", "cat", "dan", "eve")
ONE, OTHER = "👍", "🔥"
LINK = "https://example.org/"


@dataclass(frozen=True)
class World:
    """Ann blocked cat, follows dan, and read the first message. Bob follows cat. Eve is in no community.

    Dan posted the first and second message, cat the last one. Ann, bob and cat reacted to the first message.
    """

    place: TopicScenario
    people: dict[str, User]
    first: Message
    second: Message

    @property
    def stores(self) -> Stores:
        return self.place.stores

    def context(self, who: str) -> Context:
        """Returns the context of a request by the viewer."""
        return Context(self.stores, lambda url: f"/images/{url}", self.people[who], frozenset({Role.MEMBER}))


async def differing_viewers(stores: Stores) -> World:
    """Creates the viewers and their topic, before cat posts the last message."""
    place = await create_topic_scenario(stores)
    organization = place.organization_id
    people = {name: await stores.users.sign_in(organization, name, [Role.MEMBER], None, None) for name in NAMES}
    for name in ("bob", "cat", "dan"):
        await stores.communities.join(place.community, people[name])
    await stores.relations.block(organization, "ann", "cat")
    follows = [
        {"org": organization, "follower": one, "followee": other} for one, other in (("ann", "dan"), ("bob", "cat"))
    ]
    await stores.mongo["follows"].insert_many(follows)
    new = replace(place.new(f"@cat @dan {LINK}", "dan"), stamp_id="hello", mention_ids=("cat", "dan"))
    first = await stores.messages.post(new)
    await stores.messages.set_preview(first.key, LINK, LinkPreview(LINK, "Title", "Words", f"{LINK}a.png", "Site"))
    for name, emoji in (("cat", ONE), ("bob", ONE), ("ann", OTHER)):
        await stores.messages.add_reaction(organization, first.key, name, emoji)
    await stores.topics.mark_read(place.topic.id, "ann", first.timestamp, first.timestamp)
    second = await place.post("second", "dan")
    return World(place, people, await stores.messages.get(first.key), second)


@dataclass(frozen=True)
class Expectation:
    """A selection that shows a viewer-dependent field, and the value that each viewer must get for it."""

    select: str
    values: dict[str, Any]


def in_topic_events(world: World) -> dict[str, Expectation]:
    """Returns expectations by Type.field, selected on the first message."""
    return {
        "User.blocked": Expectation(
            "mentions { blocked }",
            {
                "ann": [{"blocked": True}, {"blocked": False}],
                "bob": [{"blocked": False}, {"blocked": False}],
            },
        ),
        "User.following": Expectation(
            "mentions { following }",
            {
                "ann": [{"following": False}, {"following": True}],
                "bob": [{"following": True}, {"following": False}],
            },
        ),
        "Message.reactions": Expectation("reactions { emoji count reacted }", REACTIONS),
        "Reaction.users": Expectation("reactions { users { id } }", REACTED),
    }


def in_community_events(world: World) -> dict[str, Expectation]:
    """Returns expectations by Type.field, selected on the topic after cat's last message. Eve has not joined."""
    topic, first = world.place.topic.id, world.first
    read = f"{first.timestamp // 1_000_000}.{first.timestamp % 1_000_000:06}"
    first_of_all = 'messages(oldest: "1.000000", limit: 1) { items { %s } }'
    nobody = dict.fromkeys(NAMES[:4], False)
    return {
        "User.blocked": Expectation(
            "community { members { handle blocked } }",
            {"ann": _members("blocked", nobody | {"cat": True}), "bob": _members("blocked", nobody)},
        ),
        "User.following": Expectation(
            "community { members { handle following } }",
            {
                "ann": _members("following", nobody | {"dan": True}),
                "bob": _members("following", nobody | {"cat": True}),
                "eve": _members("following", nobody),
            },
        ),
        "Community.joined": Expectation(
            "community { joined }",
            {"ann": {"joined": True}, "bob": {"joined": True}, "eve": {"joined": False}},
        ),
        "Community.members": Expectation(
            'community { members(limit: 1, after: "bob") { handle blocked } }',
            {
                "ann": {"members": [{"handle": "cat", "blocked": True}]},
                "bob": {"members": [{"handle": "cat", "blocked": False}]},
            },
        ),
        "Community.topics": Expectation(
            "community { topics { id unreadCount } }",
            {
                "ann": {"topics": [{"id": topic, "unreadCount": 1}]},
                "bob": {"topics": [{"id": topic, "unreadCount": 3}]},
                "eve": {"topics": [{"id": topic, "unreadCount": 0}]},
            },
        ),
        "Topic.lastMessage": Expectation(
            "lastMessage { text }", {"ann": {"text": "second"}, "bob": {"text": "last"}, "eve": None}
        ),
        "Topic.unreadCount": Expectation("unreadCount", {"ann": 1, "bob": 3, "eve": 0}),
        "Topic.readUpTo": Expectation("readUpTo", {"ann": read, "bob": None, "eve": None}),
        "Topic.messages": Expectation(
            'messages(latest: "now", limit: 1) { items { text } }',
            {"ann": {"items": [{"text": "second"}]}, "bob": {"items": [{"text": "last"}]}, "eve": None},
        ),
        "Message.reactions": Expectation(
            first_of_all % "reactions { emoji count reacted }", _first("reactions", REACTIONS)
        ),
        "Reaction.users": Expectation(first_of_all % "reactions { users { id } }", _first("reactions", REACTED)),
    }


REACTIONS: dict[str, Any] = {
    "ann": [{"emoji": ONE, "count": 1, "reacted": False}, {"emoji": OTHER, "count": 1, "reacted": True}],
    "bob": [{"emoji": ONE, "count": 2, "reacted": True}, {"emoji": OTHER, "count": 1, "reacted": False}],
}
REACTED: dict[str, Any] = {
    "ann": [{"users": [{"id": "bob"}]}, {"users": [{"id": "ann"}]}],
    "bob": [{"users": [{"id": "cat"}, {"id": "bob"}]}, {"users": [{"id": "ann"}]}],
}


def _members(field: str, values: dict[str, bool]) -> dict[str, Any]:
    return {"members": [{"handle": name, field: value} for name, value in values.items()]}


def _first(field: str, values: dict[str, Any]) -> dict[str, Any]:
    """Returns a page of the first message with the field. Eve, who has not joined, gets null."""
    return {name: {"items": [{field: value}]} for name, value in values.items()} | {"eve": None}
