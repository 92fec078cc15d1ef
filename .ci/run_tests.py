"""Runs pytest with the given options. If tests fail, runs exactly those once more, one at a time.

The result is green if each failed test passes when it runs alone; the last lines then name these tests. It is red if a
test fails again, or if pytest ended for another reason than failed tests; the last lines then name each with its error.
"""

import subprocess
import sys
from pathlib import Path

FAILED_TESTS = Path(".pytest_cache/v/cache/lastfailed")
"""Where pytest keeps the names of the tests that failed. `--last-failed` reads it."""

TESTS_FAILED = 1
"""pytest's exit code for a run that was complete and in which tests failed."""

ALONE = ("--last-failed", "--last-failed-no-failures", "none", "--maxfail", "30", "-n", "0")
"""Options of the second run. It gives up after 30 failures: the whole run is red then, whatever else passes."""

MAX_LINE_LENGTH = 400


def main(options: list[str]) -> int:
    """Runs the tests, and once more those that failed. Returns 0 if each test has passed, or pytest's exit code."""
    FAILED_TESTS.unlink(missing_ok=True)
    status, failures = run_pytest(options)
    if status == TESTS_FAILED and FAILED_TESTS.exists():
        print(f"\n{len(failures)} failed. They run once more, one at a time.\n", flush=True)
        failed_first = failures
        status, failures = run_pytest([*options, *ALONE])
        if status == 0:
            report_load_dependent(failed_first)
    if status != 0:
        print(f"\nRED: pytest ended with exit code {status}.", *failures, sep="\n", flush=True)
    return status


def run_pytest(options: list[str]) -> tuple[int, list[str]]:
    """Runs pytest, passes its output on, and returns its exit code and the lines that name a failure."""
    command = [sys.executable, "-m", "pytest", *options]
    failures: list[str] = []
    is_summary = False
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, errors="replace") as process:
        assert process.stdout is not None
        for line in process.stdout:
            print(line, end="", flush=True)
            is_summary = is_summary or "short test summary info" in line
            if is_summary and line.startswith(("FAILED ", "ERROR ")):
                failures.append(line.rstrip()[:MAX_LINE_LENGTH])
    return process.returncode, failures


def report_load_dependent(failures: list[str]) -> None:
    """Prints the names of the tests in the lines of failures."""
    names = [line.split(" ", 1)[1].split(" - ", 1)[0] for line in failures]
    print(
        "\nGREEN, but these tests depend on the load of the machine; each passed alone:", *names, sep="\n", flush=True
    )


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
