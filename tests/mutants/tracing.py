"""Pytest plugins: one records which lines of some files each test executes, the other runs selected tests."""

import faulthandler
import os
import sys
import threading
import time
from collections import defaultdict
from collections.abc import Callable, Generator, Iterable
from types import FrameType
from typing import Any

import pytest

IMPORT = "import"
"""Takes the place of a test's node id for lines that run outside of tests, such as while a module is imported."""


class LineRecorder:
    """Records the executed lines of files, by file and test. A test is named by its node id."""

    def __init__(self, files: Iterable[str]) -> None:
        self._test = IMPORT
        self.lines: dict[str, defaultdict[str, set[int]]] = {file: defaultdict(set) for file in files}
        self.seconds: dict[str, float] = {}
        self.failures: dict[str, str] = {}

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Generator[None, Any, Any]:
        """Attributes the lines to the test, its setup and its teardown."""
        # A RecursionError in the recorder ends the recording. The next test begins it again.
        self.start()
        self._test, started_at = item.nodeid, time.monotonic()
        try:
            return (yield)
        finally:
            self.seconds[item.nodeid] = time.monotonic() - started_at
            self._test = IMPORT

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Records a failure. A test that fails on the unchanged source is not used for mutants."""
        if report.failed:
            self.failures[report.nodeid] = report.longreprtext

    def start(self) -> None:
        """Begins to record."""
        threading.settrace(self._enter)
        sys.settrace(self._enter)

    def _enter(self, frame: FrameType, event: str, _: object) -> Any:
        if frame.f_code.co_filename not in self.lines:
            return None
        return self._step(frame, event, _)

    def _step(self, frame: FrameType, event: str, _: object) -> Any:
        self.lines[frame.f_code.co_filename][self._test].add(frame.f_lineno)
        return self._step


class CollectionHandler:
    """Calls a function with the collected tests instead of running them."""

    def __init__(self, work: Callable[[pytest.Session], None]) -> None:
        self._work = work

    def pytest_runtestloop(self, session: pytest.Session) -> bool:
        self._work(session)
        return True


class SelectedTestRunner:
    """Runs only the tests with these node ids, in this order, and ends the process when one fails or takes too long.

    The process ends at once, since the clean-up after a failure may wait for what the mutant broke.
    """

    def __init__(self, limits_s: dict[str, float]) -> None:
        self._limits_s = limits_s

    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        """Selects and orders the tests."""
        by_id = {item.nodeid: item for item in items}
        items[:] = [by_id[each] for each in self._limits_s if each in by_id]

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Generator[None, Any, Any]:
        """Limits the time of the test, its setup and its teardown. After that time the process exits with code 1."""
        faulthandler.dump_traceback_later(self._limits_s[item.nodeid], exit=True)
        try:
            return (yield)
        finally:
            faulthandler.cancel_dump_traceback_later()

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Exits with code 1 when the test has failed."""
        if report.failed:
            print(f"\nFAILED {report.nodeid}\n{report.longreprtext}", flush=True)
            os._exit(1)
