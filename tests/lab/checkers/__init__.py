"""Checkers: each judges one promise from the history alone. A checker never looks at the duration of anything."""

from collections.abc import Callable
from dataclasses import dataclass

from tests.lab.history import Histories


@dataclass(frozen=True)
class Verdict:
    """The findings of a checker: how many facts it judged, and a description of each violation."""

    judged: int
    violations: list[str]


Checker = Callable[[Histories], Verdict]
