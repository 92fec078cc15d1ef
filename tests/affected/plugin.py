"""A pytest plugin that adds to the selection of pytest-testmon: files that run in any case, and a limit of time.

Options are handed on to the workers of xdist, which import this plugin too.
"""

from collections import defaultdict
from collections.abc import Generator, Iterable
from pathlib import PurePosixPath
from typing import Any

import pytest
from testmon import testmon_core

TESTS_OF_A_WRITE = 25
"""The number of tests whose lines a worker keeps until they are recorded. An interruption loses them."""

UNRECORDED_S = 0.5
"""How long a test counts that has never run with the record, such as a new one."""

LEFT_OUT = pytest.StashKey[dict[str, int]]()
"""The number of tests that were left out of each file."""


def pytest_addoption(parser: pytest.Parser) -> None:
    group = parser.getgroup("affected", "tests that changes can affect")
    group.addoption("--also", action="append", default=[], help="run this file whatever the record says")
    group.addoption("--near", action="append", default=[], help="prefer tests that are near this file")
    group.addoption("--limit-s", type=float, help="leave out files that would take longer in total, in seconds")


@pytest.hookimpl(trylast=True)
def pytest_configure(config: pytest.Config) -> None:
    """Selects the files of `--also`, and keeps the record of tests that the limit leaves out."""
    selection: Any = config.pluginmanager.get_plugin("TestmonSelect")
    if selection is None:
        return
    testmon_core.TEST_BATCH_SIZE = TESTS_OF_A_WRITE
    also = set(config.getoption("also"))
    selection.deselected_files = {file for file in selection.deselected_files if file not in also}
    selection.deselected_tests = {test for test in selection.deselected_tests if file_of(test) not in also}
    if config.getoption("limit_s") is not None:
        # testmon forgets tests that are not collected. It would then take their files for unaffected.
        selection.testmon_data.stable_test_names |= selection.testmon_data.unstable_test_names


@pytest.hookimpl(wrapper=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> Generator[None]:
    """Leaves out whole files after testmon's selection, until the rest takes at most `--limit-s`.

    The files of `--also` come first, then those that are nearest to the files of `--near`.
    """
    yield
    selection: Any = config.pluginmanager.get_plugin("TestmonSelect")
    limit_s: float | None = config.getoption("limit_s")
    if selection is None or limit_s is None:
        return
    recorded = selection.testmon_data.all_tests
    seconds: defaultdict[str, float] = defaultdict(float)
    for item in items:
        seconds[file_of(item.nodeid)] += (recorded.get(item.nodeid) or {}).get("duration") or UNRECORDED_S
    chosen = choose(seconds, config.getoption("also"), config.getoption("near"), limit_s)
    left_out = [item for item in items if file_of(item.nodeid) not in chosen]
    items[:] = [item for item in items if file_of(item.nodeid) in chosen]
    counts: defaultdict[str, int] = defaultdict(int)
    for item in left_out:
        counts[file_of(item.nodeid)] += 1
    config.stash[LEFT_OUT] = dict(counts)
    if hasattr(config, "workeroutput"):
        config.workeroutput["left_out"] = dict(counts)


def choose(seconds: dict[str, float], also: list[str], near: list[str], limit_s: float) -> set[str]:
    """Returns the files of tests that take at most `limit_s` in total. At least one file is returned, if there is one.

    `seconds` are those of each file.
    """
    order = {file: place for place, file in enumerate(also)}

    def rank(file: str) -> tuple[int, int, float]:
        return order.get(file, len(order)), -nearness(file, near), seconds[file]

    chosen: set[str] = set()
    for file in sorted(seconds, key=rank):
        if seconds[file] <= limit_s or not chosen:
            chosen.add(file)
            limit_s -= seconds[file]
    return chosen


def nearness(test_file: str, changed: Iterable[str]) -> int:
    """Returns the number of folders that a test file shares with the nearest of the changed files."""
    folders = set(PurePosixPath(test_file.removeprefix("tests/")).parents)
    shared = [folders.intersection(PurePosixPath(file.removeprefix("tests/")).parents) for file in changed]
    return max(map(len, shared), default=1) - 1


def file_of(test: str) -> str:
    """Returns the file in a test's node id."""
    return test.partition("::")[0]


@pytest.hookimpl(optionalhook=True)
def pytest_testnodedown(node: Any) -> None:
    """Takes over what a worker left out. Every worker leaves out the same tests."""
    if left_out := getattr(node, "workeroutput", {}).get("left_out"):
        node.config.stash[LEFT_OUT] = left_out


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    """Reports the tests that the limit left out."""
    if left_out := config.stash.get(LEFT_OUT, {}):
        terminalreporter.section("affected tests that were left out")
        terminalreporter.line(
            f"{sum(left_out.values())} tests in {len(left_out)} files would take longer than a minute. "
            "The next `make quick` goes on with them. `make record` runs them all."
        )
