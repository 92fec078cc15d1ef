"""The tables of an outage: windows, recovery, errors and memory."""

import math

from tests.lab.history import History
from tests.lab.operations import operation
from tests.lab.recovery import RunPhases, errors_table, memory_table, percentiles, recovery_s, samples

PHASES = RunPhases(
    begin=0, outage_begin=10, outage_end=20, served=22, end=60, memory=[("web1", 5, 100.0), ("web1", 15, 120.0)]
)
REFUSED = {"code": "UNAVAILABLE", "message": "The database is busy."}


def posts(begin: int, end: int, is_ok: bool = True) -> History:
    """Returns a post in each second: each takes half a second, and succeeds or is refused."""
    if is_ok:
        return [operation("post", second) for second in range(begin, end)]
    return [operation("post", second, REFUSED, outcome="unknown") for second in range(begin, end)]


OUTAGE: History = [*posts(0, 10), *posts(10, 30, is_ok=False), *posts(30, 60)]


def test_recovery_time_ends_at_first_window_as_fast_as_before() -> None:
    assert recovery_s(samples(OUTAGE)["writes"], PHASES) == 8


def test_writes_that_fail_until_the_end_have_no_recovery_time() -> None:
    assert recovery_s(samples([*posts(0, 10), *posts(10, 60, is_ok=False)])["writes"], PHASES) is None


def test_failed_operation_counts_as_infinitely_slow() -> None:
    assert percentiles(samples(OUTAGE)["writes"], 12, 20) == (math.inf, math.inf)


def test_only_events_after_the_subscriber_was_ready_count() -> None:
    events = [[1, "MessagePosted", 3_000_000, "missed", 9.0], [2, "MessagePosted", 8_000_000, "live", 8.5]]
    history = [operation("subscription", 4, {"ready": 5.0, "events": events})]
    assert samples(history)["events"] == [(8.0, 0.5)]


def test_errors_during_the_outage_are_counted_by_code() -> None:
    lines = errors_table(OUTAGE, PHASES)
    assert [line.split()[:2] for line in lines[1:]] == [["UNAVAILABLE", "12"]]
    assert "The database is busy." in lines[1]


def test_memory_table_has_greatest_memory_of_each_phase() -> None:
    assert memory_table(PHASES)[1].split() == ["web1", "100", "120", "0"]
