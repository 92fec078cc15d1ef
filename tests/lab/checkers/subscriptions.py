"""Subscriptions to topics: contiguous events, the same for everybody, and no message left out."""

from collections import defaultdict
from itertools import pairwise

from tests.lab.checkers import CheckerResult
from tests.lab.history import History, RecordedOperation, select


def events_are_contiguous(history: History) -> CheckerResult:
    """Event numbers of a subscription follow one another, and follow its cursor if it says `resumed: true`."""
    violations, checked = [], 0
    for operation in select(history, "subscription"):
        numbers = [number for number, *_ in operation["result"]["events"]]
        since, result = operation["arguments"]["since"], operation["result"]
        checked += len(numbers)
        violations += [
            f"{_name(operation)}: {b} follows {a}" for a, b in pairwise([result["first"], *numbers]) if b != a + 1
        ]
        if result["resumed"] and result["first"] != since:
            violations.append(f"{_name(operation)} was resumed at {result['first']} instead of {since}")
    return CheckerResult(checked, violations)


def subscriptions_are_resumed(history: History) -> CheckerResult:
    """A subscription with a cursor is resumed: no cursor of a run is too old, and no stream is reset."""
    with_cursor = [
        operation for operation in select(history, "subscription") if operation["arguments"]["since"] is not None
    ]
    return CheckerResult(
        len(with_cursor),
        [f"{_name(operation)} was not resumed" for operation in with_cursor if not operation["result"]["resumed"]],
    )


def events_are_the_same_for_all(history: History) -> CheckerResult:
    """An event number identifies the same event in every subscription."""
    seen: dict[tuple[str, int], set[tuple[str, int]]] = defaultdict(set)
    for operation in select(history, "subscription"):
        for number, kind, timestamp, *_ in operation["result"]["events"]:
            seen[operation["arguments"]["topic"], number].add((kind, timestamp))
    violations = [f"Event {number} is {sorted(events)}" for (_, number), events in seen.items() if len(events) > 1]
    return CheckerResult(len(seen), violations)


def subscribers_receive_every_message(history: History) -> CheckerResult:
    """A subscriber that resumes receives each message posted after the first StreamReady, under one number."""
    violations, checked = [], 0
    for (process, topic), operations in _subscribers(history).items():
        numbers: dict[int, set[int]] = defaultdict(set)
        for operation in operations:
            for number, kind, timestamp, *_ in operation["result"]["events"]:
                if kind == "MessagePosted":
                    numbers[timestamp].add(number)
        violations += [f"{process} received {each} as {sorted(n)}" for each, n in numbers.items() if len(n) > 1]
        for post in select(history, "post"):
            if post["arguments"]["topic"] == topic and post["begin"] > operations[0]["result"]["ready"]:
                checked += 1
                if post["result"]["timestamp"] not in numbers:
                    violations.append(f"{process} never received {post['arguments']['text']}")
    return CheckerResult(checked, violations)


def _subscribers(history: History) -> dict[tuple[str, str], list[RecordedOperation]]:
    subscriptions: dict[tuple[str, str], list[RecordedOperation]] = defaultdict(list)
    for operation in select(history, "subscription"):
        subscriptions[operation["process"], operation["arguments"]["topic"]].append(operation)
    return subscriptions


def _name(operation: RecordedOperation) -> str:
    return f"{operation['process']}'s subscription at {operation['begin']:.3f} since {operation['arguments']['since']}"
