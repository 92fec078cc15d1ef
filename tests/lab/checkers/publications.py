"""Publications: once, at their target only, never early, and never after an acknowledged cancel."""

from collections import Counter, defaultdict
from typing import Any

from tests.lab.checkers import Verdict
from tests.lab.history import Histories, Operation, select

NOT_DELIVERED = {"UNREACHABLE"}
"""Failures that a network which can't be reached explains."""


def publications_happen_once(history: Histories) -> Verdict:
    """An acknowledged post is published once, at its target; an unacknowledged one at most once; nothing else is."""
    published = _published(history)
    scheduled = _scheduled(history)
    violations = []
    for text, rows in scheduled.items():
        places = Counter(target for target, _ in published.pop(text, []))
        target, outcomes = rows[0]["arguments"]["target"], {row["outcome"] for row in rows}
        if places.total() > 1 or set(places) - {target}:
            violations.append(f"{text} for {target} was published at {dict(places)}")
        if "ok" in outcomes and not places and not _may_be_unpublished(history, text):
            violations.append(f"{text} was acknowledged and was not published at {target}")
        if outcomes == {"fail"} and places:
            violations.append(f"{text} was refused and was published")
    violations += [f"{text} was never scheduled and was published" for text in published]
    return Verdict(len(scheduled), violations)


def publications_are_never_early(history: Histories) -> Verdict:
    """Nothing is published before its due moment, by the clock of the twin or the timestamp of the message or post."""
    violations, judged = [], 0
    published = _published(history)
    for text, rows in _scheduled(history).items():
        due = rows[0]["arguments"]["due"]
        judged += len(published.get(text, []))
        violations += [f"{text} was published {due - at:.6f} s early" for _, at in published.get(text, []) if at < due]
    return Verdict(judged, violations)


def states_of_publications_are_true(history: Histories) -> Verdict:
    """In the end a publication is PUBLISHED if and only if it was published, and no outcome stays unknown."""
    published, last = _published(history), {row["arguments"]["text"]: row for row in select(history, "scheduledPost")}
    violations = []
    for text, row in last.items():
        (state, _error), is_published = row["result"][0], bool(published.get(text))
        if state not in ("PUBLISHED", "FAILED", "CANCELLED"):
            violations.append(f"{text} is still {state}")
        elif (state == "PUBLISHED") != is_published:
            violations.append(f"{text} is {state}, and was {'' if is_published else 'not '}published")
    return Verdict(len(last), violations)


def cancelled_posts_stay_unpublished(history: Histories) -> Verdict:
    """A post whose cancellation was acknowledged is not published."""
    published, cancelled = _published(history), [row["arguments"]["text"] for row in select(history, "cancel")]
    wrong = [text for text in cancelled if text in published]
    return Verdict(len(cancelled), [f"{text} was cancelled and was published" for text in wrong])


def _published(history: Histories) -> dict[str, list[tuple[str, float]]]:
    """Returns target and time of each publication by text."""
    found: dict[str, list[tuple[str, float]]] = defaultdict(list)
    for row in select(history, "published"):
        for text, at in row["result"]:
            found[text].append((row["arguments"]["target"], at))
    return found


def _scheduled(history: Histories) -> dict[str, list[Operation]]:
    found: dict[str, list[Operation]] = defaultdict(list)
    for row in select(history, "schedule", outcome=None):
        found[row["arguments"]["text"]].append(row)
    return found


def _may_be_unpublished(history: Histories, text: str) -> bool:
    """Returns whether the post was cancelled, or failed because its network could not be reached."""
    cancels = [row for row in select(history, "cancel", outcome=None) if row["outcome"] != "fail"]
    if any(row["arguments"]["text"] == text for row in cancels):
        return True
    results: list[Any] = [row["result"] for row in select(history, "scheduledPost") if row["arguments"]["text"] == text]
    return bool(results) and results[-1][0][0] == "FAILED" and results[-1][0][1] in NOT_DELIVERED
