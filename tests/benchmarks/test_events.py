"""Benchmarks of events, calls and publications run to their end with tiny sizes."""

from collections.abc import Callable

from benchmarks import calls_many, compression, fanout, ingest, punctuality, reconnects
from tests.benchmarks.conftest import RunBenchmark


def test_fanout_prints_its_table(run_on_servers: RunBenchmark) -> None:
    assert "best deliveries/s" in run_on_servers(fanout, "--sockets 5 --seconds 0.2")


def test_reconnects_prints_its_table(run_on_servers: RunBenchmark) -> None:
    output = run_on_servers(reconnects, "--sockets 5 --cuts 1 --rest 0 --rate 5")
    (row,) = (line for line in output.splitlines() if line.startswith("│ 5 "))
    assert row.split("│")[4].strip() == "5", f"Not all sockets connected again:\n{output}"
    assert " none │" in output


def test_compression_prints_its_tables(run_on_servers: RunBenchmark, set_sizes: Callable[..., None]) -> None:
    set_sizes(compression, SUBSCRIPTIONS=("socket", "identity", "zstd"), WARM_UP_CLIENTS=2, LEVEL_S=0.001)
    sizes = "--streams 3 --connections 3 --compressed 2 --rounds 1 --seconds 0.3 --requests 2"
    output = run_on_servers(compression, sizes)
    assert "Events to 3 subscribers" in output
    assert "Pages of 200 messages" in output
    assert "br 9" in output
    assert "KiB of each round" in output


def test_ingest_prints_its_table(run_on_servers: RunBenchmark, set_sizes: Callable[..., None]) -> None:
    set_sizes(ingest, DOMAINS=(1, 3))
    assert "aggregated/s" in run_on_servers(ingest, "--events 100 --addresses 20")


def test_calls_many_prints_its_table(run_on_servers: RunBenchmark) -> None:
    output = run_on_servers(calls_many, "--organizations 2 --active 2 --talk-s 0.5 --seconds 2 --interval 1")
    assert "starts/s" in output
    assert "0 over its limit" in output


def test_punctuality_prints_its_tables(run_on_servers: RunBenchmark, set_sizes: Callable[..., None]) -> None:
    set_sizes(punctuality, TOPICS=2, PHASE_S=0.1, SWEEP_INTERVAL_S=0.1, SWEEPS=2)
    output = run_on_servers(punctuality, "--posts 2 --waiting 10 --runs 1")
    assert "webhook: received" in output
    assert "index entries examined" in output
