"""Benchmarks of `noroshi up` run to their end with tiny sizes, on one product."""

import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import pytest

from benchmarks import fanout_on_write, hostile_member, posting
from benchmarks.servers import RunningDeployment
from tests.benchmarks.conftest import RunBenchmark
from tests.preloaded import preloaded_command
from tests.product import running_product
from tests.test_architecture import ROOT


@pytest.fixture(scope="module")
def running(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningDeployment]:
    """The product of these tests."""
    data_dir = tmp_path_factory.mktemp("product") / "data"
    with running_product(data_dir, "--web", "1", start=preloaded_command, NOROSHI_LOG_LEVEL="warning") as product:
        yield RunningDeployment(product, "pymongo")


@pytest.fixture(autouse=True)
def shared_deployment(running: RunningDeployment, monkeypatch: pytest.MonkeyPatch) -> None:
    """Gives benchmarks the product of these tests."""

    @contextmanager
    def deployment(_web: int, *_driver: str, **_settings: str) -> Iterator[RunningDeployment]:
        yield running

    for module in (fanout_on_write, hostile_member, posting):
        monkeypatch.setattr(module, "deployment", deployment)


def test_posting_prints_its_table(run_benchmark: RunBenchmark) -> None:
    output = run_benchmark(posting, "--seconds 0.3 --clients 2 --web 1 --warm-up 0.1 --idle-timeout 0")
    assert "messages/s" in output


def test_fanout_on_write_prints_its_table(run_benchmark: RunBenchmark, set_sizes: Callable[..., None]) -> None:
    set_sizes(fanout_on_write, FEED_ITEMS=60, REQUESTS=2)
    assert "followers/s" in run_benchmark(fanout_on_write, "--followers 20 --others 50 --idle-timeout 0")


def test_hostile_member_prints_its_table(run_benchmark: RunBenchmark, set_sizes: Callable[..., None]) -> None:
    set_sizes(hostile_member, MESSAGES=30, PAUSE_AFTER_ATTACK_S=0)
    output = run_benchmark(hostile_member, "--seconds 0.5 --rounds 1")
    assert "answered" in output


def test_every_benchmark_has_a_smoke_test() -> None:
    sources = {path.stem: path.read_text(encoding="utf-8") for path in (ROOT / "benchmarks").rglob("*.py")}
    names = {name for name, source in sources.items() if "typer.Typer(" in source}
    tests = " ".join(path.read_text(encoding="utf-8") for path in (ROOT / "tests/benchmarks").glob("test_*.py"))
    assert [name for name in sorted(names) if not re.search(rf"def test_{name}_", tests)] == []
    assert len(names) > 10
