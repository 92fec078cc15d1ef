"""What jobs and sweepers are handed."""

from dataclasses import dataclass

from jobs.providers.egress import Egress
from storage.stores import Stores


@dataclass(frozen=True, slots=True)
class JobContext:
    """One worker process's: the stores, and the guard of everything that users point at."""

    stores: Stores
    egress: Egress
