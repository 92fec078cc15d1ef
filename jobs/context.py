"""What jobs and sweepers are handed."""

from dataclasses import dataclass

from jobs.providers.egress import Egress
from jobs.providers.mailer import Mailer
from storage.stores import Stores


@dataclass(frozen=True, slots=True)
class JobContext:
    """One worker process's: the stores, the guard of everything that users point at, and who is told what by mail."""

    stores: Stores
    egress: Egress
    mailer: Mailer
    bounce_alarm_percent: float
    bounce_report_to: str | None
