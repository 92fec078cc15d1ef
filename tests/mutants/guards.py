"""Removes guards of docs/security.md one by one, and shows which test fails: `make guards` (docs/mutants.md).

Draws guards of guards.toml by a seed. Works on a copy of the tree, with a MongoDB and a Valkey of its own.
"""

import argparse
import random
import re
import subprocess
import sys
import tomllib
from dataclasses import dataclass
from pathlib import Path

from tests.mutants.__main__ import FOLDER, prepared_copy

PYTEST_OPTIONS = ("-q", "--no-header", "--tb=line", "-p", "no:cacheprovider")
TESTS_FAILED = 1
TIME_LIMIT_S = 300.0


@dataclass(frozen=True)
class Guard:
    """A guard: `without` replaces its `code` in a module when it is removed, and `test` must fail then."""

    name: str
    requirement: str
    module: str
    code: str
    without: str
    test: str

    def removed_from(self, source: str) -> str:
        """Returns the source of the module without the guard. Raises: ValueError unless the code occurs once."""
        if source.count(self.code) != 1:
            raise ValueError(f"{self.module} must have {self.code!r} once; update tests/mutants/guards.toml")
        return source.replace(self.code, self.without)


def all_guards() -> list[Guard]:
    """Returns the guards of guards.toml."""
    document = tomllib.loads((FOLDER / "guards.toml").read_text(encoding="utf-8"))
    return [Guard(**each) for each in document["guard"]]


def run_tests(copy: Path, environment: dict[str, str], *tests: str) -> tuple[int, str]:
    """Returns the exit code of pytest, and its output."""
    command = [sys.executable, "-m", "pytest", *PYTEST_OPTIONS, *tests]
    run = subprocess.run(command, cwd=copy, env=environment, capture_output=True, text=True, timeout=TIME_LIMIT_S)
    return run.returncode, run.stdout + run.stderr


def outcome(guard: Guard, copy: Path, environment: dict[str, str]) -> str | None:
    """Returns how the guard's test fails without the guard, or None if it passes."""
    module = copy / guard.module
    source = module.read_text(encoding="utf-8")
    module.write_text(guard.removed_from(source), encoding="utf-8")
    try:
        code, output = run_tests(copy, environment, guard.test)
    finally:
        module.write_text(source, encoding="utf-8")
    if code not in (0, TESTS_FAILED):
        raise SystemExit(f"The tests of {guard.name!r} did not run:\n{output[-4000:]}")
    return None if code == 0 else _first_failure(output)


def _first_failure(output: str) -> str:
    """Returns the error that pytest names in its first line about a failed test."""
    found = re.search(r"^\S+:\d+: (.+)$", output, re.MULTILINE)
    return found[1][:90].replace("|", "\\|") if found else "failed"


def main() -> None:
    """Prints a Markdown table. Exits with 1 if a test passes without its guard."""
    parser = argparse.ArgumentParser(prog="make guards", description=__doc__)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--count", type=int, default=10)
    arguments = parser.parse_args()
    guards = all_guards()
    drawn = random.Random(arguments.seed).sample(guards, min(arguments.count, len(guards)))
    with prepared_copy() as (copy, environment):
        code, output = run_tests(copy, environment, *sorted({each.test for each in drawn}))
        if code or "skipped" in output:
            raise SystemExit(f"With all guards, the tests must pass:\n{output[-4000:]}")
        print(f"| seed {arguments.seed}: removed guard | ASVS | test | how it fails |\n| --- | --- | --- | --- |")
        failures = []
        for guard in drawn:
            failures.append(outcome(guard, copy, environment))
            row = (guard.name, guard.requirement, f"`{guard.test}`", failures[-1] or "**passes**")
            print(f"| {' | '.join(row)} |", flush=True)
    sys.exit(None in failures)


if __name__ == "__main__":
    main()
