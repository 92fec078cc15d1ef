"""Benchmarks of `noroshi up` run to their end with tiny sizes, on processes of the product that are started alone."""

import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import ModuleType

import pytest

from benchmarks import fanout_on_write, hostile_member, posting
from benchmarks.servers import DatabaseServers, RunningDeployment, web_process
from tests.benchmarks.conftest import RunBenchmark
from tests.serving import worker_process
from tests.test_architecture import ROOT


@pytest.fixture
def run_on_deployment(
    run_benchmark: RunBenchmark, servers: DatabaseServers, monkeypatch: pytest.MonkeyPatch
) -> Iterator[RunBenchmark]:
    """Runs a benchmark of `noroshi up` on one web process."""
    with web_process(servers) as web:

        @contextmanager
        def deployment(_web: int, *_driver: str, **_settings: object) -> Iterator[RunningDeployment]:
            yield RunningDeployment(servers, web)

        def run(module: ModuleType, arguments: str) -> str:
            monkeypatch.setattr(module, "deployment", deployment)
            return run_benchmark(module, arguments)

        yield run


@pytest.mark.parametrize("action", posting.Action)
def test_posting_prints_its_table(run_on_deployment: RunBenchmark, action: posting.Action) -> None:
    options = "--seconds 0.2 --clients 2 --web 1 --warm-up 0.1 --idle-timeout 0"
    assert f"{action}s/s" in run_on_deployment(posting, f"{options} --action {action}")


def test_fanout_on_write_prints_its_table(
    run_on_deployment: RunBenchmark, servers: DatabaseServers, tmp_path: Path, set_sizes: Callable[..., None]
) -> None:
    set_sizes(fanout_on_write, FEED_ITEMS=60, REQUESTS=2)
    with worker_process(tmp_path, servers.mongodb_uri, servers.redis_url, servers.database):
        assert "followers/s" in run_on_deployment(fanout_on_write, "--followers 20 --others 50 --idle-timeout 0")


def test_hostile_member_prints_its_table(run_on_deployment: RunBenchmark, set_sizes: Callable[..., None]) -> None:
    set_sizes(hostile_member, MESSAGES=15, REACTIONS=1, PAUSE_AFTER_ATTACK_S=0)
    output = run_on_deployment(hostile_member, "--seconds 0.3 --rounds 1")
    assert "│ without " in output
    assert "│ with " in output


def test_every_benchmark_has_a_smoke_test() -> None:
    sources = {path.stem: path.read_text(encoding="utf-8") for path in (ROOT / "benchmarks").rglob("*.py")}
    names = {name for name, source in sources.items() if "typer.Typer(" in source}
    tests = " ".join(path.read_text(encoding="utf-8") for path in (ROOT / "tests/benchmarks").glob("test_*.py"))
    assert [name for name in sorted(names) if not re.search(rf"def test_{name}_", tests)] == []
    assert len(names) > 10
