"""Runs the tests of modules against each of their mutants, in a copy of the tree. Started by tests/mutants/__main__.py.

Each run is a fork of this process, which has imported the libraries but nothing of the product. The results are
printed as lines of JSON.
"""

import contextlib
import importlib
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import traceback
from collections import defaultdict
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pymongo
import pytest

from tests.mutants.operators import Mutant, find_mutants
from tests.mutants.tracing import IMPORT, LineRecorder, SelectedTestRunner

PRODUCT = ("server", "schema", "resolvers", "jobs", "storage", "tests")
LIST_LIBRARIES = "import sys, server.web, server.worker, tests.conftest; print(*sys.modules)"
PYTEST_OPTIONS = ("-x", "-q", "--no-header", "-p", "no:cacheprovider", "--hypothesis-seed=0", "--tb=short")
IMPORTED_EARLY = ("-W", "ignore::pytest.PytestAssertRewriteWarning")
KILLED, SURVIVED, TIMEOUT, UNCOVERED = "killed", "survived", "timeout", "uncovered"
SLOWER = 5
"""A mutant may make a test this many times slower, and some seconds more, before it counts as noticed."""
MORE_S = 6.0


@dataclass(frozen=True)
class Baseline:
    """The tests of a module: the seconds that each takes, and the lines that each executes."""

    seconds: dict[str, float]
    lines: dict[str, list[int]]

    def tests_of(self, mutant: Mutant, own: str) -> dict[str, float]:
        """Returns the time limits of the tests that execute the lines: those of the file `own` first, then the others.

        Quick tests come first. A line that is executed by the import alone concerns all tests.
        """
        by_import = set(self.lines.get(IMPORT, ()))
        covering = [test for test in self.seconds if not set(mutant.lines).isdisjoint(self.lines.get(test, ()))]
        if not covering and not by_import.isdisjoint(mutant.lines):
            covering = list(self.seconds)
        covering.sort(key=lambda test: (not test.startswith(own), test.partition("::")[0], self.seconds[test]))
        return {test: SLOWER * self.seconds[test] + MORE_S for test in covering}


def import_libraries() -> None:
    """Imports every library that the product imports, so that forks need not."""
    listed = subprocess.run([sys.executable, "-c", LIST_LIBRARIES], capture_output=True, text=True, check=True)
    for name in listed.stdout.split():
        if name.partition(".")[0] not in PRODUCT:
            with contextlib.suppress(Exception):
                importlib.import_module(name)


def run_forked(work: Callable[[], int], output: Path, limit_s: float) -> int | None:
    """Runs the function in a fork. Returns its result; None if it took too long."""
    pid = os.fork()
    if pid == 0:
        _work_and_exit(work, output)
    ends_at = time.monotonic() + limit_s
    while time.monotonic() < ends_at:
        ended, status = os.waitpid(pid, os.WNOHANG)
        if ended:
            return os.waitstatus_to_exitcode(status)
        time.sleep(0.01)
    os.killpg(pid, signal.SIGKILL)
    os.waitpid(pid, 0)
    return None


def _work_and_exit(work: Callable[[], int], output: Path) -> None:
    code = 1
    try:
        os.setsid()
        with output.open("wb") as file:
            os.dup2(file.fileno(), 1)
            os.dup2(file.fileno(), 2)
        code = work()
    except BaseException:
        traceback.print_exc()
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)


def run_tests(paths: Iterable[str], plugin: object) -> int:
    """Runs pytest in this process."""
    folder = tempfile.mkdtemp()
    try:
        return int(
            pytest.main([*PYTEST_OPTIONS, *IMPORTED_EARLY, f"--basetemp={folder}/tests", *paths], plugins=[plugin])
        )
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def measure(modules: list[str], tests: list[str], scratch: Path) -> dict[str, Baseline]:
    """Runs the tests without a mutant. Returns the baseline of each module. Raises: SystemExit if a test fails."""
    files, result = {str(Path(each).resolve()): each for each in modules}, scratch / "baseline.json"

    def record() -> int:
        recorder = LineRecorder(files)
        recorder.start()
        code = run_tests(tests, recorder)
        sys.settrace(None)
        lines = {file: {test: sorted(each) for test, each in found.items()} for file, found in recorder.lines.items()}
        result.write_text(json.dumps([recorder.seconds, lines]))
        return code

    if run_forked(record, scratch / "output", 3600) != 0:
        raise SystemExit(f"These tests fail without a mutant:\n{(scratch / 'output').read_text()[-4000:]}")
    seconds, lines = json.loads(result.read_text())
    return {name: Baseline(seconds, lines[file]) for file, name in files.items()}


def judge(module: Path, mutant: Mutant, baseline: Baseline, own: str, scratch: Path) -> tuple[str, str]:
    """Runs the tests of a mutant. Returns the outcome and the test that failed."""
    limits_s = baseline.tests_of(mutant, own)
    if not limits_s:
        return UNCOVERED, ""
    source, output = module.read_text(encoding="utf-8"), scratch / "output"
    files = list(dict.fromkeys(test.partition("::")[0] for test in limits_s))
    try:
        module.write_text(mutant.apply(source), encoding="utf-8")
        limit_s = sum(limits_s.values()) + 60
        code = run_forked(lambda: run_tests(files, SelectedTestRunner(limits_s)), output, limit_s)
    finally:
        module.write_text(source, encoding="utf-8")
    if code == 0:
        return SURVIVED, ""
    run_forked(drop_databases, output.with_name("dropped"), 60)
    text = output.read_text(errors="replace")
    failed = re.search(r"^FAILED (\S+)", text, re.MULTILINE)
    return (KILLED, failed[1] if failed else "") if code and "Timeout (" not in text else (TIMEOUT, "")


def drop_databases() -> int:
    """Drops the databases of tests that did not clean up."""
    with pymongo.MongoClient[Any](os.environ["TEST_MONGODB_URI"]) as mongo:
        for name in mongo.list_database_names():
            if name.startswith("t_"):
                mongo.drop_database(name)
    return 0


def report(name: str, mutants: list[Mutant], baseline: Baseline, tests: list[str], scratch: Path) -> None:
    """Prints the outcome of each mutant of a module as a line of JSON."""
    for mutant in mutants:
        started_at = time.monotonic()
        outcome, test = judge(Path(name), mutant, baseline, tests[0], scratch)
        seconds = round(time.monotonic() - started_at, 1)
        result = {"line": mutant.lines.start, "outcome": outcome, "test": test, "seconds": seconds}
        print(json.dumps({"module": name, "mutant": mutant.key, **result}), flush=True)


def main(arguments: list[str]) -> None:
    """Judges the mutants of modules. The argument is a JSON object, see tests/mutants/__main__.py."""
    plan = json.loads(arguments[0])
    import_libraries()
    groups: defaultdict[tuple[str, ...], dict[str, list[Mutant]]] = defaultdict(dict)
    for name, tests in plan["modules"].items():
        found = [each for each in find_mutants(Path(name).read_text()) if re.search(plan["only"], each.key)]
        if mutants := [each for each in found if each.key not in plan["skipped"].get(name, ())]:
            groups[tuple(tests)][name] = mutants
    with tempfile.TemporaryDirectory() as folder:
        for tests, modules in groups.items():
            baselines = measure(list(modules), list(tests), Path(folder))
            for name, mutants in modules.items():
                report(name, mutants, baselines[name], list(tests), Path(folder))


if __name__ == "__main__":
    main(sys.argv[1:])
