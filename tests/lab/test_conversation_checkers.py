"""Checkers of conversations accept a good history, and each finds the violation of its rule."""

import pytest

from tests.lab.checkers import Checker
from tests.lab.checkers.conversations import (
    acknowledged_messages_are_found,
    blocked_people_add_nothing,
    followed_threads_are_exact,
    messages_have_one_thread,
    quotes_show_their_message,
    reply_counts_are_exact,
    strangers_learn_nothing,
    strangers_write_one_message,
)
from tests.lab.history import FINAL, History, Outcome, RecordedOperation
from tests.lab.operations import operation

REPLIES = "replies of m"


def reply(text: str, begin: float, thread: str = "t") -> RecordedOperation:
    return operation("post", begin, {"id": text, "timestamp": int(begin), "topic": thread}, topic=REPLIES, text=text)


def final_replies(*texts: str) -> RecordedOperation:
    items = [[number, text] for number, text in enumerate(texts)]
    return operation("page", 9, {"items": items, "older": False, "newer": False}, FINAL, topic=REPLIES)


def thread(replies: int) -> RecordedOperation:
    return operation("thread", 9, {"id": "t", "replies": replies}, FINAL, parent="m")


def search(begin: float, *texts: str) -> RecordedOperation:
    return operation("search", begin, list(texts), text="a")


def attempt(name: str, result: object, outcome: Outcome = "ok") -> RecordedOperation:
    return operation("intrude", 5, result, "stranger", outcome, attempt=name)


def block(begin: float, change: str = "block", outcome: Outcome = "ok") -> RecordedOperation:
    return operation("block", begin, {"id": "b"}, outcome=outcome, topic="pair", change=change)


def defy(begin: float, outcome: Outcome = "fail") -> RecordedOperation:
    result = {"id": "d", "timestamp": int(begin)} if outcome == "ok" else {"code": "FORBIDDEN"}
    return operation("defy", begin, result, outcome=outcome, topic="pair", text=f"defiant{begin}")


def page_of_pair(begin: float, *timestamps: int) -> RecordedOperation:
    items = [[timestamp, "a"] for timestamp in timestamps]
    return operation("page", begin, {"items": items, "older": False, "newer": False}, topic="pair")


def follow(begin: float, message: str, change: str = "follow") -> RecordedOperation:
    return operation("followThread", begin, message=message, change=change)


GOOD_HISTORY: History = [
    reply("a", 1),
    reply("b", 2),
    search(1, "a"),
    search(1.2),
    search(4, "a"),
    final_replies("a", "b"),
    thread(2),
    attempt("search", []),
    attempt("page", {"code": "NOT_FOUND", "message": ""}, "fail"),
    attempt("page", {"code": "UNAVAILABLE", "message": ""}, "unknown"),
    operation("ask", 5, {"id": "q"}, stranger="s"),
    operation("ask", 6, {"code": "FORBIDDEN", "message": ""}, outcome="fail", stranger="s"),
    page_of_pair(0, 1),
    block(1, outcome="unknown"),
    defy(1.2, "ok"),
    block(2),
    defy(2.2, "ok"),
    defy(3),
    page_of_pair(3, 2, 1),
    page_of_pair(4, 2, 1),
    block(5, "unblock"),
    defy(5.1, "ok"),
    page_of_pair(6, 3, 2),
    operation("quote", 9, "q", FINAL, message="m", quoted="q"),
    follow(1, "m"),
    follow(2, "n"),
    follow(3, "n", "unfollow"),
    operation("followedThreads", 9, ["m"], FINAL),
]
CASES: dict[str, tuple[Checker, History]] = {
    "stranger reads a page": (strangers_learn_nothing, [attempt("page", {"items": []})]),
    "stranger finds a message": (strangers_learn_nothing, [attempt("search", ["a"])]),
    "stranger learns that an object exists": (
        strangers_learn_nothing,
        [attempt("message", {"code": "FORBIDDEN", "message": ""}, "fail")],
    ),
    "stranger writes twice": (strangers_write_one_message, [operation("ask", n, {}, stranger="s") for n in (1, 2)]),
    "message has two threads": (messages_have_one_thread, [reply("a", 1), reply("b", 2, "other")]),
    "reply is not counted": (reply_counts_are_exact, [final_replies("a", "b"), thread(1)]),
    "lost reply is counted": (reply_counts_are_exact, [thread(1)]),
    "acknowledged message is not found": (acknowledged_messages_are_found, [reply("a", 1), search(2)]),
    "blocked person writes": (blocked_people_add_nothing, [block(1), defy(2, "ok"), block(3, "unblock")]),
    "message is committed late during a block": (
        blocked_people_add_nothing,
        [block(1), page_of_pair(2, 1), page_of_pair(3, 2, 1), block(4, "unblock")],
    ),
    "quote shows nothing": (quotes_show_their_message, [operation("quote", 9, None, message="m", quoted="q")]),
    "follow is lost": (followed_threads_are_exact, [follow(1, "m"), operation("followedThreads", 9, [])]),
    "thread is followed after all": (
        followed_threads_are_exact,
        [follow(1, "m"), follow(2, "m", "unfollow"), operation("followedThreads", 9, ["m"])],
    ),
    "search finds another message": (acknowledged_messages_are_found, [reply("a", 1), search(2, "a", "b")]),
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
