"""The workloads by area."""

from collections.abc import Callable
from typing import Protocol

from tests.lab.session import Laboratory
from tests.lab.workloads.chat import Chat


class Workload(Protocol):
    """The users of an area."""

    async def prepare(self) -> None:
        """Creates what the users act on, before the first fault."""

    async def run(self) -> None:
        """Lets the users act until the run ends."""

    async def settle(self) -> None:
        """Waits, after all faults are healed, until deferred work is done; then reads everything."""


WORKLOADS: dict[str, Callable[[Laboratory], Workload]] = {"chat": Chat}


def create_workloads(laboratory: Laboratory, areas: list[str]) -> list[Workload]:
    """Returns the workloads of these areas."""
    return [WORKLOADS[area](laboratory) for area in areas]
