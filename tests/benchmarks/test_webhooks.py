"""The benchmark of webhooks runs to its end with tiny sizes, on processes of its own."""

from collections.abc import Callable

from benchmarks import webhooks
from tests.benchmarks.conftest import RunBenchmark
from tests.e2e.webhook_deployment import short_lease_worker


def test_webhooks_prints_its_tables(run_benchmark: RunBenchmark, set_sizes: Callable[..., None]) -> None:
    set_sizes(webhooks, TOPICS=2, SOCKETS=2, START_WORKER=short_lease_worker)
    options = "--events 20 --kills 1 --elections 1 --rate 50 --outage 0.5 --retry 4 --slices 1 --slice 0.2"
    output = run_benchmark(webhooks, options)
    for name in ("healthy", "slow", "failing", "down", "without webhooks", "five webhooks"):
        assert f" {name} " in output, output
