"""Benchmarks of pages, searches and lookups run to their end with tiny sizes."""

import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from benchmarks import before_after, lookup, screens, search, timeline, timeline_data, timeline_sizes
from tests.benchmarks.conftest import RunBenchmark
from tests.screens.data import ScreenSizes
from tests.screens.operations import SCREENS
from tests.test_architecture import ROOT

SHORT = "--seconds 0.2 --warm-up 0.1"


@pytest.fixture(autouse=True)
def small_timeline(set_sizes: Callable[..., None]) -> None:
    set_sizes(timeline_data, TOPICS=2, MESSAGES=120, READERS=4, AUTHORS=10)
    set_sizes(timeline, CONNECTIONS=2, MANY_CONNECTIONS=4, RANDOM_REQUESTS=20)
    set_sizes(timeline_sizes, CONNECTIONS=2, REQUESTS=20)


def test_timeline_prints_its_table(run_on_servers: RunBenchmark) -> None:
    output = run_on_servers(timeline, f"--rounds 1 {SHORT}")
    for variant in timeline.VARIANTS:
        rows = [line for line in output.splitlines() if f" {variant} " in line]
        assert len(rows) == 3
        assert all(row.endswith(" 0 │") for row in rows), f"Requests failed:\n{output}"


def test_timeline_sizes_prints_its_table(run_on_servers: RunBenchmark) -> None:
    output = run_on_servers(timeline_sizes, f"--pages 10 --topics 60 --sockets 2 {SHORT}")
    assert all(name in output for name in ("pages of 10", "a topic of 60", "2 open sockets"))


@pytest.fixture
def other_checkout(tmp_path: Path) -> Path:
    """A folder whose program runs this checkout."""
    program = tmp_path / ".venv/bin/noroshi"
    program.parent.mkdir(parents=True)
    program.write_text(f'#!/bin/sh\nexec env PYTHONPATH={ROOT} {sys.executable} -P -m server.commands.cli "$@"\n')
    program.chmod(0o755)
    return tmp_path


def test_before_after_prints_its_tables(run_on_servers: RunBenchmark, other_checkout: Path) -> None:
    output = run_on_servers(before_after, f"--before {other_checkout} --rounds 1 --clients 2 {SHORT}")
    assert output.count("random page") == output.count("post, 2 clients") == 2


def test_screens_prints_its_table(
    run_on_servers: RunBenchmark, other_checkout: Path, set_sizes: Callable[..., None]
) -> None:
    set_sizes(screens, SIZES=ScreenSizes(1, 1, 1, 1, 10, 1, 1, 5))
    output = run_on_servers(screens, f"--before {other_checkout} --rounds 1 --requests 1")
    assert all(output.count(f"│ {name} ") == 2 for name in SCREENS), output


def test_search_prints_its_table(run_on_servers: RunBenchmark, set_sizes: Callable[..., None]) -> None:
    set_sizes(search, COMMUNITIES=2, TOPICS=2, AUTHORS=2, JOINED=1, SEARCHERS=["ann"], CACHE_MIB=256)
    output = run_on_servers(search, f"--messages 100 --rate 20 {SHORT}")
    assert all(kind in output for kind in ("one word", "two words", "Japanese phrase"))


def test_lookup_prints_its_table(run_on_servers: RunBenchmark, set_sizes: Callable[..., None]) -> None:
    set_sizes(lookup, DOMAINS=20, REQUESTS=2)
    assert "requested/s" in run_on_servers(lookup, f"--addresses 500 --rates 10 {SHORT}")
