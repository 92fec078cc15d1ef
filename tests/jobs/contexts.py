"""Contexts for jobs and sweepers that run in the test's process."""

from pathlib import Path

from jobs.context import DuePostPublisher, JobContext
from jobs.providers.egress import Egress
from jobs.providers.mailer import Mailer
from jobs.providers.social.registry import all_networks
from jobs.providers.telephony import Telephony
from jobs.providers.telephony.simulator import Simulator
from jobs.providers.web_push import WebPush
from jobs.publishing.publisher import PostPublisher
from storage.publishing.sandbox import SandboxStore
from storage.stores import Stores


def job_context(
    stores: Stores,
    egress: Egress | None = None,
    *,
    telephony: Telephony | None = None,
    publisher: DuePostPublisher | None = None,
    mailer: Mailer | None = None,
    report_to: str | None = None,
    web_push: WebPush | None = None,
) -> JobContext:
    """Returns a worker's context. By default it reaches public addresses only, simulates calls and sends no mail."""
    guard = egress or Egress(())
    return JobContext(
        stores,
        guard,
        telephony or Simulator(stores.mongo, stores.calls.report),
        publisher or PostPublisher(stores, all_networks(guard, SandboxStore(stores.mongo))),
        mailer or Mailer("smtp://127.0.0.1:1", "noroshi@example.org", Path()),
        bounce_alarm_percent=2.0,
        bounce_report_to=report_to,
        web_push=web_push,
        push_delay_s=0.0,
        digest_delay_s=0.0,
    )
