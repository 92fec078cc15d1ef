"""The benchmark of killed workers runs to its end with tiny sizes, on a product of its own."""

from collections.abc import Callable

from benchmarks import killed_workers
from tests.benchmarks.conftest import RunBenchmark


def test_killed_workers_prints_its_table(run_benchmark: RunBenchmark, set_sizes: Callable[..., None]) -> None:
    set_sizes(killed_workers, LEAD_S=2.0)
    output = run_benchmark(killed_workers, "--posts 8 --seconds 2 --kills 1 --lost-answers 0")
    (row,) = [line for line in output.splitlines() if line.startswith("│ 8 ")]
    assert [cell.strip() for cell in row.strip("│").split("│")][:5] == ["8", "1", "0", "0", "0"], output
