"""Reactions, members and read marks: exact at the end, and never moved back."""

from collections import Counter, defaultdict
from typing import Any

from tests.lab.checkers import CheckerResult
from tests.lab.history import History, select


def reactions_are_exact(history: History) -> CheckerResult:
    """At the end a reaction has the users whose last change added it, and its count is their number.

    A user repeats a change until it succeeds, so the last successful change decides.
    """
    users_by_reaction: dict[tuple[str, str], set[str]] = defaultdict(set)
    for operation in select(history, "react"):
        users = users_by_reaction[operation["arguments"]["message"], operation["arguments"]["emoji"]]
        (users.add if operation["arguments"]["add"] else users.discard)(operation["process"])
    violations, checked = [], 0
    for operation in select(history, "reactions"):
        message = operation["arguments"]["message"]
        shown = {emoji: (count, set(users)) for emoji, count, users in operation["result"]}
        expected = {
            emoji: (len(users), users) for (id_, emoji), users in users_by_reaction.items() if id_ == message and users
        }
        checked += len(expected)
        if shown != expected:
            violations.append(f"{message} has the reactions {shown} instead of {expected}")
    return CheckerResult(checked, violations)


def members_are_exact(history: History) -> CheckerResult:
    """At the end the members are the users whose last change was to join, and `memberCount` is their number."""
    members: set[str] = set()
    for operation in select(history, "membership"):
        (members.add if operation["arguments"]["change"] == "join" else members.discard)(operation["process"])
    violations, checked = [], 0
    for operation in select(history, "members"):
        checked += 1
        shown: list[Any] = operation["result"]["members"]
        wrong = members ^ set(shown) | {each for each, count in Counter(shown).items() if count > 1}
        violations += [f"{each} is wrongly listed or missing" for each in sorted(wrong)]
        if operation["result"]["count"] != len(members):
            violations.append(f"memberCount is {operation['result']['count']} instead of {len(members)}")
    return CheckerResult(checked, violations)


def read_marks_never_move_back(history: History) -> CheckerResult:
    """A read mark is at or after every mark that was acknowledged and every mark that was read before."""
    violations, checked = [], 0
    marks: dict[tuple[str, str], int] = defaultdict(int)
    for operation in select(history, "markRead", "readUpTo"):
        key, shown = (operation["process"], operation["arguments"]["topic"]), operation["result"] or 0
        at_least = max(marks[key], operation["arguments"].get("timestamp", 0))
        checked += 1
        if shown < at_least:
            violations.append(f"{key[0]}'s mark was {shown} at {operation['end']:.3f}, after {at_least}")
        marks[key] = max(at_least, shown)
    return CheckerResult(checked, violations)
