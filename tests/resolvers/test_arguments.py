"""Validation of arguments. A refusal names the field as the client wrote it."""

from collections.abc import Callable
from typing import Any

import pytest
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
from storage.errors import BadUserInput
from storage.timeline import NOW
from tests.resolvers.people import ChatScenario

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
async def test_text_without_visible_character_is_refused(chat: ChatScenario, blank: str) -> None:
    queries = [query for query, _ in INVALID_QUERIES if "LONG" in query and "idempotencyKey" not in query]
    queries += [
        'mutation { createPost(input: {text: "LONG"}) { id } }',
        'mutation { updateProfile(input: {bio: "LONG"}) { id } }',
    ]
    assert len(queries) == 6
    for query in queries:
        text = query.replace("LONG", blank).replace("$topic", f'"{chat.topic}"')
        text = text.replace("$community", f'"{chat.community}"')
        assert (await chat.ann.fails(text))["code"] == "BAD_USER_INPUT", text
    kept = f"👨\u200d👩\u200d👧{blank}!"
    assert (await chat.ann.post(chat.topic, kept))["text"] == kept


def test_only_iana_time_zones_are_accepted() -> None:
    assert checked_time_zone("Asia/Tokyo") == "Asia/Tokyo"
    for name in ("", "Tokyo", "../UTC", "Asia/Tokyo ", "EST5", "posix/Asia/Tokyo", "right/Asia/Tokyo"):
        with pytest.raises(BadUserInput):
            checked_time_zone(name)
