"""The dependencies that jobs and sweepers receive."""

from dataclasses import dataclass
from typing import Protocol

from jobs.providers.egress import Egress
from jobs.providers.mailer import Mailer
from jobs.providers.telephony import Telephony
from storage.stores import Stores


class DuePublisher(Protocol):
    """Publishes due posts for this process; `jobs.publishing.publisher.PostPublisher` implements it."""

    async def sweep(self) -> int:
        """Claims publications that are due within five seconds, starts to publish them, and returns their number."""
        ...

    async def upload_media(self) -> int:
        """Starts uploads of media that will be needed soon, and returns how many."""
        ...

    async def close(self) -> None:
        """Releases the publications that are not started; waits at most 10 s for the others."""
        ...


@dataclass(frozen=True, slots=True)
class JobContext:
    """One worker process's stores, egress guard, providers and settings."""

    stores: Stores
    egress: Egress
    telephony: Telephony
    publisher: DuePublisher
    mailer: Mailer
    bounce_alarm_percent: float
    bounce_report_to: str | None
