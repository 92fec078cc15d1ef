"""Percentiles, and the tables that benchmarks print."""

import math
import sys
from collections.abc import Iterable, Sequence

from rich.console import Console
from rich.table import Table

WIDTH = 210
"""Width of tables in a file or a pipe."""


def percentile(values: Iterable[float], percent: float) -> float:
    """Returns a percentile of the values by nearest rank, or NaN without values."""
    ordered = sorted(values)
    return ordered[max(math.ceil(len(ordered) * percent / 100), 1) - 1] if ordered else math.nan


def print_table(title: str, columns: Sequence[str], rows: Iterable[Sequence[str]]) -> None:
    """Prints a table whose columns are right-aligned, except the first one."""
    table = Table(columns[0], title=title)
    for column in columns[1:]:
        table.add_column(column, justify="right")
    for row in rows:
        table.add_row(*row)
    Console(width=None if sys.stdout.isatty() else WIDTH).print(table)


def numbers(text: str) -> list[int]:
    """Returns the numbers of an option, which are separated by commas."""
    return [int(number) for number in text.split(",")]
