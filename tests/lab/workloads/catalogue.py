"""The workloads by area."""

from collections.abc import Callable
from typing import Protocol

from tests.lab.outside import OutsideServices
from tests.lab.session import Laboratory
from tests.lab.workloads.calls import CallsWorkload
from tests.lab.workloads.chat import ChatWorkload
from tests.lab.workloads.conversations import ConversationsWorkload
from tests.lab.workloads.feed import FeedWorkload
from tests.lab.workloads.mail import MailWorkload
from tests.lab.workloads.publishing import PublishingWorkload


class Workload(Protocol):
    """The users of an area."""

    async def prepare(self) -> None:
        """Creates what the users act on, before the first fault."""

    async def run(self) -> None:
        """Lets the users act until the run ends."""

    async def finish(self) -> None:
        """Waits, after all faults are healed, until deferred work is done; then reads the final state."""


WORKLOADS: dict[str, Callable[[Laboratory, OutsideServices], Workload]] = {
    "chat": lambda laboratory, _: ChatWorkload(laboratory),
    "conversations": lambda laboratory, _: ConversationsWorkload(laboratory),
    "feed": lambda laboratory, _: FeedWorkload(laboratory),
    "publishing": lambda laboratory, outside: PublishingWorkload(laboratory, outside.mastodon, outside.webhook),
    "calls": lambda laboratory, outside: CallsWorkload(laboratory, outside.telephony),
    "mail": lambda laboratory, _: MailWorkload(laboratory),
}


def create_workloads(laboratory: Laboratory, outside: OutsideServices, areas: list[str]) -> list[Workload]:
    """Returns the workloads of these areas."""
    return [WORKLOADS[area](laboratory, outside) for area in areas]
