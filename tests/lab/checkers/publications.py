"""Publications: once, at their target only, never early, and never after an acknowledged cancel."""

from collections import Counter, defaultdict
from typing import Any

from tests.lab.checkers import CheckerResult
from tests.lab.history import History, RecordedOperation, select

UNREACHABLE_CODES = {"UNREACHABLE"}
"""Error codes of publications whose network could not be reached."""


def publications_happen_once(history: History) -> CheckerResult:
    """An acknowledged post is published once, at its target only. An unacknowledged post is published at most once."""
    published = _published(history)
    scheduled = _scheduled(history)
    violations = []
    for text, operations in scheduled.items():
        places = Counter(target for target, _ in published.pop(text, []))
        target, outcomes = operations[0]["arguments"]["target"], {operation["outcome"] for operation in operations}
        if places.total() > 1 or set(places) - {target}:
            violations.append(f"{text} for {target} was published at {dict(places)}")
        if "ok" in outcomes and not places and not _may_be_unpublished(history, text):
            violations.append(f"{text} was acknowledged and was not published at {target}")
        if outcomes == {"fail"} and places:
            violations.append(f"{text} was refused and was published")
    violations += [f"{text} was never scheduled and was published" for text in published]
    return CheckerResult(len(scheduled), violations)


def publications_are_never_early(history: History) -> CheckerResult:
    """Nothing is published before its due moment, by the clock of the twin or the timestamp of the message or post."""
    violations, checked = [], 0
    published = _published(history)
    for text, operations in _scheduled(history).items():
        due = operations[0]["arguments"]["due"]
        checked += len(published.get(text, []))
        violations += [f"{text} was published {due - at:.6f} s early" for _, at in published.get(text, []) if at < due]
    return CheckerResult(checked, violations)


def states_of_publications_are_true(history: History) -> CheckerResult:
    """In the end a publication is PUBLISHED if and only if it was published, and no outcome stays unknown."""
    published, last = (
        _published(history),
        {operation["arguments"]["text"]: operation for operation in select(history, "scheduledPost")},
    )
    violations = []
    for text, operation in last.items():
        (state, _error), is_published = operation["result"][0], bool(published.get(text))
        if state not in ("PUBLISHED", "FAILED", "CANCELLED"):
            violations.append(f"{text} is still {state}")
        elif (state == "PUBLISHED") != is_published:
            violations.append(f"{text} is {state}, and was {'' if is_published else 'not '}published")
    return CheckerResult(len(last), violations)


def cancelled_posts_stay_unpublished(history: History) -> CheckerResult:
    """A post whose cancellation was acknowledged is not published."""
    published, cancelled = (
        _published(history),
        [operation["arguments"]["text"] for operation in select(history, "cancel")],
    )
    wrong = [text for text in cancelled if text in published]
    return CheckerResult(len(cancelled), [f"{text} was cancelled and was published" for text in wrong])


def _published(history: History) -> dict[str, list[tuple[str, float]]]:
    """Returns target and time of each publication by text."""
    by_text: dict[str, list[tuple[str, float]]] = defaultdict(list)
    for operation in select(history, "published"):
        for text, at in operation["result"]:
            by_text[text].append((operation["arguments"]["target"], at))
    return by_text


def _scheduled(history: History) -> dict[str, list[RecordedOperation]]:
    by_text: dict[str, list[RecordedOperation]] = defaultdict(list)
    for operation in select(history, "schedule", outcome=None):
        by_text[operation["arguments"]["text"]].append(operation)
    return by_text


def _may_be_unpublished(history: History, text: str) -> bool:
    """Returns whether the post was cancelled, or failed because its network could not be reached."""
    cancels = [operation for operation in select(history, "cancel", outcome=None) if operation["outcome"] != "fail"]
    if any(operation["arguments"]["text"] == text for operation in cancels):
        return True
    results: list[Any] = [
        operation["result"] for operation in select(history, "scheduledPost") if operation["arguments"]["text"] == text
    ]
    return bool(results) and results[-1][0][0] == "FAILED" and results[-1][0][1] in UNREACHABLE_CODES
