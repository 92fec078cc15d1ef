"""What jobs and sweepers are handed."""

from dataclasses import dataclass

from jobs.providers.egress import Egress
from jobs.providers.telephony import Telephony
from storage.stores import Stores


@dataclass(frozen=True, slots=True)
class JobContext:
    """One worker process's: the stores, the guard of everything that users point at, and who makes calls."""

    stores: Stores
    egress: Egress
    telephony: Telephony
