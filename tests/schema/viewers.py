"""Viewers of one topic with different relations to it, and the values of viewer-dependent fields for each."""

from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Any

from resolvers.context import Context
from storage.chat.changes import NewMessage
from storage.chat.communities import NewCommunity
from storage.chat.records import Message, Quote
from storage.chat.roles import Moderator
from storage.files.link_previews import LinkPreview, PreviewPicture
from storage.identity.mutes import MuteSubject
from storage.identity.records import User
from storage.identity.roles import Role
from storage.ids import UserKey
from storage.stores import Stores
from storage.timeline import format_timestamp
from tests.resolvers.people import until_outbox_is_empty
from tests.storage.topic_scenario import TopicScenario, create_topic_scenario

VIEWER_IDS = ("ann", "bob", "cat", "dan", "eve")
THUMBS_UP, FIRE = "👍", "🔥"
THREADS = {"ann": {"replyCount": 1}, "bob": {"replyCount": 2}}
LINK = "https://example.org/"
MUTED_UNTIL = datetime(2100, 1, 1, tzinfo=UTC)


@dataclass(frozen=True)
class DifferingViewers:
    """Users to whom the same objects look different.

    Ann blocked cat, follows dan, muted the community, and read the first message. Bob follows cat, muted cat and the
    topic, and is muted by a moderator. Eve is in no community.

    Dan posted the first and second message, cat the last one. Ann, bob and cat reacted to the first message. Dan and
    then cat replied to it. Between them, cat posted a message, and dan sent a reply to it also to the topic.
    """

    scenario: TopicScenario
    users: dict[str, User]
    first_message: Message
    second_message: Message
    reply: Message
    """The reply that was also sent to the topic."""

    cross_post: Message

    @property
    def stores(self) -> Stores:
        return self.scenario.stores

    def context(self, user_id: str) -> Context:
        """Returns the context of a request by the viewer."""
        return Context(
            self.stores,
            lambda url, copy_id="": f"/images/{url}/{copy_id}",
            self.users[user_id],
            frozenset({Role.MEMBER}),
        )


async def create_differing_viewers(stores: Stores) -> DifferingViewers:
    """Creates the viewers and their topic. The test itself posts cat's last message."""
    scenario = await create_topic_scenario(stores)
    organization = scenario.organization_id
    users = {name: await stores.users.sign_in(organization, name, [Role.MEMBER], None, None) for name in VIEWER_IDS}
    for name in ("bob", "cat", "dan"):
        await stores.communities.join(scenario.community, users[name])
    await stores.relations.block(organization, "ann", "cat")
    follows = [
        {"org": organization, "follower": follower, "followee": followee}
        for follower, followee in (("ann", "dan"), ("bob", "cat"))
    ]
    await stores.mongo["follows"].insert_many(follows)
    quote = await _quote_from_a_community_of(stores, users["dan"])
    new = replace(scenario.new_message(f"@cat @dan {LINK}", "dan"), stamp_id="hello", mention_ids=("cat", "dan"))
    new = replace(new, quote=quote)
    first = await stores.messages.post(new)
    image = f"{LINK}a.png"
    preview = LinkPreview(LINK, "Title", "Words", image, "Site", PreviewPicture(image, 4, 3, "a-hash"))
    await stores.messages.set_preview(first.key, LINK, preview)
    for name, emoji in (("cat", THUMBS_UP), ("bob", THUMBS_UP), ("ann", FIRE)):
        await stores.messages.add_reaction(organization, first.key, name, emoji)
    await stores.messages.pin(first.key, Moderator("ann"))
    await stores.topics.mark_read(scenario.topic.id, "ann", first.timestamp, first.timestamp)
    for owner, subject, subject_id in (
        ("ann", MuteSubject.COMMUNITY, scenario.community.id),
        ("bob", MuteSubject.TOPIC, scenario.topic.id),
        ("bob", MuteSubject.USER, "cat"),
    ):
        await stores.mutes.mute(UserKey(organization, owner), subject, subject_id, None)
    thread = await stores.threads.open(organization, first.key, "dan")
    for name in ("dan", "cat"):
        await stores.messages.post(replace(scenario.new_message("reply", name), topic_id=thread.id))
    await until_outbox_is_empty(stores)
    reply, cross_post = await _cross_post(scenario)
    second = await scenario.post("second", "dan")
    await stores.moderation.mute(scenario.community, Moderator("ann"), "bob", MUTED_UNTIL)
    return DifferingViewers(scenario, users, await stores.messages.get(first.key), second, reply, cross_post)


async def _cross_post(scenario: TopicScenario) -> tuple[Message, Message]:
    """Posts a message of cat and a reply of dan, which is also sent to the topic. Returns the reply and the latter."""
    stores, parent = scenario.stores, await scenario.post("parent", "cat")
    thread = await stores.threads.open(scenario.organization_id, parent.key, "dan")
    reply = replace(scenario.new_message("reply", "dan"), topic_id=thread.id, also_in_topic=True)
    posted = await stores.messages.post(reply)
    await until_outbox_is_empty(stores)
    topic = await stores.topics.get(scenario.organization_id, scenario.topic.id)
    cross_post = await stores.messages.last_message(topic.id, topic.last_activity)
    assert cross_post is not None
    return posted, cross_post


async def _quote_from_a_community_of(stores: Stores, person: User) -> Quote:
    """Returns a quote of a message that only this person may read."""
    community = await stores.communities.create(NewCommunity(person.organization_id, "Own", ""), person, None)
    topic = await stores.topics.create(community, person.id, "Own", None)
    quoted = await stores.messages.post(NewMessage(topic.id, community.id, person.id, "quoted", None, ()))
    return Quote(quoted.key, community.id)


@dataclass(frozen=True)
class ExpectedValues:
    """A selection of a viewer-dependent field, and the value that each viewer must get for it."""

    selection: str
    values: dict[str, Any]


def expected_in_topic_events(viewers: DifferingViewers) -> dict[str, ExpectedValues]:
    """Returns the expected values by Type.field. The selections apply to the first message."""
    return {
        "User.blocked": ExpectedValues(
            "mentions { blocked }",
            {
                "ann": [{"blocked": True}, {"blocked": False}],
                "bob": [{"blocked": False}, {"blocked": False}],
            },
        ),
        "User.following": ExpectedValues(
            "mentions { following }",
            {
                "ann": [{"following": False}, {"following": True}],
                "bob": [{"following": True}, {"following": False}],
            },
        ),
        "User.muted": ExpectedValues(
            "mentions { muted }",
            {
                "ann": [{"muted": False}, {"muted": False}],
                "bob": [{"muted": True}, {"muted": False}],
            },
        ),
        "Message.thread": ExpectedValues("thread { replyCount }", THREADS),
        "Thread.lastReply": ExpectedValues(
            "thread { lastReply { author { id } } }",
            {
                "ann": {"lastReply": {"author": {"id": "dan"}}},
                "bob": {"lastReply": {"author": {"id": "cat"}}},
            },
        ),
        "Thread.lastRepliers": ExpectedValues(
            "thread { lastRepliers { id } }",
            {
                "ann": {"lastRepliers": [{"id": "dan"}]},
                "bob": {"lastRepliers": [{"id": "cat"}, {"id": "dan"}]},
            },
        ),
        "Thread.unreadCount": ExpectedValues(
            "thread { unreadCount }", {"ann": {"unreadCount": 1}, "bob": {"unreadCount": 2}}
        ),
        "Thread.followed": ExpectedValues(
            "thread { followed }", {"bob": {"followed": False}, "dan": {"followed": True}}
        ),
        "Quote.message": ExpectedValues(
            "quote { message { text } }", {"cat": {"message": None}, "dan": {"message": {"text": "quoted"}}}
        ),
        "Message.reactions": ExpectedValues("reactions { emoji count reacted }", REACTIONS),
        "Reaction.users": ExpectedValues("reactions { users { id } }", REACTING_USERS),
    }


def expected_in_events_of_cross_post() -> dict[str, ExpectedValues]:
    """Returns the expected values by Type.field. The selections apply to the cross-post."""
    return {
        "ThreadReply.parentMessage": ExpectedValues("threadReply { parentMessage { text } }", PARENTS),
    }


def expected_in_community_events(viewers: DifferingViewers) -> dict[str, ExpectedValues]:
    """Returns the expected values by Type.field. The selections apply to the topic after cat's last message.

    Eve has not joined the community.
    """
    topic, first = viewers.scenario.topic.id, viewers.first_message
    read_up_to = f"{first.timestamp // 1_000_000}.{first.timestamp % 1_000_000:06}"
    first_message_page = 'messages(oldest: "1.000000", limit: 1) { items { %s } }'
    cross_post = viewers.cross_post.timestamp
    cross_post_page = f'messages(oldest: "{format_timestamp(cross_post)}", limit: 1) {{ items {{ %s }} }}'
    all_false = dict.fromkeys(VIEWER_IDS[:4], False)
    return {
        "User.blocked": ExpectedValues(
            "community { members { handle blocked } }",
            {"ann": _members("blocked", all_false | {"cat": True}), "bob": _members("blocked", all_false)},
        ),
        "User.following": ExpectedValues(
            "community { members { handle following } }",
            {
                "ann": _members("following", all_false | {"dan": True}),
                "bob": _members("following", all_false | {"cat": True}),
                "eve": _members("following", all_false),
            },
        ),
        "User.muted": ExpectedValues(
            "community { members { handle muted } }",
            {"ann": _members("muted", all_false), "bob": _members("muted", all_false | {"cat": True})},
        ),
        "Community.muted": ExpectedValues(
            "community { muted }", {"ann": {"muted": True}, "bob": {"muted": False}, "eve": {"muted": False}}
        ),
        "Topic.muted": ExpectedValues("muted", {"ann": False, "bob": True, "eve": False}),
        "Community.joined": ExpectedValues(
            "community { joined }",
            {"ann": {"joined": True}, "bob": {"joined": True}, "eve": {"joined": False}},
        ),
        "Community.viewerRole": ExpectedValues(
            "community { viewerRole }",
            {"ann": {"viewerRole": "OWNER"}, "bob": {"viewerRole": "MEMBER"}, "eve": {"viewerRole": None}},
        ),
        "Community.viewerMutedUntil": ExpectedValues(
            "community { viewerMutedUntil }",
            {"ann": {"viewerMutedUntil": None}, "bob": {"viewerMutedUntil": "2100-01-01T00:00:00.000Z"}},
        ),
        "Community.members": ExpectedValues(
            'community { members(limit: 1, after: "bob") { handle blocked } }',
            {
                "ann": {"members": [{"handle": "cat", "blocked": True}]},
                "bob": {"members": [{"handle": "cat", "blocked": False}]},
            },
        ),
        "Community.topics": ExpectedValues(
            "community { topics { id unreadCount } }",
            {
                "ann": {"topics": [{"id": topic, "unreadCount": 2}]},
                "bob": {"topics": [{"id": topic, "unreadCount": 5}]},
                "eve": {"topics": [{"id": topic, "unreadCount": 0}]},
            },
        ),
        "Topic.lastMessage": ExpectedValues(
            "lastMessage { text }", {"ann": {"text": "second"}, "bob": {"text": "last"}, "eve": None}
        ),
        "Message.thread": ExpectedValues(
            first_message_page % "thread { replyCount }", _first_message_pages("thread", THREADS)
        ),
        "Thread.lastReply": ExpectedValues(
            first_message_page % "thread { lastReply { author { id } } }",
            _first_message_pages(
                "thread",
                {
                    "ann": {"lastReply": {"author": {"id": "dan"}}},
                    "bob": {"lastReply": {"author": {"id": "cat"}}},
                },
            ),
        ),
        "Thread.lastRepliers": ExpectedValues(
            first_message_page % "thread { lastRepliers { id } }",
            _first_message_pages(
                "thread",
                {
                    "ann": {"lastRepliers": [{"id": "dan"}]},
                    "bob": {"lastRepliers": [{"id": "cat"}, {"id": "dan"}]},
                },
            ),
        ),
        "Thread.unreadCount": ExpectedValues(
            first_message_page % "thread { unreadCount }",
            _first_message_pages("thread", {"ann": {"unreadCount": 1}, "bob": {"unreadCount": 2}}),
        ),
        "Thread.followed": ExpectedValues(
            first_message_page % "thread { followed }",
            _first_message_pages("thread", {"dan": {"followed": True}}),
        ),
        "Quote.message": ExpectedValues(
            first_message_page % "quote { message { text } }",
            _first_message_pages("quote", {"cat": {"message": None}, "dan": {"message": {"text": "quoted"}}}),
        ),
        "Topic.unreadCount": ExpectedValues("unreadCount", {"ann": 2, "bob": 5, "eve": 0}),
        "ThreadReply.parentMessage": ExpectedValues(
            cross_post_page % "threadReply { parentMessage { text } }", _first_message_pages("threadReply", PARENTS)
        ),
        "Topic.pinnedMessages": ExpectedValues(
            "pinnedMessages { id }", {"ann": [{"id": first.id}], "bob": [{"id": first.id}], "eve": []}
        ),
        "Topic.readUpTo": ExpectedValues("readUpTo", {"ann": read_up_to, "bob": None, "eve": None}),
        "Topic.messages": ExpectedValues(
            'messages(latest: "now", limit: 1) { items { text } }',
            {"ann": {"items": [{"text": "second"}]}, "bob": {"items": [{"text": "last"}]}, "eve": None},
        ),
        "Message.reactions": ExpectedValues(
            first_message_page % "reactions { emoji count reacted }", _first_message_pages("reactions", REACTIONS)
        ),
        "Reaction.users": ExpectedValues(
            first_message_page % "reactions { users { id } }", _first_message_pages("reactions", REACTING_USERS)
        ),
    }


PARENTS: dict[str, Any] = {"ann": {"parentMessage": None}, "bob": {"parentMessage": {"text": "parent"}}}
REACTIONS: dict[str, Any] = {
    "ann": [{"emoji": THUMBS_UP, "count": 1, "reacted": False}, {"emoji": FIRE, "count": 1, "reacted": True}],
    "bob": [{"emoji": THUMBS_UP, "count": 2, "reacted": True}, {"emoji": FIRE, "count": 1, "reacted": False}],
}
REACTING_USERS: dict[str, Any] = {
    "ann": [{"users": [{"id": "bob"}]}, {"users": [{"id": "ann"}]}],
    "bob": [{"users": [{"id": "cat"}, {"id": "bob"}]}, {"users": [{"id": "ann"}]}],
}


def _members(field: str, values: dict[str, bool]) -> dict[str, Any]:
    return {"members": [{"handle": name, field: value} for name, value in values.items()]}


def _first_message_pages(field: str, values: dict[str, Any]) -> dict[str, Any]:
    """Returns a page of the first message with the field. Eve, who has not joined, gets null."""
    return {name: {"items": [{field: value}]} for name, value in values.items()} | {"eve": None}
