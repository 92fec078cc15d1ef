"""Checkers of feeds, publications, calls and mail accept a good history, and each finds the violation of its rule."""

import pytest

from tests.lab.checkers import Checker
from tests.lab.checkers.calls import calls_stay_within_limits, numbers_are_called_once, states_of_calls_are_true
from tests.lab.checkers.feeds import (
    arrivals_are_reported,
    authors_see_their_posts_at_once,
    feed_subscriptions_are_resumed,
    feeds_are_in_order,
    feeds_hold_every_post_once,
    follower_counts_are_exact,
)
from tests.lab.checkers.mail import counts_of_the_book_are_exact, successes_never_decrease
from tests.lab.checkers.publications import (
    cancelled_posts_stay_unpublished,
    publications_are_never_early,
    publications_happen_once,
    states_of_publications_are_true,
)
from tests.lab.history import FINAL, History, Outcome, RecordedOperation
from tests.lab.operations import operation


def new_post(
    text: str, begin: float, process: str = "ann", outcome: Outcome = "ok", timestamp: int = 10
) -> RecordedOperation:
    return operation("createPost", begin, timestamp, process, outcome, text=text)


def feed(
    begin: float, texts: list[str], reader: str = "bob", process: str = FINAL, latest: str | None = None
) -> RecordedOperation:
    items = [[10 * number, text] for number, text in enumerate(texts, start=1)]
    result = {"items": items if latest is None else items[::-1], "newer": False}
    return operation("homeFeed", begin, result, process, latest=latest, limit=20, reader=reader)


def arrivals(begin: float, texts: list[str], since: str | None = None, resumed: bool = False) -> RecordedOperation:
    events = [[f"cursor of {text}", text] for text in texts]
    result = {"resumed": resumed, "ready": begin + 0.1, "events": events}
    return operation("homeSubscription", begin, result, "bob", since=since)


FEEDS: History = [
    operation("follow", 0, process="bob", author="ann"),
    arrivals(1, ["a"]),
    new_post("a", 2),
    feed(3, ["a"], reader="ann", process="ann", latest="now"),
    new_post("b", 4),
    new_post("c", 5, process="cid"),
    new_post("d", 5, outcome="unknown"),
    arrivals(6, ["b"], since="cursor of a", resumed=True),
    feed(9, ["a", "b", "d"]),
    operation("followers", 9, 1, FINAL, user="ann"),
]
LONG_FEED: History = [
    FEEDS[0],
    *(new_post(f"p{n}", 2 * n, timestamp=n) for n in range(901)),
    new_post("x", 2, outcome="unknown"),
]
"""A history of more posts than a feed keeps. One of them may have been stored without an acknowledgement."""


def new_schedule(text: str, target: str = "topic", due: float = 10, outcome: Outcome = "ok") -> RecordedOperation:
    return operation("schedule", 1, f"id of {text}", outcome=outcome, text=text, target=target, due=due)


def final_state(text: str, name: str, error: str | None = None) -> RecordedOperation:
    return operation("scheduledPost", 20, [[name, error]], FINAL, text=text)


def publications(target: str, **times: float) -> RecordedOperation:
    return operation("published", 21, [[text, at] for text, at in times.items()], FINAL, target=target)


PUBLICATIONS: History = [
    new_schedule("a"),
    new_schedule("b", "hook"),
    new_schedule("c"),
    operation("cancel", 2, text="c"),
    new_schedule("d", outcome="unknown"),
    new_schedule("e", "hook"),
    final_state("a", "PUBLISHED"),
    final_state("b", "PUBLISHED"),
    final_state("c", "CANCELLED"),
    final_state("e", "FAILED", "UNREACHABLE"),
    publications("topic", a=10.0),
    publications("hook", b=12.5),
]


def new_job(numbers: list[str], blocked: list[str], is_open: bool = True, outcome: Outcome = "ok") -> RecordedOperation:
    return operation("launch", 1, "id", outcome=outcome, job="j", numbers=numbers, blocked=blocked, open=is_open)


def calls(*placed: tuple[str, float, float | None]) -> RecordedOperation:
    return operation("calls", 30, [list(each) for each in placed], FINAL)


def final_job(*tasks: tuple[str, str, int], job_state: str = "COMPLETED") -> RecordedOperation:
    rows = [[number, state, None, attempts] for number, state, attempts in tasks]
    return operation("callJob", 29, {"state": job_state, "tasks": rows}, FINAL, job="j")


LIMITS = operation("setCallLimits", 0, concurrentCalls=1, callsPerSecond=2)
LAUNCHES = [new_job(["1", "2", "3"], ["2"]), new_job(["4"], [], is_open=False), new_job(["5"], [], outcome="fail")]
CALLS: History = [
    LIMITS,
    *LAUNCHES,
    calls(("1", 2.0, 2.5), ("3", 2.5, 2.7)),
    final_job(("1", "COMPLETED", 1), ("2", "SKIPPED", 0), ("3", "COMPLETED", 1)),
    operation("activeCalls", 30, 0, FINAL),
]


def deliveries(*events: tuple[str, str, float]) -> RecordedOperation:
    rows = [[id_, "a@b", kind, at] for id_, kind, at in events]
    return operation("recordDeliveries", 1, events=rows)


def book(begin: float, success: int, soft: int, hard: int, process: str = FINAL) -> RecordedOperation:
    return operation("addressBook", begin, [["a@b", success, soft, hard]], process)


SENT = [deliveries(("1", "success", 5.0), ("2", "soft", 4.0)), deliveries(("3", "soft", 6.0), ("1", "success", 5.0))]
MAIL: History = [*SENT, book(3, 0, 1, 0, "pat"), book(5, 1, 0, 0, "pat"), book(9, 1, 1, 0)]

CASES: dict[str, tuple[Checker, History]] = {
    "feed lacks a post": (feeds_hold_every_post_once, [*FEEDS[:-2], feed(9, ["a"])]),
    "feed holds a post twice": (feeds_hold_every_post_once, [*FEEDS[:-2], feed(9, ["a", "b", "b"])]),
    "feed holds a post of a stranger": (feeds_hold_every_post_once, [*FEEDS[:-2], feed(9, ["a", "b", "c"])]),
    "feed lacks one of its newest posts": (
        feeds_hold_every_post_once,
        [*LONG_FEED, feed(99_999, [f"p{n}" for n in range(103, 901)])],
    ),
    "author does not see a post": (
        authors_see_their_posts_at_once,
        [new_post("a", 2), feed(3, [], process="ann", latest="now")],
    ),
    "full page lacks an author's newest post": (
        authors_see_their_posts_at_once,
        [new_post("a", 2, timestamp=999), feed(3, [f"p{n}" for n in range(20)], process="ann", latest="now")],
    ),
    "feed is not in order": (
        feeds_are_in_order,
        [operation("homeFeed", 1, {"items": [[20, "b"], [10, "a"]], "newer": False}, latest=None)],
    ),
    "arrival is not reported": (
        arrivals_are_reported,
        [FEEDS[0], arrivals(1, ["a"]), new_post("a", 2), new_post("b", 3)],
    ),
    "arrival is repeated": (arrivals_are_reported, [FEEDS[0], arrivals(1, ["a", "a"]), new_post("a", 2)]),
    "feed subscription is not resumed": (feed_subscriptions_are_resumed, [arrivals(1, [], since="cursor")]),
    "followerCount is wrong": (follower_counts_are_exact, [*FEEDS, operation("followers", 9, 2, user="ann")]),
    "publication is lost": (publications_happen_once, [new_schedule("a"), final_state("a", "PUBLISHED")]),
    "publication is repeated": (
        publications_happen_once,
        [new_schedule("a"), publications("topic", a=10), publications("topic", a=11)],
    ),
    "publication is elsewhere": (publications_happen_once, [new_schedule("a"), publications("hook", a=10)]),
    "refused post is published": (
        publications_happen_once,
        [new_schedule("a", outcome="fail"), publications("topic", a=10)],
    ),
    "post of nobody is published": (publications_happen_once, [publications("topic", a=10)]),
    "publication is early": (publications_are_never_early, [new_schedule("a"), publications("topic", a=9.999999)]),
    "outcome stays unknown": (states_of_publications_are_true, [new_schedule("a"), final_state("a", "UNKNOWN")]),
    "published post is FAILED": (
        states_of_publications_are_true,
        [new_schedule("a"), final_state("a", "FAILED"), publications("topic", a=10)],
    ),
    "PUBLISHED post is not published": (
        states_of_publications_are_true,
        [new_schedule("a"), final_state("a", "PUBLISHED")],
    ),
    "cancelled post is published": (
        cancelled_posts_stay_unpublished,
        [new_schedule("a"), operation("cancel", 2, text="a"), publications("topic", a=10)],
    ),
    "too many calls are active": (calls_stay_within_limits, [LIMITS, calls(("1", 2.0, 2.5), ("3", 2.4, 2.7))]),
    "too many calls start in a second": (
        calls_stay_within_limits,
        [LIMITS, calls(("1", 2.0, 2.1), ("2", 2.2, 2.3), ("3", 2.9, 2.95))],
    ),
    "number is called twice": (numbers_are_called_once, [*LAUNCHES, calls(("1", 2.0, 2.5), ("1", 3.0, 3.5))]),
    "blocked number is called": (numbers_are_called_once, [*LAUNCHES, calls(("2", 2.0, 2.5))]),
    "number is called outside of its window": (numbers_are_called_once, [*LAUNCHES, calls(("4", 2.0, 2.5))]),
    "number of a refused job is called": (numbers_are_called_once, [*LAUNCHES, calls(("5", 2.0, 2.5))]),
    "job does not end": (states_of_calls_are_true, [*LAUNCHES, final_job(("1", "QUEUED", 0), job_state="RUNNING")]),
    "COMPLETED number was not called": (
        states_of_calls_are_true,
        [*LAUNCHES, final_job(("1", "COMPLETED", 1)), calls()],
    ),
    "attempts are wrong": (
        states_of_calls_are_true,
        [*LAUNCHES, final_job(("1", "COMPLETED", 2)), calls(("1", 2.0, 2.5))],
    ),
    "job is lost": (states_of_calls_are_true, [*LAUNCHES, operation("activeCalls", 30, 0, FINAL)]),
    "call stays active": (states_of_calls_are_true, [*CALLS, operation("activeCalls", 30, 1, FINAL)]),
    "event is not counted": (counts_of_the_book_are_exact, [*SENT, book(9, 0, 1, 0)]),
    "event is counted twice": (counts_of_the_book_are_exact, [*SENT, book(9, 2, 1, 0)]),
    "bounce before the success is counted": (counts_of_the_book_are_exact, [*SENT, book(9, 1, 2, 0)]),
    "successes decrease": (successes_never_decrease, [*SENT, book(3, 1, 0, 0, "pat"), book(5, 0, 0, 0, "pat")]),
    "successes exceed the events": (successes_never_decrease, [*SENT, book(3, 2, 0, 0, "pat")]),
}


@pytest.mark.parametrize("name", CASES)
def test_broken_history_is_found(name: str) -> None:
    checker, history = CASES[name]
    assert checker(history).violations


@pytest.mark.parametrize("checker", list(dict.fromkeys(checker for checker, _ in CASES.values())))
def test_good_history_has_no_violation(checker: Checker) -> None:
    result = checker([*FEEDS, *PUBLICATIONS, *CALLS, *MAIL])
    assert result.violations == []
    assert result.checked


def test_feed_may_lack_posts_older_than_its_newest_800() -> None:
    texts = [f"p{n}" for n in range(102, 901)]
    assert feeds_hold_every_post_once([*LONG_FEED, feed(99_999, texts)]).violations == []
