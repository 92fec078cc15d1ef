"""Histories: files with one JSON line for each operation of a run. The checkers read nothing else."""

import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, TypedDict

import orjson

Outcome = Literal["ok", "fail", "unknown"]
"""`ok`: took effect. `fail`: provably had no effect. `unknown`: may have had an effect, or may still have one."""


class RecordedOperation(TypedDict):
    """One operation. `begin` and `end` are Unix seconds of the laboratory's clock, which no fault changes."""

    process: str
    area: str
    operation: str
    arguments: dict[str, Any]
    begin: float
    end: float
    outcome: Outcome
    result: Any


FINAL = "final"
"""The process that reads everything after all faults are healed."""

History = list[RecordedOperation]


@dataclass
class HistoryRecorder:
    """Appends the operations of a run to one file, and keeps them in memory."""

    file: Path
    operations: History = field(default_factory=list)

    def __post_init__(self) -> None:
        self._clock_offset_s = time.time() - time.monotonic()
        self._out = self.file.open("wb", buffering=0)

    def now(self) -> float:
        """Returns Unix seconds that never jump."""
        return self._clock_offset_s + time.monotonic()

    def record(
        self,
        process: str,
        area: str,
        operation: str,
        arguments: dict[str, Any],
        begin: float,
        outcome: Outcome,
        result: Any,
    ) -> RecordedOperation:
        """Appends an operation that ends now."""
        recorded = RecordedOperation(
            process=process,
            area=area,
            operation=operation,
            arguments=arguments,
            begin=begin,
            end=self.now(),
            outcome=outcome,
            result=result,
        )
        self.operations.append(recorded)
        self._out.write(orjson.dumps(recorded) + b"\n")
        return recorded

    def close(self) -> None:
        """Closes the file."""
        self._out.close()


def select(history: History, *operations: str, outcome: Outcome | None = "ok") -> Iterator[RecordedOperation]:
    """Yields the operations of these names with this outcome, or with any outcome if it is None."""
    return (each for each in history if each["operation"] in operations and outcome in (None, each["outcome"]))
