"""A pytest plugin that keeps what every test executes out of the record of pytest-testmon.

Otherwise nearly every test would depend on the constructor of each store, and thereby on each of their modules.
A change of this file affects every test, because every test executes it.
"""

from collections.abc import Generator, Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from coverage import Coverage

FIXTURES_OF_ALL = "tests"
"""The folder of the conftest.py whose fixtures start the servers and open the stores of nearly every test."""


@pytest.hookimpl(wrapper=True)
def pytest_fixture_setup(fixturedef: pytest.FixtureDef[Any]) -> Generator[None, Any, Any]:
    """Records nothing while the fixtures of all tests are set up."""
    if fixturedef.baseid != FIXTURES_OF_ALL:
        return (yield)
    with unrecorded():
        return (yield)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_teardown() -> Generator[None, Any, Any]:
    """Records nothing while fixtures are torn down, since this closes every store."""
    with unrecorded():
        return (yield)


@contextmanager
def unrecorded() -> Iterator[None]:
    """Attributes the executed lines to no test."""
    coverage = Coverage.current()
    if coverage is None:
        yield
        return
    test = coverage.switch_context("")
    try:
        yield
    finally:
        coverage.switch_context(test or "")
