"""Who is in the demo, and where they talk about what."""

from collections.abc import Iterator
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class DemoUser:
    """Somebody to sign in as."""

    id: str
    handle: str
    name: str
    organization_id: str
    roles: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class DemoTopic:
    """A topic, what is talked about in it (a theme of scenes.txt), and in how many messages."""

    title: str
    theme: str
    size: int


@dataclass(frozen=True, slots=True)
class DemoCommunity:
    """A community with its members' handles, the founder first. `key` stays what it is: idempotency keys hold it."""

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
    DemoUser("priya", "priya", "Priya Nair", "globex", ("ADMIN",)),
    DemoUser("liam", "liam", "Liam Walsh", "globex", ("OPERATOR",)),
    DemoUser("noor", "noor", "Noor Haddad", "globex", ("MEMBER",)),
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


def user(handle: str) -> DemoUser:
    """The demo user of that handle."""
    return next(each for each in DEMO_USERS if each.handle == handle)


def all_topics() -> Iterator[tuple[DemoCommunity, DemoTopic]]:
    """Every topic with its community; the last one is filled last."""
    return ((community, topic) for community in COMMUNITIES for topic in community.topics)
