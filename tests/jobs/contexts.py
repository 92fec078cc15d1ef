"""What jobs and sweepers are handed, in this process."""

from pathlib import Path

from jobs.context import JobContext
from jobs.providers.egress import Egress
from jobs.providers.mailer import Mailer
from jobs.providers.social.registry import all_networks
from jobs.publishing.desk import Desk
from storage.publishing.sandbox import SandboxStore
from storage.stores import Stores


def job_context(stores: Stores, egress: Egress | None = None, mailer: Mailer | None = None) -> JobContext:
    """A worker's, that reaches public addresses only, unless said otherwise, and keeps no mails."""
    guard = egress or Egress(())
    desk = Desk(stores, all_networks(guard, SandboxStore(stores.mongo)))
    return JobContext(stores, guard, desk, mailer or Mailer("smtp://127.0.0.1:1", "noroshi@example.org", Path()))
