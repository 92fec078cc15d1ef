"""Subscriptions to topics: contiguous events, the same for everybody, and no message left out."""

from collections import defaultdict
from itertools import pairwise

from tests.lab.checkers import Verdict
from tests.lab.history import Histories, Operation, select


def events_are_contiguous(history: Histories) -> Verdict:
    """Event numbers of a subscription follow one another, and follow its cursor if it says `resumed: true`."""
    violations, judged = [], 0
    for row in select(history, "subscription"):
        numbers = [number for number, *_ in row["result"]["events"]]
        since, result = row["arguments"]["since"], row["result"]
        judged += len(numbers)
        violations += [f"{_name(row)}: {b} follows {a}" for a, b in pairwise([result["first"], *numbers]) if b != a + 1]
        if result["resumed"] and result["first"] != since:
            violations.append(f"{_name(row)} was resumed at {result['first']} instead of {since}")
    return Verdict(judged, violations)


def subscriptions_are_resumed(history: Histories) -> Verdict:
    """A subscription with a cursor is resumed: no cursor of a run is too old, and no stream is reset."""
    resumed = [row for row in select(history, "subscription") if row["arguments"]["since"] is not None]
    return Verdict(len(resumed), [f"{_name(row)} was not resumed" for row in resumed if not row["result"]["resumed"]])


def events_are_the_same_for_all(history: Histories) -> Verdict:
    """An event number stands for the same event in every subscription."""
    seen: dict[tuple[str, int], set[tuple[str, int]]] = defaultdict(set)
    for row in select(history, "subscription"):
        for number, kind, timestamp, *_ in row["result"]["events"]:
            seen[row["arguments"]["topic"], number].add((kind, timestamp))
    violations = [f"Event {number} is {sorted(events)}" for (_, number), events in seen.items() if len(events) > 1]
    return Verdict(len(seen), violations)


def subscribers_receive_every_message(history: Histories) -> Verdict:
    """A subscriber that always resumes receives each message posted after it was first ready, under one number."""
    violations, judged = [], 0
    for (process, topic), rows in _subscribers(history).items():
        numbers: dict[int, set[int]] = defaultdict(set)
        for row in rows:
            for number, kind, timestamp, *_ in row["result"]["events"]:
                if kind == "MessagePosted":
                    numbers[timestamp].add(number)
        violations += [f"{process} received {each} as {sorted(n)}" for each, n in numbers.items() if len(n) > 1]
        for post in select(history, "post"):
            if post["arguments"]["topic"] == topic and post["begin"] > rows[0]["result"]["ready"]:
                judged += 1
                if post["result"]["timestamp"] not in numbers:
                    violations.append(f"{process} never received {post['arguments']['text']}")
    return Verdict(judged, violations)


def _subscribers(history: Histories) -> dict[tuple[str, str], list[Operation]]:
    found: dict[tuple[str, str], list[Operation]] = defaultdict(list)
    for row in select(history, "subscription"):
        found[row["process"], row["arguments"]["topic"]].append(row)
    return found


def _name(row: Operation) -> str:
    return f"{row['process']}'s subscription at {row['begin']:.3f} since {row['arguments']['since']}"
