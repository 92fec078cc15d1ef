"""The address book: every delivery event is counted once, whatever its order and however often it was sent."""

from collections import defaultdict

from tests.lab.checkers import Verdict
from tests.lab.history import FINAL, Histories, select

Event = tuple[str, str, str, float]
"""Id, address, kind, and the time of the delivery."""


def counts_of_the_book_are_exact(history: Histories) -> Verdict:
    """At the end an address has all its successes, and the bounces after the last of them.

    Senders repeat each event until it is stored.
    """
    events: dict[str, list[Event]] = defaultdict(list)
    for event in _events(history, outcome_ok=True).values():
        events[event[1]].append(event)
    violations, judged = [], 0
    for row in select(history, "addressBook"):
        if row["process"] == FINAL:
            for address, *shown in row["result"]:
                judged += len(events[address])
                if shown != (wanted := _counts(events[address])):
                    violations.append(f"{address} has {shown} instead of {wanted}")
    return Verdict(judged, violations)


def successes_never_decrease(history: Histories) -> Verdict:
    """Successes never decrease from one lookup to the next, and never exceed the successes that were sent."""
    violations, judged = [], 0
    sent: dict[str, int] = defaultdict(int)
    for event in _events(history, outcome_ok=False).values():
        sent[event[1]] += event[2] == "success"
    before: dict[str, tuple[float, int]] = {}
    for row in sorted(select(history, "addressBook"), key=lambda row: row["begin"]):
        for address, success, *_ in row["result"]:
            read_at, earlier = before.get(address, (0.0, 0))
            judged += 1
            if (read_at < row["begin"] and success < earlier) or success > sent[address]:
                violations.append(f"{address} has {success} successes at {row['begin']:.3f}, after {earlier}")
            before[address] = row["end"], success
    return Verdict(judged, violations)


def _events(history: Histories, outcome_ok: bool) -> dict[str, Event]:
    rows = select(history, "recordDeliveries", outcome="ok" if outcome_ok else None)
    return {id_: (id_, address, kind, at) for row in rows for id_, address, kind, at in row["arguments"]["events"]}


def _counts(events: list[Event]) -> list[int]:
    """Returns successes, soft bounces and hard bounces. Each event is a message of its own."""
    successes = [at for _, _, kind, at in events if kind == "success"]
    last = max(successes, default=-1e12)
    later = [kind for _, _, kind, at in events if at > last]
    return [len(successes), later.count("soft"), later.count("hard")]
