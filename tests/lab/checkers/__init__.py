"""Checkers: each checks one promise, from the history alone. Checkers ignore durations."""

from collections.abc import Callable
from dataclasses import dataclass

from tests.lab.history import History


@dataclass(frozen=True)
class CheckerResult:
    """The result of a checker: how many facts it checked, and a description of each violation."""

    checked: int
    violations: list[str]


Checker = Callable[[History], CheckerResult]
