"""The address book: every delivery event is counted once, in whatever order and however often the events were sent."""

from collections import defaultdict

from tests.lab.checkers import CheckResult
from tests.lab.history import FINAL, History, select

Event = tuple[str, str, str, float]
"""Id, address, kind, and the time of the delivery."""


def counts_of_the_book_are_exact(history: History) -> CheckResult:
    """At the end an address has all its successes, and the bounces after its last success.

    Senders repeat each event until it is stored.
    """
    events: dict[str, list[Event]] = defaultdict(list)
    for event in _events(history, is_acknowledged=True).values():
        events[event[1]].append(event)
    violations, checked = [], 0
    for operation in select(history, "addressBook"):
        if operation["process"] == FINAL:
            for address, *shown in operation["result"]:
                checked += len(events[address])
                if shown != (expected := _counts(events[address])):
                    violations.append(f"{address} has {shown} instead of {expected}")
    return CheckResult(checked, violations)


def successes_never_decrease(history: History) -> CheckResult:
    """Successes never decrease from one lookup to the next, and never exceed the successes that were sent."""
    violations, checked = [], 0
    sent: dict[str, int] = defaultdict(int)
    for event in _events(history, is_acknowledged=False).values():
        sent[event[1]] += event[2] == "success"
    last_reads: dict[str, tuple[float, int]] = {}
    for operation in sorted(select(history, "addressBook"), key=lambda operation: operation["begin"]):
        for address, success, *_ in operation["result"]:
            read_at, earlier = last_reads.get(address, (0.0, 0))
            checked += 1
            if (read_at < operation["begin"] and success < earlier) or success > sent[address]:
                violations.append(f"{address} has {success} successes at {operation['begin']:.3f}, after {earlier}")
            last_reads[address] = operation["end"], success
    return CheckResult(checked, violations)


def _events(history: History, is_acknowledged: bool) -> dict[str, Event]:
    operations = select(history, "recordDeliveries", outcome="ok" if is_acknowledged else None)
    return {
        id_: (id_, address, kind, at)
        for operation in operations
        for id_, address, kind, at in operation["arguments"]["events"]
    }


def _counts(events: list[Event]) -> list[int]:
    """Returns successes, soft bounces and hard bounces. Each event is a message of its own."""
    successes = [at for _, _, kind, at in events if kind == "success"]
    last = max(successes, default=-1e12)
    later = [kind for _, _, kind, at in events if at > last]
    return [len(successes), later.count("soft"), later.count("hard")]
