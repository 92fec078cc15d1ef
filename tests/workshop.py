"""What jobs are handed in tests that run them in their own process."""

from pathlib import Path

from jobs.context import JobContext
from jobs.providers.egress import Egress
from jobs.providers.mailer import Mailer
from storage.stores import Stores


def job_context(stores: Stores, folder: Path = Path("mail-of-tests"), report_to: str | None = None) -> JobContext:
    """With a guard that allows public addresses only, and a mailer that keeps mails in the folder."""
    mailer = Mailer(None, "noroshi@example.org", folder)
    return JobContext(stores, Egress(()), mailer, 2.0, report_to)
