"""Errors: clients get only errors that they can act on."""

from tests.lab.checkers import CheckerResult
from tests.lab.history import History

EXPECTED_CODES = {"UNAVAILABLE", "RATE_LIMITED", "NOT_CONNECTED", "NO_ANSWER"}
"""Codes that faults may cause. Workloads send no wrong request, so any other code is a defect of the product."""

EXPECTED_CODES_OF_OPERATIONS = {
    ("cancel", "CONFLICT"),
    ("intrude", "NOT_FOUND"),
    ("ask", "FORBIDDEN"),
    ("defy", "FORBIDDEN"),
}
"""Further codes: a post may be published when it is cancelled, and strangers and blocked people are refused."""


def errors_are_expected(history: History) -> CheckerResult:
    """Every error has a code that faults may cause. INTERNAL_SERVER_ERROR, for example, is a violation."""
    failed = [
        operation for operation in history if operation["outcome"] != "ok" and isinstance(operation["result"], dict)
    ]
    violations = [
        f"{operation['process']}'s {operation['operation']} at {operation['begin']:.3f}: {operation['result']}"
        for operation in failed
        if operation["result"].get("code", "UNAVAILABLE") not in EXPECTED_CODES
        and (operation["operation"], operation["result"]["code"]) not in EXPECTED_CODES_OF_OPERATIONS
    ]
    return CheckerResult(len(failed), violations)
