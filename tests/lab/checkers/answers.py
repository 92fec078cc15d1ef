"""Answers: whatever fails, a client gets an error that it can act on."""

from tests.lab.checkers import Verdict
from tests.lab.history import Histories

EXPECTED = {"UNAVAILABLE", "RATE_LIMITED", "NOT_CONNECTED", "NO_ANSWER"}
"""Codes that faults may cause. Workloads send no wrong request, so any other code is a fault of the product."""

ALSO_EXPECTED = {("cancel", "CONFLICT")}


def errors_are_expected(history: Histories) -> Verdict:
    """No operation is answered with an error that faults don't explain, such as INTERNAL_SERVER_ERROR."""
    failed = [row for row in history if row["outcome"] != "ok" and isinstance(row["result"], dict)]
    violations = [
        f"{row['process']}'s {row['operation']} at {row['begin']:.3f}: {row['result']}"
        for row in failed
        if row["result"].get("code", "UNAVAILABLE") not in EXPECTED
        and (row["operation"], row["result"]["code"]) not in ALSO_EXPECTED
    ]
    return Verdict(len(failed), violations)
