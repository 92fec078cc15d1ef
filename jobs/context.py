"""What jobs and sweepers are handed."""

from dataclasses import dataclass

from jobs.providers.egress import Egress
from jobs.providers.mailer import Mailer
from jobs.providers.telephony import Telephony
from jobs.publishing.publisher import PostPublisher
from storage.stores import Stores


@dataclass(frozen=True, slots=True)
class JobContext:
    """One worker process's: the stores, the guard of everything that users point at, and what it works with."""

    stores: Stores
    egress: Egress
    telephony: Telephony
    publisher: PostPublisher
    mailer: Mailer
    bounce_alarm_percent: float
    bounce_report_to: str | None
