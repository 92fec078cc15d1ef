"""Calls: within the limits and windows, to no number twice, and reported as they happened."""

from collections import Counter
from typing import Any

from tests.lab.checkers import Verdict
from tests.lab.history import Histories, select

Call = tuple[str, float, float | None]
"""Number, begin, and end if the call has ended."""


def calls_stay_within_limits(history: Histories) -> Verdict:
    """At no moment more calls are active than allowed, and in no rolling second more calls start than allowed."""
    violations, calls = [], _calls(history)
    for limits in select(history, "setCallLimits"):
        concurrent, per_second = limits["arguments"]["concurrentCalls"], limits["arguments"]["callsPerSecond"]
        for number, begin, _ in calls:
            active = sum(1 for _, other, end in calls if other <= begin and (end is None or end > begin))
            if active > concurrent:
                violations.append(f"{active} calls were active when {number} was called")
        starts = sorted(begin for _, begin, _ in calls)
        for first, last in zip(starts, starts[per_second:], strict=False):
            if last - first < 1.0:
                violations.append(f"{per_second + 1} calls started in {last - first:.3f} s")
    return Verdict(len(calls), violations)


def numbers_are_called_once(history: Histories) -> Verdict:
    """No number is called twice, and none that no job may call: it is blocked, its window closed, its job refused."""
    allowed: set[str] = set()
    forbidden: set[str] = set()
    for row in select(history, "launch", outcome=None):
        numbers, blocked = set(row["arguments"]["numbers"]), set(row["arguments"]["blocked"])
        forbidden |= blocked if row["arguments"]["open"] else numbers
        allowed |= numbers if row["outcome"] != "fail" else set()
    counts = Counter(number for number, *_ in _calls(history))
    violations = [f"{number} was called {count} times" for number, count in counts.items() if count > 1]
    violations += [f"{number} was called and must not be" for number in counts if number in forbidden]
    violations += [f"{number} was called for no job" for number in counts if number not in allowed]
    return Verdict(len(counts), violations)


def states_of_calls_are_true(history: Histories) -> Verdict:
    """In the end each job is completed, its tasks agree with the calls that were made, and no call is active."""
    called, violations, judged = {number for number, *_ in _calls(history)}, [], 0
    jobs: dict[str, Any] = {row["arguments"]["job"]: row["result"] for row in select(history, "callJob")}
    blocked = {number for row in select(history, "launch", outcome=None) for number in row["arguments"]["blocked"]}
    for name, job in jobs.items():
        if job["state"] != "COMPLETED":
            violations.append(f"{name} is still {job['state']}: {job['tasks']}")
            continue
        for number, state, outcome, attempts in job["tasks"]:
            expected = ("SKIPPED", False) if number in blocked else ("COMPLETED", True)
            judged += 1
            if (state, number in called) != expected or attempts != int(number in called):
                violations.append(f"{number} is {state} ({outcome}, {attempts} attempts)")
    launched = {row["arguments"]["job"] for row in select(history, "launch") if row["arguments"]["open"]}
    for row in select(history, "activeCalls"):
        violations += [f"{name} was acknowledged and is lost" for name in sorted(launched - jobs.keys())]
        if row["result"] and all(job["state"] == "COMPLETED" for job in jobs.values()):
            violations.append(f"{row['result']} calls are active after the end of all jobs")
    return Verdict(judged, violations)


def _calls(history: Histories) -> list[Call]:
    return [(number, begin, end) for row in select(history, "calls") for number, begin, end in row["result"]]
