"""Feeds: every post exactly once in every follower's feed, and every arrival reported."""

from collections import Counter, defaultdict
from collections.abc import Collection
from itertools import pairwise

from tests.lab.checkers import CheckerResult
from tests.lab.history import FINAL, History, select

KEPT_POSTS = 800
"""The newest posts that a home feed keeps: docs/semantics.md, 4."""


def feeds_hold_every_post_once(history: History) -> CheckerResult:
    """At the end a feed holds the newest acknowledged posts of the reader's followees once, and no other posts."""
    _, possible = _posts(history)
    follows: dict[str, set[str]] = defaultdict(set)
    for operation in select(history, "follow"):
        follows[operation["process"]].add(operation["arguments"]["author"])
    feeds: dict[str, Counter[str]] = defaultdict(Counter)
    for operation in select(history, "homeFeed"):
        if operation["process"] == FINAL:
            feeds[operation["arguments"]["reader"]].update(text for _, text in operation["result"]["items"])
    violations, checked = [], 0
    for reader, texts in feeds.items():
        expected = kept_posts(history, follows[reader])
        allowed = {text for text, author in possible.items() if author in follows[reader]}
        checked += len(expected)
        violations += [f"{reader}'s feed lacks {text}" for text in sorted(expected - texts.keys())]
        violations += [f"{reader}'s feed holds {text}" for text in sorted(texts.keys() - allowed)]
        violations += [f"{reader}'s feed holds {text} {count} times" for text, count in texts.items() if count > 1]
    return CheckerResult(checked, violations)


def kept_posts(history: History, authors: Collection[str]) -> set[str]:
    """Returns the acknowledged posts of these authors that are certainly among their newest KEPT_POSTS posts."""
    acknowledged: dict[str, int] = {}
    possible: set[str] = set()
    for operation in select(history, "createPost", outcome=None):
        if operation["process"] in authors and operation["outcome"] != "fail":
            possible.add(operation["arguments"]["text"])
        if operation["process"] in authors and operation["outcome"] == "ok":
            acknowledged[operation["arguments"]["text"]] = operation["result"]
    newest = sorted(acknowledged, key=acknowledged.__getitem__, reverse=True)
    return set(newest[: max(0, KEPT_POSTS - len(possible - acknowledged.keys()))])


def authors_see_their_posts_at_once(history: History) -> CheckerResult:
    """The newest page of an author's own feed holds each post that was acknowledged before the page was requested.

    A full page need not hold posts that are older than its oldest post.
    """
    violations, checked = [], 0
    posted: dict[str, list[tuple[int, float, str]]] = defaultdict(list)
    for operation in select(history, "createPost"):
        posted[operation["process"]].append((operation["result"], operation["end"], operation["arguments"]["text"]))
    for operation in select(history, "homeFeed"):
        items = operation["result"]["items"]
        texts, is_full = {text for _, text in items}, len(items) == operation["arguments"]["limit"]
        oldest = min(at for at, _ in items) if is_full else 0
        own = posted.get(operation["process"], [])
        expected = [text for at, end, text in own if at > oldest and end < operation["begin"]]
        checked += len(expected)
        missing = [text for text in expected if text not in texts]
        violations += [f"{operation['process']}'s feed at {operation['begin']:.3f} lacks {text}" for text in missing]
    return CheckerResult(checked, violations)


def feeds_are_in_order(history: History) -> CheckerResult:
    """Timestamps of a page of a feed are distinct and in the order that its bounds require."""
    violations, checked = [], 0
    for operation in select(history, "homeFeed"):
        timestamps = [at for at, _ in operation["result"]["items"]]
        ascending = timestamps[::-1] if operation["arguments"]["latest"] == "now" else timestamps
        checked += 1
        if any(earlier >= later for earlier, later in pairwise(ascending)):
            violations.append(
                f"{operation['process']}'s feed at {operation['begin']:.3f} is not in order: {timestamps}"
            )
    return CheckerResult(checked, violations)


def arrivals_are_reported(history: History) -> CheckerResult:
    """A subscriber who always resumes receives each post that was created after the first StreamReady.

    Only posts of authors whom the subscriber followed before that StreamReady count. No event is repeated within one
    subscription.
    """
    violations, checked = [], 0
    acknowledged, _ = _posts(history)
    for reader, operations in _by_process(history, "homeSubscription").items():
        ready = operations[0]["result"]["ready"]
        followed = {
            operation["arguments"]["author"]
            for operation in select(history, "follow")
            if operation["process"] == reader and operation["end"] < ready
        }
        received = {text for operation in operations for _, text in operation["result"]["events"]}
        first_attempts: dict[str, float] = {}
        for operation in select(history, "createPost", outcome=None):
            first_attempts.setdefault(operation["arguments"]["text"], operation["begin"])
        expected = [
            each for each, author in acknowledged.items() if author in followed and first_attempts[each] > ready
        ]
        checked += len(expected)
        violations += [f"{reader} never received {text}" for text in expected if text not in received]
        for operation in operations:
            repeated = Counter(cursor for cursor, _ in operation["result"]["events"]).most_common(1)
            violations += [
                f"{reader} received an event {n} times at {operation['begin']:.3f}" for _, n in repeated if n > 1
            ]
    return CheckerResult(checked, violations)


def feed_subscriptions_are_resumed(history: History) -> CheckerResult:
    """A subscription to a home feed with a cursor of the run is resumed."""
    operations = [
        operation for operation in select(history, "homeSubscription") if operation["arguments"]["since"] is not None
    ]
    lost = [
        f"{operation['process']}'s subscription at {operation['begin']:.3f}"
        for operation in operations
        if not operation["result"]["resumed"]
    ]
    return CheckerResult(len(operations), [f"{each} was not resumed" for each in lost])


def follower_counts_are_exact(history: History) -> CheckerResult:
    """At the end `followerCount` of an author is the number of readers who followed the author."""
    followers: dict[str, set[str]] = defaultdict(set)
    for operation in select(history, "follow"):
        followers[operation["arguments"]["author"]].add(operation["process"])
    operations = list(select(history, "followers"))
    wrong = [
        operation for operation in operations if operation["result"] != len(followers[operation["arguments"]["user"]])
    ]
    return CheckerResult(
        len(operations),
        [f"{operation['arguments']['user']} has {operation['result']} followers" for operation in wrong],
    )


def _posts(history: History) -> tuple[dict[str, str], dict[str, str]]:
    """Returns the author of each acknowledged post, and of each post that may exist, by the text of the post."""
    acknowledged, possible = {}, {}
    for operation in select(history, "createPost", outcome=None):
        if operation["outcome"] == "ok":
            acknowledged[operation["arguments"]["text"]] = operation["process"]
        if operation["outcome"] != "fail":
            possible[operation["arguments"]["text"]] = operation["process"]
    return acknowledged, possible


def _by_process(history: History, name: str) -> dict[str, History]:
    by_process: dict[str, History] = defaultdict(list)
    for operation in select(history, name):
        by_process[operation["process"]].append(operation)
    return by_process
