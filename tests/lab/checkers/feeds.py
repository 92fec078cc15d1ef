"""Feeds: every post exactly once in every follower's feed, and every arrival reported."""

from collections import Counter, defaultdict
from collections.abc import Collection
from itertools import pairwise

from tests.lab.checkers import Verdict
from tests.lab.history import FINAL, Histories, select

KEPT = 800
"""The newest posts that a home feed keeps: docs/semantics.md, 4."""


def feeds_hold_every_post_once(history: Histories) -> Verdict:
    """At the end a feed holds the newest acknowledged posts of the authors that its reader follows once, no others."""
    _, possible = _posts(history)
    follows: dict[str, set[str]] = defaultdict(set)
    for row in select(history, "follow"):
        follows[row["process"]].add(row["arguments"]["author"])
    feeds: dict[str, Counter[str]] = defaultdict(Counter)
    for row in select(history, "homeFeed"):
        if row["process"] == FINAL:
            feeds[row["arguments"]["reader"]].update(text for _, text in row["result"]["items"])
    violations, judged = [], 0
    for reader, texts in feeds.items():
        wanted = kept_posts(history, follows[reader])
        allowed = {text for text, author in possible.items() if author in follows[reader]}
        judged += len(wanted)
        violations += [f"{reader}'s feed lacks {text}" for text in sorted(wanted - texts.keys())]
        violations += [f"{reader}'s feed holds {text}" for text in sorted(texts.keys() - allowed)]
        violations += [f"{reader}'s feed holds {text} {count} times" for text, count in texts.items() if count > 1]
    return Verdict(judged, violations)


def kept_posts(history: Histories, authors: Collection[str]) -> set[str]:
    """Returns the acknowledged posts of these authors that are among the newest KEPT, whatever else was stored."""
    acknowledged: dict[str, int] = {}
    possible: set[str] = set()
    for row in select(history, "createPost", outcome=None):
        if row["process"] in authors and row["outcome"] != "fail":
            possible.add(row["arguments"]["text"])
        if row["process"] in authors and row["outcome"] == "ok":
            acknowledged[row["arguments"]["text"]] = row["result"]
    newest = sorted(acknowledged, key=acknowledged.__getitem__, reverse=True)
    return set(newest[: max(0, KEPT - len(possible - acknowledged.keys()))])


def authors_see_their_posts_at_once(history: Histories) -> Verdict:
    """The newest page of an author's own feed holds each post that was acknowledged before the page was asked for.

    A full page need not hold the posts that are older than its oldest one.
    """
    violations, judged = [], 0
    posted: dict[str, list[tuple[int, float, str]]] = defaultdict(list)
    for row in select(history, "createPost"):
        posted[row["process"]].append((row["result"], row["end"], row["arguments"]["text"]))
    for row in select(history, "homeFeed"):
        items = row["result"]["items"]
        texts, is_full = {text for _, text in items}, len(items) == row["arguments"]["limit"]
        oldest = min(at for at, _ in items) if is_full else 0
        own = posted.get(row["process"], [])
        wanted = [text for at, end, text in own if at > oldest and end < row["begin"]]
        judged += len(wanted)
        missing = [text for text in wanted if text not in texts]
        violations += [f"{row['process']}'s feed at {row['begin']:.3f} lacks {text}" for text in missing]
    return Verdict(judged, violations)


def feeds_are_in_order(history: Histories) -> Verdict:
    """Timestamps of a page of a feed are distinct and in the order that its bounds ask for."""
    violations, judged = [], 0
    for row in select(history, "homeFeed"):
        timestamps = [at for at, _ in row["result"]["items"]]
        ascending = timestamps[::-1] if row["arguments"]["latest"] == "now" else timestamps
        judged += 1
        if any(earlier >= later for earlier, later in pairwise(ascending)):
            violations.append(f"{row['process']}'s feed at {row['begin']:.3f} is not in order: {timestamps}")
    return Verdict(judged, violations)


def arrivals_are_reported(history: Histories) -> Verdict:
    """A subscriber who always resumes receives each post that was created after they were first ready.

    This holds for authors whom they followed before. An event is not repeated within one subscription.
    """
    violations, judged = [], 0
    acknowledged, _ = _posts(history)
    for reader, rows in _by_process(history, "homeSubscription").items():
        ready = rows[0]["result"]["ready"]
        followed = {
            row["arguments"]["author"]
            for row in select(history, "follow")
            if row["process"] == reader and row["end"] < ready
        }
        received = {text for row in rows for _, text in row["result"]["events"]}
        first_tried: dict[str, float] = {}
        for row in select(history, "createPost", outcome=None):
            first_tried.setdefault(row["arguments"]["text"], row["begin"])
        wanted = [each for each, author in acknowledged.items() if author in followed and first_tried[each] > ready]
        judged += len(wanted)
        violations += [f"{reader} never received {text}" for text in wanted if text not in received]
        for row in rows:
            repeated = Counter(cursor for cursor, _ in row["result"]["events"]).most_common(1)
            violations += [f"{reader} received an event {n} times at {row['begin']:.3f}" for _, n in repeated if n > 1]
    return Verdict(judged, violations)


def feed_subscriptions_are_resumed(history: Histories) -> Verdict:
    """A subscription to a home feed with a cursor of the run is resumed."""
    rows = [row for row in select(history, "homeSubscription") if row["arguments"]["since"] is not None]
    lost = [f"{row['process']}'s at {row['begin']:.3f}" for row in rows if not row["result"]["resumed"]]
    return Verdict(len(rows), [f"{each} was not resumed" for each in lost])


def follower_counts_are_exact(history: Histories) -> Verdict:
    """At the end `followerCount` is the number of readers who followed."""
    followers: dict[str, set[str]] = defaultdict(set)
    for row in select(history, "follow"):
        followers[row["arguments"]["author"]].add(row["process"])
    rows = list(select(history, "followers"))
    wrong = [row for row in rows if row["result"] != len(followers[row["arguments"]["user"]])]
    return Verdict(len(rows), [f"{row['arguments']['user']} has {row['result']} followers" for row in wrong])


def _posts(history: Histories) -> tuple[dict[str, str], dict[str, str]]:
    """Returns the authors of acknowledged posts, and of those that may exist, by text."""
    acknowledged, possible = {}, {}
    for row in select(history, "createPost", outcome=None):
        if row["outcome"] == "ok":
            acknowledged[row["arguments"]["text"]] = row["process"]
        if row["outcome"] != "fail":
            possible[row["arguments"]["text"]] = row["process"]
    return acknowledged, possible


def _by_process(history: Histories, operation: str) -> dict[str, Histories]:
    found: dict[str, Histories] = defaultdict(list)
    for row in select(history, operation):
        found[row["process"]].append(row)
    return found
