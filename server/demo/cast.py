"""The users, communities and topics of the demo."""

from collections.abc import Iterator
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class DemoUser:
    """A user of the demo, offered at sign-in."""

    id: str
    handle: str
    name: str
    organization_id: str
    roles: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class DemoTopic:
    """A topic with its theme in scenes.txt and its number of messages."""

    title: str
    theme: str
    size: int


@dataclass(frozen=True, slots=True)
class DemoCommunity:
    """A community with its members' handles, the founder first. Idempotency keys contain `key`: it must not change."""

    key: str
    name: str
    description: str
    language: str
    members: tuple[str, ...]
    topics: tuple[DemoTopic, ...]


DEMO_USERS: tuple[DemoUser, ...] = (
    DemoUser("hana", "hana", "佐藤 花", "acme", ("ADMIN",)),
    DemoUser("ken", "ken", "田中 健", "acme", ("OPERATOR",)),
    DemoUser("yuki", "yuki", "鈴木 雪", "acme", ("MEMBER",)),
    DemoUser("emma", "emma", "Emma Wright", "acme", ("MEMBER",)),
    DemoUser("sora", "sora", "山本 空", "acme", ("MEMBER",)),
    DemoUser("nagi", "nagi", "中村 凪", "acme", ("MEMBER",)),
    DemoUser("priya", "priya", "Priya Nair", "globex", ("ADMIN",)),
    DemoUser("liam", "liam", "Liam Walsh", "globex", ("OPERATOR",)),
    DemoUser("noor", "noor", "Noor Haddad", "globex", ("MEMBER",)),
    DemoUser("oscar", "oscar", "Oscar Lindqvist", "globex", ("MEMBER",)),
)

COMMUNITIES: tuple[DemoCommunity, ...] = (
    DemoCommunity(
        "hikers",
        "のろし山歩会",
        "月に一度、みんなで低い山へ。Easy walks, from hilltop to hilltop.",
        "ja",
        ("hana", "ken", "yuki", "emma", "sora"),
        (
            DemoTopic("今週の山", "hikes", 300),
            DemoTopic("道具の話 / Gear", "gear", 200),
            DemoTopic("写真", "photos", 180),
            DemoTopic("はじめまして", "hello", 120),
        ),
    ),
    DemoCommunity(
        "kitchen",
        "台所だより",
        "今日のごはんと、その作り方。What's cooking?",
        "ja",
        ("yuki", "hana", "emma", "sora"),
        (
            DemoTopic("今日のごはん", "meals", 300),
            DemoTopic("お茶の時間", "tea", 240),
            DemoTopic("Recipes wanted", "recipes", 180),
        ),
    ),
    DemoCommunity(
        "library",
        "町の図書室",
        "Books, board games and films, on the second floor of the old town hall.",
        "ja",
        ("emma", "ken", "yuki", "hana"),
        (
            DemoTopic("今月の一冊", "books", 280),
            DemoTopic("ボードゲームの夜", "games", 240),
            DemoTopic("Film club", "films", 180),
        ),
    ),
    DemoCommunity(
        "platform",
        "Platform",
        "Releases, pages and who is awake.",
        "en",
        ("priya", "liam", "noor"),
        (DemoTopic("Releases", "releases", 240), DemoTopic("On call", "oncall", 200)),
    ),
    DemoCommunity(
        "water-cooler",
        "Water Cooler",
        "Everything that is not work.",
        "en",
        ("noor", "liam", "priya"),
        (DemoTopic("Lunch", "lunch", 200), DemoTopic("Ideas", "ideas", 140)),
    ),
)

BLOCKER, BLOCKED = "emma", "sora"
"""Handles of the user who blocks another user, and of the blocked user."""

STRANGERS = ("nagi", "oscar")
"""Handles of users who have joined no community, and whom nobody follows. Their direct messages wait as requests."""


def user(handle: str) -> DemoUser:
    """Returns the demo user with a handle."""
    return next(each for each in DEMO_USERS if each.handle == handle)


def all_topics() -> Iterator[tuple[DemoCommunity, DemoTopic]]:
    """Returns every topic with its community. The last message of the last topic is posted last."""
    return ((community, topic) for community in COMMUNITIES for topic in community.topics)
