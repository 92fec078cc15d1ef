"""Checkers of conversations accept a good history, and each finds the violation of its rule."""

import pytest

from tests.lab.checkers import Checker
from tests.lab.checkers.conversations import (
    acknowledged_messages_are_found,
    messages_have_one_thread,
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
