"""Validation of arguments. A refusal names the field as the client wrote it."""

from collections.abc import Callable
from typing import Any

import pytest
from graphql import is_input_object_type
from strawberry import UNSET

from resolvers.arguments import (
    checked_emoji,
    checked_limit,
    checked_text,
    checked_time_zone,
    checked_timestamp,
    page_range,
    text_or_none,
)
from schema.root import schema
from storage.errors import BadUserInput
from storage.identity.roles import Role
from storage.timeline import NOW
from tests.resolvers.people import ChatScenario, SignIn

EMOJIS = [
    *("👍", "👍🏽", "👨‍👩‍👧", "🇯🇵", "❤️", "1️⃣", "#️⃣", "*️⃣"),
    *("🏳️‍🌈", "🏴‍☠️", "🏴󠁧󠁢󠁥󠁮󠁧󠁿", "👩🏿‍❤️‍💋‍👨🏻", "👁️‍🗨️", "🧑‍🚀", "⛹🏿‍♀️", "🫱🏻‍🫲🏿", "🐻‍❄️"),
    *("©️", "™️", "‼️", "☀️", "㊗️", "🀄", "🆗", "🈁", "🫠", "⭐", "↔️", "〰️", "🏽"),
]
NOT_SINGLE_EMOJIS = [
    *("", "a", "1", "#", "あ", "漢", "é", "ß", " ", "\n", "👍 ", " 👍", "👍\n", ":+1:", "x️⃣"),
    *("👍👍", "👍a", "🇯🇵🇯🇵", "🇯", "❤️❤️", "1️⃣2️⃣", "👍\u200d", "\u200d👍", "👍🏽🏽", "\ufe0f", "\u20e3"),
    *("🇯🇯", "👩‍👍", "\U0001f8ff"),
    *("🏴" + "\U000e0061" * 1000 + "\U000e007f", "👍" + "\u200d👍" * 20, "\ud83d", "\U0010ffff"),
]


@pytest.mark.parametrize("value", EMOJIS)
def test_checked_emoji_accepts_one_grapheme(value: str) -> None:
    assert checked_emoji(value) == value


@pytest.mark.parametrize(("sent", "stored"), [("❤", "❤️"), ("👍\ufe0f", "👍"), ("*⃣", "*️⃣"), ("©", "©️"), ("🕵🏽‍♀", "🕵🏽‍♀️")])
def test_checked_emoji_returns_the_qualified_form(sent: str, stored: str) -> None:
    assert checked_emoji(sent) == stored


@pytest.mark.parametrize("value", NOT_SINGLE_EMOJIS)
def test_checked_emoji_refuses_everything_else(value: str) -> None:
    with pytest.raises(BadUserInput) as error:
        checked_emoji(value)
    assert error.value.extensions == {"code": "BAD_USER_INPUT", "field": "emoji", "expected": "exactly one emoji"}


@pytest.mark.parametrize("value", ["a", "a" * 5, "  a  ", "日本語です", "a\u0000", "👨\u200d👩\u200d👧"])
def test_checked_text_returns_text_within_limits(value: str) -> None:
    assert checked_text("title", value, 1, 5) == value


@pytest.mark.parametrize("value", ["", "a" * 6, " ", "\u3000", "\x00", "\u200b", "\u3164\u2800", "\ud800", "a\udc00"])
def test_checked_text_refuses_wrong_length_and_blank_text(value: str) -> None:
    with pytest.raises(BadUserInput) as error:
        checked_text("title", value, 1, 5)
    assert error.value.details["field"] == "title"


def test_checked_text_refuses_blank_text_that_may_be_empty() -> None:
    assert checked_text("description", "", 0, 5) == ""
    with pytest.raises(BadUserInput):
        checked_text("description", " ", 0, 5)


@pytest.mark.parametrize("limit", [1, 50, 999])
def test_checked_limit_returns_limit_within_bounds(limit: int) -> None:
    assert checked_limit(limit) == limit
    assert page_range(UNSET, NOW, limit, True).limit == limit


@pytest.mark.parametrize("limit", [0, -1, 1000, 2**31 - 1])
@pytest.mark.parametrize("check", [checked_limit, lambda limit: page_range(UNSET, NOW, limit, True)])
def test_limit_outside_bounds_is_refused(check: Callable[[int], Any], limit: int) -> None:
    with pytest.raises(BadUserInput) as error:
        check(limit)
    assert error.value.details["field"] == "limit"


def test_text_or_none_treats_omitted_and_null_alike() -> None:
    assert text_or_none(UNSET) is None
    assert text_or_none(None) is None
    assert text_or_none("") == ""
    assert page_range(None, 5, 1, True) == page_range(UNSET, 5, 1, True)


def test_checked_timestamp_refuses_now() -> None:
    assert checked_timestamp("timestamp", 5) == 5
    with pytest.raises(BadUserInput) as error:
        checked_timestamp("timestamp", NOW)
    assert error.value.details["field"] == "timestamp"


INVALID_QUERIES = [
    ('{ users(query: "") { id } }', "query"),
    ('{ users(query: " @ ") { id } }', "query"),
    ('{ users(query: "a", limit: 0) { id } }', "limit"),
    ("{ communities(limit: 1000) { id } }", "limit"),
    ("{ trendingTopics(limit: -1) { messagesPerMinute } }", "limit"),
    ("{ community(id: $community) { members(limit: 0) { id } } }", "limit"),
    ("{ community(id: $community) { topics(limit: 1000) { id } } }", "limit"),
    ("{ messages(topicId: $topic) { oldest } }", "oldest"),
    ('{ messages(topicId: $topic, oldest: "now") { oldest } }', "oldest"),
    ('{ messages(topicId: $topic, oldest: "now", latest: "now") { oldest } }', "oldest"),
    ('{ messages(topicId: $topic, latest: "now", limit: 0) { oldest } }', "limit"),
    ('{ messages(topicId: $topic, latest: "now", limit: 1000) { oldest } }', "limit"),
    ('{ topic(id: $topic) { messages(oldest: "now") { oldest } } }', "oldest"),
    ('{ messagesAround(topicId: $topic, timestamp: "now") { oldest } }', "timestamp"),
    ('{ messagesAround(topicId: $topic, timestamp: "1.000000", limit: 0) { oldest } }', "limit"),
    ("{ communityTopics(communityId: $community) { oldest } }", "oldest"),
    ("{ reactionsReceived { oldest } }", "oldest"),
    ('mutation { markRead(topicId: $topic, timestamp: "now") { id } }', "timestamp"),
    ('mutation { blockUser(userId: "ann") { id } }', "userId"),
    ('mutation { createCommunity(input: {name: ""}) { id } }', "name"),
    ('mutation { createCommunity(input: {name: "LONG"}) { id } }', "name"),
    ('mutation { createCommunity(input: {name: "a", description: "LONG"}) { id } }', "description"),
    ('mutation { createCommunity(input: {name: "a", idempotencyKey: ""}) { id } }', "idempotencyKey"),
    ('mutation { createTopic(input: {communityId: $community, title: " "}) { id } }', "title"),
    ('mutation { createTopic(input: {communityId: $community, title: "LONG"}) { id } }', "title"),
    ('mutation { postMessage(input: {topicId: $topic, text: "LONG"}) { id } }', "text"),
    ('mutation { postMessage(input: {topicId: $topic, stampId: "none"}) { id } }', "stampId"),
    ('mutation { postMessage(input: {topicId: $topic, text: "a", idempotencyKey: "LONG"}) { id } }', "idempotencyKey"),
    ('mutation { addReaction(messageId: "a-1", emoji: "a") { id } }', "emoji"),
]


@pytest.mark.anyio
async def test_refusal_names_field_and_expectation(chat: ChatScenario) -> None:
    for query, field in INVALID_QUERIES:
        text = query.replace("LONG", "x" * 5000)
        text = text.replace("$topic", f'"{chat.topic}"').replace("$community", f'"{chat.community}"')
        refusal = await chat.ann.fails(text)
        assert (refusal["code"], refusal["field"]) == ("BAD_USER_INPUT", field), query
        assert refusal["expected"], query


@pytest.mark.anyio
@pytest.mark.parametrize(
    "blank", ["\\u0000", "\u200b", "\u200d", "\u3164", "\u2800", "\u00ad", "\ufe0f", "\u034f", "\U000e0067"]
)
async def test_text_without_visible_character_is_refused(shared_chat: ChatScenario, blank: str) -> None:
    chat = shared_chat
    queries = [query for query, _ in INVALID_QUERIES if "LONG" in query and "idempotencyKey" not in query]
    queries += [
        'mutation { createPost(input: {text: "LONG"}) { id } }',
        'mutation { updateProfile(input: {bio: "LONG"}) { id } }',
        'mutation { updateProfile(input: {name: "LONG"}) { id } }',
    ]
    assert len(queries) == 7
    for query in queries:
        text = query.replace("LONG", blank).replace("$topic", f'"{chat.topic}"')
        text = text.replace("$community", f'"{chat.community}"')
        assert (await chat.ann.fails(text))["code"] == "BAD_USER_INPUT", text
    kept = f"👨\u200d👩\u200d👧{blank}!"
    assert (await chat.ann.post(chat.topic, kept))["text"] == kept


def test_only_iana_time_zones_are_accepted() -> None:
    for name in ("Asia/Tokyo", "Europe/Kyiv", "Europe/Kiev", "America/Argentina/Ushuaia", "UTC", "Etc/GMT+9", "CET"):
        assert checked_time_zone(name) == name
    for name in ("", "Tokyo", "../UTC", "Asia/Tokyo ", "asia/tokyo", "EST5", "Asia", "Etc/Unknown"):
        with pytest.raises(BadUserInput):
            checked_time_zone(name)


FOLDERS_OF_SYSTEMS = ("posix/Asia/Tokyo", "right/Asia/Tokyo", "right/UTC", "SystemV/EST5EDT", "zone.tab", "tzdata.zi")
PSEUDO_ZONES = ("localtime", "Factory", "posixrules", "posix", *FOLDERS_OF_SYSTEMS)


def time_zone_inputs() -> list[str]:
    """Returns every input of the schema that takes a time zone, such as `Query.searchMessages.timeZone`."""
    roots = (schema._schema.query_type, schema._schema.mutation_type)
    arguments = [(f"{root.name}.{name}", field.args) for root in roots if root for name, field in root.fields.items()]
    inputs = [(name, each.fields) for name, each in schema._schema.type_map.items() if is_input_object_type(each)]
    places = [f"{path}.{name}" for path, values in [*arguments, *inputs] for name in values]
    return sorted(each for each in places if "zone" in each.rpartition(".")[2].lower())


ZONED_QUERIES = {
    "CallingWindowInput.timeZone": 'mutation ($zone: String!) { launchCallJob(input: { name: "a", scenario: "a", '
    'csv: "phone_number", window: { start: "09:00", end: "18:00", timeZone: $zone } }) { id } }',
    "Query.searchMessages.timeZone": 'query ($zone: String!) { searchMessages(query: "a", latest: "now", '
    "timeZone: $zone) { oldest } }",
    "Query.searchPosts.timeZone": 'query ($zone: String!) { searchPosts(query: "a", latest: "now", timeZone: $zone) '
    "{ oldest } }",
    "Query.searchTopics.timeZone": 'query ($zone: String!) { searchTopics(query: "a", latest: "now", '
    "timeZone: $zone) { oldest } }",
    "QuietHoursInput.timeZone": "mutation ($zone: String!) { setNotificationSettings(input: { quietHours: "
    '{ start: "22:00", end: "07:00", timeZone: $zone } }) { digest } }',
    "SchedulePostAtLocalTimeInput.timeZone": "mutation ($zone: String!) { schedulePostAtLocalTime(input: "
    '{ text: "a", toHomeFeed: true, dueAtLocal: "2030-01-01T00:00", timeZone: $zone }) { id } }',
    "SchedulePostInput.timeZone": 'mutation ($zone: String!) { schedulePost(input: { text: "a", toHomeFeed: true, '
    'dueAt: "2030-01-01T00:00:00Z", timeZone: $zone }) { id } }',
    "UpdateScheduledPostInput.timeZone": "mutation ($id: ID!, $zone: String!) { updateScheduledPost(id: $id, input: "
    "{ timeZone: $zone }) { id } }",
}
SCHEDULE = (
    'mutation { done: schedulePost(input: { text: "a", toHomeFeed: true, dueAt: "2030-01-01T00:00:00Z" }) { id } }'
)


@pytest.mark.anyio
async def test_pseudo_zones_are_refused_wherever_a_zone_is(chat: ChatScenario, sign_in: SignIn) -> None:
    assert time_zone_inputs() == sorted(ZONED_QUERIES)
    operator = await sign_in("boss", roles=[Role.OPERATOR])
    post = await operator.do(SCHEDULE)
    for query in ZONED_QUERIES.values():
        for zone in PSEUDO_ZONES:
            used = {"id": post["id"]} if "$id" in query else {}
            refusal = await operator.fails(query, zone=zone, **used)
            assert (refusal["code"], refusal["field"]) == ("BAD_USER_INPUT", "timeZone"), (query, zone)
