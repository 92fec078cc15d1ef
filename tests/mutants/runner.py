"""Runs the tests of modules against each of their mutants, in a copy of the tree. Started by tests/mutants/__main__.py.

Each run is a fork. Most mutants change functions only: a process that has imported the product and collected the tests
replaces the code of these functions. For other mutants, such as a changed default, the fork has imported the libraries
but nothing of the product. The results are printed as lines of JSON.
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
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pymongo
import pytest

import tests.databases
from tests.mutants.functions import ImportedFunctions
from tests.mutants.kept_databases import kept_database
from tests.mutants.operators import Mutant, find_mutants
from tests.mutants.tracing import IMPORT, CollectionHandler, LineRecorder, SelectedTestRunner

PRODUCT = ("server", "schema", "resolvers", "jobs", "storage", "tests")
LIST_LIBRARIES = "import sys, server.web, server.worker, tests.conftest; print(*sys.modules)"
PYTEST_OPTIONS = ("-q", "-s", "--no-header", "-p", "no:cacheprovider", "--hypothesis-seed=0", "--tb=short")
IGNORE_EARLY_IMPORTS = ("-W", "ignore::pytest.PytestAssertRewriteWarning")
KILLED, SURVIVED, TIMEOUT, NOT_EXECUTED = "killed", "survived", "timeout", "not executed"
TIME_LIMIT_FACTOR = 5
"""A test of a mutant times out after this many times its usual duration, plus TIME_LIMIT_EXTRA_S."""
TIME_LIMIT_EXTRA_S = 6.0
RUN_LIMIT_S = 12 * 3600.0
"""Time limit of the processes that run the tests of many mutants."""


@dataclass(frozen=True)
class ModuleBaseline:
    """The tests of a module: the seconds that each takes, and the lines that each executes."""

    seconds: dict[str, float]
    lines: dict[str, list[int]]

    def tests_of(self, mutant: Mutant, kills: Counter[str]) -> dict[str, float]:
        """Returns the tests that execute the mutant's lines, each with its time limit in seconds.

        Quick tests, and tests that killed many mutants, come first. If only the import executes the lines, all tests
        are returned.
        """
        by_import = set(self.lines.get(IMPORT, ()))
        covering = [test for test in self.seconds if not set(mutant.lines).isdisjoint(self.lines.get(test, ()))]
        if not covering and not by_import.isdisjoint(mutant.lines):
            covering = list(self.seconds)
        covering.sort(key=lambda test: self.seconds[test] / (1 + kills[test]))
        return {test: TIME_LIMIT_FACTOR * self.seconds[test] + TIME_LIMIT_EXTRA_S for test in covering}


def import_libraries() -> None:
    """Imports every library that the product imports, so that forks need not."""
    listed = subprocess.run([sys.executable, "-c", LIST_LIBRARIES], capture_output=True, text=True, check=True)
    for name in listed.stdout.split():
        if name.partition(".")[0] not in PRODUCT:
            with contextlib.suppress(Exception):
                importlib.import_module(name)


def run_forked(work: Callable[[], int], output: Path, limit_s: float) -> int | None:
    """Runs the function in a fork. Returns its result, or None after `limit_s`."""
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
            pytest.main(
                [*PYTEST_OPTIONS, *IGNORE_EARLY_IMPORTS, f"--basetemp={folder}/tests", *paths], plugins=[plugin]
            )
        )
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def measure(modules: list[str], tests: list[str], scratch: Path) -> dict[str, ModuleBaseline]:
    """Runs the tests without a mutant. Returns the baseline of each module. Leaves out and reports tests that fail.

    Raises: SystemExit if the tests cannot run.
    """
    files, result = {str(Path(each).resolve()): each for each in modules}, scratch / "baseline.json"

    def record() -> int:
        recorder = LineRecorder(files)
        recorder.start()
        code = run_tests(tests, recorder)
        sys.settrace(None)
        lines = {file: {test: sorted(each) for test, each in found.items()} for file, found in recorder.lines.items()}
        result.write_text(json.dumps([recorder.seconds, lines, recorder.failures]))
        return code

    if run_forked(record, scratch / "output", RUN_LIMIT_S) not in (pytest.ExitCode.OK, pytest.ExitCode.TESTS_FAILED):
        raise SystemExit(f"The tests cannot run:\n{(scratch / 'output').read_text()[-4000:]}")
    seconds, lines, failures = json.loads(result.read_text())
    for test, text in failures.items():
        print(f"Left out, because it fails without a mutant: {test}\n{text[-400:]}", file=sys.stderr)
    passed = {test: each for test, each in seconds.items() if test not in failures}
    return {name: ModuleBaseline(passed, lines[file]) for file, name in files.items()}


@dataclass(frozen=True)
class MutantTester:
    """Runs the tests against the mutants of a module, and writes the outcomes to `results_fd` as lines of JSON."""

    module: Path
    baseline: ModuleBaseline
    tests: list[str]
    scratch: Path
    results_fd: int
    kills: Counter[str] = field(default_factory=Counter)

    def test_mutants(self, mutants: list[Mutant]) -> None:
        """Tests the mutants of functions first, and then the mutants that need a new import of the module."""
        by_import = set(self.baseline.lines.get(IMPORT, ()))
        of_functions = [each for each in mutants if by_import.isdisjoint(each.lines)]
        tested = self.scratch / "tested"
        tested.touch()

        def work() -> int:
            return run_tests(
                self.tests, CollectionHandler(lambda session: self._test_function_mutants(session, of_functions))
            )

        if of_functions and run_forked(work, self.scratch / "collected", RUN_LIMIT_S) != 0:
            raise SystemExit(f"The collection failed:\n{(self.scratch / 'collected').read_text()[-4000:]}")
        keys = set(tested.read_text().splitlines())
        tested.unlink()
        for mutant in mutants:
            if mutant.key not in keys:
                self._test_mutant(mutant, lambda limits: run_tests(files_of(limits), SelectedTestRunner(limits)))

    def _test_function_mutants(self, session: pytest.Session, mutants: list[Mutant]) -> None:
        """Tests the mutants whose functions can be replaced in forks of this process. Records their keys."""
        source = self.module.read_text(encoding="utf-8")
        functions = ImportedFunctions(self.module.resolve(), source)
        for mutant in mutants:
            if change := functions.change_to(mutant.apply(source)):
                self._test_mutant(mutant, lambda limits, change=change: run_with_change(session, limits, change))  # type: ignore[misc]
                with (self.scratch / "tested").open("a") as tested:
                    tested.write(mutant.key + "\n")

    def _test_mutant(self, mutant: Mutant, run: Callable[[dict[str, float]], int]) -> None:
        started_at = time.monotonic()
        outcome, test = self._outcome(mutant, run)
        seconds = round(time.monotonic() - started_at, 1)
        result = {"line": mutant.lines.start, "outcome": outcome, "test": test, "seconds": seconds}
        line = json.dumps({"module": str(self.module), "mutant": mutant.key, **result})
        os.write(self.results_fd, f"{line}\n".encode())

    def _outcome(self, mutant: Mutant, run: Callable[[dict[str, float]], int]) -> tuple[str, str]:
        """Runs the tests of a mutant. Returns the outcome and the test that failed."""
        limits_s = self.baseline.tests_of(mutant, self.kills)
        if not limits_s:
            return NOT_EXECUTED, ""
        # Tests that start processes need the changed file.
        source, output = self.module.read_text(encoding="utf-8"), self.scratch / "output"
        try:
            self.module.write_text(mutant.apply(source), encoding="utf-8")
            code = run_forked(lambda: run(limits_s), output, sum(limits_s.values()) + 60)
        finally:
            self.module.write_text(source, encoding="utf-8")
        if code == 0:
            return SURVIVED, ""
        run_forked(end_transactions, output.with_name("ended"), 60)
        text = output.read_text(errors="replace")
        failed = re.search(r"^FAILED (\S+)", text, re.MULTILINE)
        self.kills[failed[1] if failed else ""] += 1
        return (KILLED, failed[1] if failed else "") if code and "Timeout (" not in text else (TIMEOUT, "")


def files_of(tests: Iterable[str]) -> list[str]:
    """Returns the files of the tests."""
    return list(dict.fromkeys(test.partition("::")[0] for test in tests))


def run_with_change(session: pytest.Session, limits_s: dict[str, float], change: Callable[[], None]) -> int:
    """Changes functions of this process, and runs those collected tests whose node ids are in `limits_s`."""
    change()
    session.config.pluginmanager.register(SelectedTestRunner(limits_s))
    by_id = {item.nodeid: item for item in session.items}
    items = [by_id[each] for each in limits_s if each in by_id]
    for item, following in zip(items, [*items[1:], None], strict=True):
        item.config.hook.pytest_runtest_protocol(item=item, nextitem=following)
    return 0


def end_transactions() -> int:
    """Ends the transactions of tests that ended early."""
    with pymongo.MongoClient[Any](os.environ["TEST_MONGODB_URI"]) as mongo:
        mongo.admin.command("killAllSessions", [])
    return 0


def main(arguments: list[str]) -> None:
    """Tests the mutants of modules. The argument is a JSON object, see tests/mutants/__main__.py."""
    plan, results_fd = json.loads(arguments[0]), os.dup(1)
    import_libraries()
    tests.databases.fresh_database = kept_database
    groups: defaultdict[tuple[str, ...], dict[str, list[Mutant]]] = defaultdict(dict)
    for name, test_files in plan["modules"].items():
        found = [each for each in find_mutants(Path(name).read_text()) if re.search(plan["only"], each.key)]
        if mutants := [each for each in found if each.key not in plan["skipped"].get(name, ())]:
            groups[tuple(test_files)][name] = mutants
    with tempfile.TemporaryDirectory() as folder:
        for test_files, modules in groups.items():
            baselines = measure(list(modules), list(test_files), Path(folder))
            for name, mutants in modules.items():
                MutantTester(Path(name), baselines[name], list(test_files), Path(folder), results_fd).test_mutants(
                    mutants
                )


if __name__ == "__main__":
    main(sys.argv[1:])
