"""Calls: within the limits and windows, to no number twice, and reported as they happened."""

from collections import Counter
from typing import Any

from tests.lab.checkers import CheckerResult
from tests.lab.history import History, select

RecordedCall = tuple[str, float, float | None]
"""Number, begin, and end if the call has ended."""


def calls_stay_within_limits(history: History) -> CheckerResult:
    """The active calls never exceed their limit, and neither do the starts in any rolling second."""
    violations, calls = [], _calls(history)
    for limits in select(history, "setCallLimits"):
        concurrent, per_second = limits["arguments"]["concurrentCalls"], limits["arguments"]["callsPerSecond"]
        for number, begin, _ in calls:
            active = sum(1 for _, other_begin, end in calls if other_begin <= begin and (end is None or end > begin))
            if active > concurrent:
                violations.append(f"{active} calls were active when {number} was called")
        starts = sorted(begin for _, begin, _ in calls)
        for first, last in zip(starts, starts[per_second:], strict=False):
            if last - first < 1.0:
                violations.append(f"{per_second + 1} calls started in {last - first:.3f} s")
    return CheckerResult(len(calls), violations)


def numbers_are_called_once(history: History) -> CheckerResult:
    """No number is called twice. Numbers that are blocked, of a refused job, or of a closed window are not called."""
    allowed: set[str] = set()
    forbidden: set[str] = set()
    for operation in select(history, "launch", outcome=None):
        numbers, blocked = set(operation["arguments"]["numbers"]), set(operation["arguments"]["blocked"])
        forbidden |= blocked if operation["arguments"]["open"] else numbers
        allowed |= numbers if operation["outcome"] != "fail" else set()
    counts = Counter(number for number, *_ in _calls(history))
    violations = [f"{number} was called {count} times" for number, count in counts.items() if count > 1]
    violations += [f"{number} was called and must not be" for number in counts if number in forbidden]
    violations += [f"{number} was called for no job" for number in counts if number not in allowed]
    return CheckerResult(len(counts), violations)


def states_of_calls_are_true(history: History) -> CheckerResult:
    """In the end each job is completed, its tasks agree with the calls of the twin, and no call is active."""
    called, violations, checked = {number for number, *_ in _calls(history)}, [], 0
    jobs: dict[str, Any] = {
        operation["arguments"]["job"]: operation["result"] for operation in select(history, "callJob")
    }
    blocked = {
        number for operation in select(history, "launch", outcome=None) for number in operation["arguments"]["blocked"]
    }
    for name, job in jobs.items():
        if job["state"] != "COMPLETED":
            violations.append(f"{name} is still {job['state']}: {job['tasks']}")
            continue
        for number, state, outcome, attempts in job["tasks"]:
            expected = ("SKIPPED", False) if number in blocked else ("COMPLETED", True)
            checked += 1
            if (state, number in called) != expected or attempts != int(number in called):
                violations.append(f"{number} is {state} ({outcome}, {attempts} attempts)")
    launched = {
        operation["arguments"]["job"] for operation in select(history, "launch") if operation["arguments"]["open"]
    }
    for operation in select(history, "activeCalls"):
        violations += [f"{name} was acknowledged and is lost" for name in sorted(launched - jobs.keys())]
        if operation["result"] and all(job["state"] == "COMPLETED" for job in jobs.values()):
            violations.append(f"{operation['result']} calls are active after the end of all jobs")
    return CheckerResult(checked, violations)


def _calls(history: History) -> list[RecordedCall]:
    return [
        (number, begin, end) for operation in select(history, "calls") for number, begin, end in operation["result"]
    ]
