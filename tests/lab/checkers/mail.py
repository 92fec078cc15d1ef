"""The address book: every delivery event is counted once, in whatever order and however often the events were sent."""

from collections import defaultdict
from typing import NamedTuple

from tests.lab.checkers import CheckerResult
from tests.lab.history import FINAL, History, select


class SentDelivery(NamedTuple):
    """A delivery event that was sent."""

    id: str
    address: str
    kind: str
    at: float
    """Time of the delivery."""


def counts_of_the_book_are_exact(history: History) -> CheckerResult:
    """At the end an address has all its successes, and the bounces after its last success.

    Senders repeat each event until it is stored.
    """
    events_by_address: dict[str, list[SentDelivery]] = defaultdict(list)
    for event in _events(history, is_acknowledged=True).values():
        events_by_address[event.address].append(event)
    violations, checked = [], 0
    for operation in select(history, "addressBook"):
        if operation["process"] == FINAL:
            for address, *counts in operation["result"]:
                checked += len(events_by_address[address])
                if counts != (expected := _counts(events_by_address[address])):
                    violations.append(f"{address} has {counts} instead of {expected}")
    return CheckerResult(checked, violations)


def successes_never_decrease(history: History) -> CheckerResult:
    """Successes never decrease from one lookup to the next, and never exceed the successes that were sent."""
    violations, checked = [], 0
    sent: dict[str, int] = defaultdict(int)
    for event in _events(history, is_acknowledged=False).values():
        sent[event.address] += event.kind == "success"
    last_reads: dict[str, tuple[float, int]] = {}
    for operation in sorted(select(history, "addressBook"), key=lambda operation: operation["begin"]):
        for address, success, *_ in operation["result"]:
            read_at, earlier = last_reads.get(address, (0.0, 0))
            checked += 1
            if (read_at < operation["begin"] and success < earlier) or success > sent[address]:
                violations.append(f"{address} has {success} successes at {operation['begin']:.3f}, after {earlier}")
            last_reads[address] = operation["end"], success
    return CheckerResult(checked, violations)


def _events(history: History, is_acknowledged: bool) -> dict[str, SentDelivery]:
    operations = select(history, "recordDeliveries", outcome="ok" if is_acknowledged else None)
    return {
        id_: SentDelivery(id_, address, kind, at)
        for operation in operations
        for id_, address, kind, at in operation["arguments"]["events"]
    }


def _counts(events: list[SentDelivery]) -> list[int]:
    """Returns successes, soft bounces and hard bounces. Each event is a message of its own."""
    successes = [event.at for event in events if event.kind == "success"]
    last = max(successes, default=-1e12)
    later = [event.kind for event in events if event.at > last]
    return [len(successes), later.count("soft"), later.count("hard")]
