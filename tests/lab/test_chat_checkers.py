"""Checkers of chat accept a good history, and each finds the violation of its rule."""

from typing import Any

import pytest

from tests.lab.checkers import Checker
from tests.lab.checkers.answers import errors_are_expected
from tests.lab.checkers.members import members_are_exact, reactions_are_exact, read_marks_never_move_back
from tests.lab.checkers.pages import (
    flags_of_pages_are_true,
    messages_are_stored_once,
    no_smaller_timestamp_appears,
    pages_are_in_order,
    pages_hold_acknowledged_messages,
)
from tests.lab.checkers.subscriptions import (
    events_are_contiguous,
    events_are_the_same_for_all,
    subscribers_receive_every_message,
    subscriptions_are_resumed,
)
from tests.lab.history import History, Outcome, RecordedOperation
from tests.lab.operations import operation


def new_post(text: str, begin: float, timestamp: int, outcome: Outcome = "ok") -> RecordedOperation:
    return operation("post", begin, {"id": text, "timestamp": timestamp}, outcome=outcome, topic="t", text=text)


def defy(text: str, begin: float, timestamp: int) -> RecordedOperation:
    return operation("defy", begin, {"id": text, "timestamp": timestamp}, topic="pair", text=text)


def page(
    begin: float,
    items: list[tuple[int, str]],
    process: str = "p",
    older: bool = False,
    newer: bool = False,
    oldest: int | None = 0,
    latest: int | str | None = None,
    limit: int = 50,
    topic: str = "t",
) -> RecordedOperation:
    result = {"items": [list(item) for item in items], "older": older, "newer": newer}
    bounds: dict[str, Any] = {"oldest": oldest, "latest": latest, "limit": limit, "inclusive": True}
    return operation("page", begin, result, process, topic=topic, **bounds)


def subscription(
    begin: float, since: int | None, first: int, events: list[tuple[int, int]], resumed: bool = True, process: str = "s"
) -> RecordedOperation:
    rows = [[number, "MessagePosted", timestamp, f"m{timestamp}", begin + 0.4] for number, timestamp in events]
    result = {"resumed": resumed, "first": first, "ready": begin + 0.1, "events": rows}
    return operation("subscription", begin, result, process, topic="t", since=since)


A, B, C = (10, "a"), (20, "b"), (30, "c")
POSTS = [new_post("a", 1, 10), new_post("b", 2, 20), new_post("c", 3, 30)]
READ_AT_END = page(9, [A, B, C], process="final")
REPLY = operation("post", 1, {"id": "r", "timestamp": 5}, topic="replies", text="r", also_to="t2")
READ_REPLY = page(9, [(5, "r")], process="final", topic="replies")
GOOD_HISTORY: History = [
    *POSTS,
    page(1.1, []),
    page(2.6, [A, B]),
    page(5, [A, B], newer=True, limit=2),
    page(5, [C, B], older=True, oldest=None, latest="now", limit=2),
    subscription(2.2, None, 4, [(5, 10), (6, 20)], resumed=False),
    subscription(2.8, 6, 6, [(7, 30)]),
    operation("react", 4, message="m", emoji="👍", add=True, process="ann"),
    operation("react", 5, message="m", emoji="👍", add=True, process="bob"),
    operation("react", 6, message="m", emoji="👍", add=False, process="ann"),
    operation("reactions", 9, [["👍", 1, ["bob"]]], message="m"),
    operation("membership", 1, change="join", process="ann"),
    operation("membership", 2, change="leave", process="ann"),
    operation("membership", 2, change="join", process="bob"),
    operation("members", 9, {"count": 1, "members": ["bob"]}),
    operation("markRead", 4, 20, topic="t", timestamp=20),
    operation("markRead", 5, 20, topic="t", timestamp=10),
    operation("readUpTo", 6, 20, topic="t"),
    READ_AT_END,
    REPLY,
    READ_REPLY,
    page(9, [(7, "r")], process="final", topic="t2"),
    defy("d", 1, 10),
    defy("e", 2, 20),
    page(3, [(20, "e")], older=True, oldest=None, latest="now", limit=1, topic="pair"),
    page(9, [(10, "d"), (20, "e")], process="final", topic="pair"),
    operation("post", 4, {"code": "UNAVAILABLE", "message": ""}, outcome="unknown", topic="t", text="never"),
]
CASES: dict[str, tuple[Checker, History]] = {
    "page lacks an acknowledged message": (pages_hold_acknowledged_messages, [*POSTS, page(4, [A, C])]),
    "newest page lacks an acknowledged message": (
        pages_hold_acknowledged_messages,
        [*POSTS, page(4, [B, A], oldest=None, latest="now")],
    ),
    "smaller timestamp appears in a later page": (no_smaller_timestamp_appears, [page(1, [B]), page(2, [A, B])]),
    "page lacks what another reader saw": (no_smaller_timestamp_appears, [page(1, [A, B]), page(2, [B])]),
    "page is not in order": (pages_are_in_order, [page(1, [B, A])]),
    "page repeats a message": (pages_are_in_order, [page(1, [A, A])]),
    "page holds more than was asked for": (pages_are_in_order, [page(1, [A, B], limit=1)]),
    "page holds a message outside of its bounds": (pages_are_in_order, [page(1, [A], oldest=11)]),
    "newer messages are denied": (flags_of_pages_are_true, [*POSTS, page(5, [A, B], limit=2)]),
    "older messages are invented": (flags_of_pages_are_true, [*POSTS, page(5, [A, B, C], older=True)]),
    "acknowledged message is lost": (messages_are_stored_once, [*POSTS, page(9, [A, C], process="final")]),
    "message is stored twice": (messages_are_stored_once, [*POSTS, page(9, [A, B, C, (40, "a")], process="final")]),
    "message changes its timestamp": (messages_are_stored_once, [*POSTS, page(3, [(11, "a")]), READ_AT_END]),
    "refused message is stored": (
        messages_are_stored_once,
        [*POSTS[:2], new_post("c", 3, 0, outcome="fail"), READ_AT_END],
    ),
    "reply is not in the topic": (messages_are_stored_once, [REPLY, READ_REPLY]),
    "reply is in the topic twice": (
        messages_are_stored_once,
        [REPLY, READ_REPLY, page(9, [(7, "r"), (8, "r")], process="final", topic="t2")],
    ),
    "message of a blocked person is lost": (messages_are_stored_once, [defy("d", 1, 10)]),
    "message of nobody is stored": (messages_are_stored_once, [*POSTS[:2], READ_AT_END]),
    "event is left out": (events_are_contiguous, [subscription(0, None, 4, [(5, 10), (7, 30)], resumed=False)]),
    "event is repeated": (events_are_contiguous, [subscription(0, None, 4, [(5, 10), (5, 10)], resumed=False)]),
    "first event is left out": (events_are_contiguous, [subscription(0, 4, 4, [(6, 10)])]),
    "subscription is resumed elsewhere": (events_are_contiguous, [subscription(0, 3, 4, [(5, 10)])]),
    "subscription is not resumed": (subscriptions_are_resumed, [subscription(0, 3, 4, [(5, 10)], resumed=False)]),
    "two subscribers see different events": (
        events_are_the_same_for_all,
        [subscription(0, 4, 4, [(5, 10)]), subscription(0, 4, 4, [(5, 20)], process="s2")],
    ),
    "subscriber misses a message": (
        subscribers_receive_every_message,
        [*POSTS, subscription(0, None, 4, [(5, 10), (6, 30)], resumed=False)],
    ),
    "subscriber receives a message twice": (
        subscribers_receive_every_message,
        [subscription(0, None, 4, [(5, 10), (6, 10)], resumed=False)],
    ),
    "reaction is lost": (reactions_are_exact, [*GOOD_HISTORY, operation("reactions", 9, [], message="m")]),
    "count of a reaction is wrong": (
        reactions_are_exact,
        [*GOOD_HISTORY, operation("reactions", 9, [["👍", 2, ["bob"]]], message="m")],
    ),
    "member is lost": (members_are_exact, [*GOOD_HISTORY, operation("members", 9, {"count": 1, "members": []})]),
    "memberCount is wrong": (
        members_are_exact,
        [*GOOD_HISTORY, operation("members", 9, {"count": 2, "members": ["bob"]})],
    ),
    "read mark moves back": (read_marks_never_move_back, [*GOOD_HISTORY, operation("readUpTo", 9, 10, topic="t")]),
    "acknowledged read mark is lost": (
        read_marks_never_move_back,
        [*GOOD_HISTORY, operation("markRead", 9, 20, topic="t", timestamp=30)],
    ),
    "unexpected error": (
        errors_are_expected,
        [operation("post", 1, {"code": "INTERNAL_SERVER_ERROR", "message": ""}, outcome="unknown")],
    ),
    "object is not found": (
        errors_are_expected,
        [operation("page", 1, {"code": "NOT_FOUND", "message": ""}, outcome="fail")],
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_broken_history_is_found(name: str) -> None:
    checker, history = CASES[name]
    assert checker(history).violations


@pytest.mark.parametrize("checker", list(dict.fromkeys(checker for checker, _ in CASES.values())))
def test_good_history_has_no_violation(checker: Checker) -> None:
    result = checker(GOOD_HISTORY)
    assert result.violations == []
    assert result.checked
