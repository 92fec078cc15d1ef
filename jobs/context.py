"""The dependencies that jobs and sweepers receive."""

from dataclasses import dataclass
from typing import Protocol

from jobs.providers.egress import Egress
from jobs.providers.mailer import Mailer
from jobs.providers.telephony import Telephony
from storage.stores import Stores


class DuePostPublisher(Protocol):
    """The publisher of due posts in a worker process, implemented by `jobs.publishing.publisher.PostPublisher`."""

    async def sweep(self) -> int:
        """Claims publications that are due within 5 s, and starts to publish them. Returns how many it claimed."""
        ...

    async def upload_media(self) -> int:
        """Starts uploads of media for publications that are due in the next minutes. Returns how many it started."""
        ...

    async def close(self) -> None:
        """Releases claimed publications that have not started, and waits at most 10 s for those that have."""
        ...


@dataclass(frozen=True, slots=True)
class JobContext:
    """One worker process's stores, address guard, providers and settings."""

    stores: Stores
    egress: Egress
    telephony: Telephony | None
    """None: no provider is chosen, and this worker neither starts nor polls calls."""

    publisher: DuePostPublisher
    mailer: Mailer
    bounce_alarm_percent: float
    """The daily bounce rate in percent above which an alarm is raised."""

    bounce_report_to: str | None
    """The mail address or webhook URL that receives bounce alarms and summaries. None: nobody receives them."""

    base_url: str = "http://127.0.0.1:8000"
    """The address at which people reach the server, without a slash at the end; for links in mails."""
