"""Reactions, members and read marks: exact at the end, and never moved back."""

from collections import Counter, defaultdict
from typing import Any

from tests.lab.checkers import Verdict
from tests.lab.history import Histories, select


def reactions_are_exact(history: Histories) -> Verdict:
    """At the end each reaction is what its user's last change made it, and counts are the number of users.

    A user repeats a change until it succeeds, so the last change that was answered decides.
    """
    expected: dict[tuple[str, str], set[str]] = defaultdict(set)
    for row in select(history, "react"):
        users = expected[row["arguments"]["message"], row["arguments"]["emoji"]]
        (users.add if row["arguments"]["add"] else users.discard)(row["process"])
    violations, judged = [], 0
    for row in select(history, "reactions"):
        message = row["arguments"]["message"]
        shown = {emoji: (count, set(users)) for emoji, count, users in row["result"]}
        wanted = {
            emoji: (len(users), users) for (where, emoji), users in expected.items() if where == message and users
        }
        judged += len(wanted)
        if shown != wanted:
            violations.append(f"{message} has the reactions {shown} instead of {wanted}")
    return Verdict(judged, violations)


def members_are_exact(history: Histories) -> Verdict:
    """At the end the members are those who joined last, and `memberCount` is their number."""
    members: set[str] = set()
    for row in select(history, "membership"):
        (members.add if row["arguments"]["change"] == "join" else members.discard)(row["process"])
    violations, judged = [], 0
    for row in select(history, "members"):
        judged += 1
        shown: list[Any] = row["result"]["members"]
        wrong = members ^ set(shown) | {each for each, count in Counter(shown).items() if count > 1}
        violations += [f"{each} is wrongly listed or missing" for each in sorted(wrong)]
        if row["result"]["count"] != len(members):
            violations.append(f"memberCount is {row['result']['count']} instead of {len(members)}")
    return Verdict(judged, violations)


def read_marks_never_move_back(history: Histories) -> Verdict:
    """A read mark is at or after every mark that was acknowledged and every mark that was read before."""
    violations, judged = [], 0
    marks: dict[tuple[str, str], int] = defaultdict(int)
    for row in select(history, "markRead", "readUpTo"):
        key, shown = (row["process"], row["arguments"]["topic"]), row["result"] or 0
        at_least = max(marks[key], row["arguments"].get("timestamp", 0))
        judged += 1
        if shown < at_least:
            violations.append(f"{key[0]}'s mark was {shown} at {row['end']:.3f}, after {at_least}")
        marks[key] = max(at_least, shown)
    return Verdict(judged, violations)
