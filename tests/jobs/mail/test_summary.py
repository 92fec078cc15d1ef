"""The daily summary and alarms: each is sent once, by mail or by signed webhook, and retried after a failure."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from datetime import timedelta
from email import message_from_bytes
from pathlib import Path
from typing import Any

import orjson
import pytest
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from jobs.context import JobContext
from jobs.mail import summary
from jobs.mail.summary import report_bounces
from jobs.providers.egress import Egress
from jobs.providers.mailer import Mailer
from jobs.providers.signed_webhooks import verify
from storage.mail.rates import day_of
from storage.stores import Stores
from tests.http_server import http_server
from tests.jobs.contexts import job_context
from tests.storage.mail.events import hard, ok
from tests.storage.mail.scenario import MailScenario

pytestmark = pytest.mark.anyio


@pytest.fixture(autouse=True)
def _send_summary_at_any_hour(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(summary, "SUMMARY_AFTER_MS", 0)


@pytest.fixture
async def jobs(stores: Stores, tmp_path: Path) -> AsyncIterator[JobContext]:
    egress = Egress(())
    mailer = Mailer(None, "noroshi@example.org", tmp_path / "mail")
    yield job_context(stores, egress, mailer=mailer, report_to="postmaster@example.org")
    await egress.aclose()


async def add_mail(stores: Stores, delivered: int, bounced: int, days: int = 0) -> None:
    """Adds events of delivered and bounced mail of `days` days ago, at the current time of day."""
    at = await stores.mongo.now() - timedelta(days=days)
    deliveries = [ok(f"a{n}@example.org", at=at) for n in range(delivered)]
    bounces = [hard(f"b{n}@x.example", at=at) for n in range(bounced)]
    await MailScenario(stores, "acme").add_events(*deliveries, *bounces)


def sent_mails(tmp_path: Path) -> list[Any]:
    return [message_from_bytes(file.read_bytes()) for file in sorted((tmp_path / "mail").glob("*.eml"))]


async def test_summary_of_yesterday_is_sent_once(jobs: JobContext, tmp_path: Path) -> None:
    await add_mail(jobs.stores, 9, 1, days=1)
    assert await report_bounces(jobs) == 1
    assert await report_bounces(jobs) == 0
    (mail,) = sent_mails(tmp_path)
    assert "10.00% of acme" in mail["Subject"]
    text = mail.get_payload(decode=True).decode()
    assert "Sent: 10, bounced: 1" in text
    assert "x.example: 1 of 1 bounced" in text


async def test_concurrent_workers_send_one_summary(jobs: JobContext, tmp_path: Path) -> None:
    await add_mail(jobs.stores, 9, 1, days=1)
    assert sum(await asyncio.gather(*(report_bounces(jobs) for _ in range(8)))) == 1
    assert len(sent_mails(tmp_path)) == 1


@pytest.mark.parametrize(("delivered", "bounced", "alarms"), [(98, 2, 0), (97, 3, 1), (10, 10, 0)])
async def test_alarm_needs_threshold_and_enough_mail(
    jobs: JobContext, tmp_path: Path, delivered: int, bounced: int, alarms: int
) -> None:
    await add_mail(jobs.stores, delivered, bounced)
    assert await report_bounces(jobs) == alarms
    assert await report_bounces(jobs) == 0
    assert [mail["Subject"].startswith("Too many mails bounce") for mail in sent_mails(tmp_path)] == [True] * alarms


async def test_domain_alarm_is_sent_with_organization_below_threshold(jobs: JobContext, tmp_path: Path) -> None:
    await add_mail(jobs.stores, 3000, 50)
    assert await report_bounces(jobs) == 1
    assert await report_bounces(jobs) == 0
    (mail,) = sent_mails(tmp_path)
    assert "100.00% of x.example acme" in mail["Subject"]
    assert "Sent: 50, bounced: 50" in mail.get_payload(decode=True).decode()


async def test_alarm_is_raised_for_yesterday_too(jobs: JobContext, tmp_path: Path) -> None:
    await add_mail(jobs.stores, 45, 15, days=1)
    assert await report_bounces(replace(jobs, bounce_report_to=None)) == 1
    (report,) = await jobs.stores.reports.since(0, 10)
    assert report["_id"]["day"] == day_of(await jobs.stores.mongo.now()) - 1


async def test_reports_without_recipient_are_marked_sent(jobs: JobContext) -> None:
    await add_mail(jobs.stores, 60, 60)
    await add_mail(jobs.stores, 60, 60, days=1)
    without_recipient = replace(jobs, bounce_report_to=None)
    assert await report_bounces(without_recipient) == 4
    assert ["sent_at" in report for report in await jobs.stores.reports.since(0, 10)] == [True] * 4
    assert await report_bounces(without_recipient) == 0


@asynccontextmanager
async def webhook_receiver(statuses: list[int]) -> AsyncIterator[tuple[int, list[Request]]]:
    """Serves a webhook receiver that answers with one status after another. Yields its port and the requests."""
    received: list[Request] = []

    async def receive(request: Request) -> Response:
        await request.body()
        received.append(request)
        return Response(status_code=statuses.pop(0))

    async with http_server(Starlette(routes=[Route("/hook", receive, methods=["POST"])])) as port:
        yield port, received


async def test_webhook_is_signed_and_retried(jobs: JobContext, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("storage.mail.reports.CLAIM_S", 0)
    await add_mail(jobs.stores, 9, 1, days=1)
    async with webhook_receiver([500, 204]) as (port, received):
        jobs_with_webhook = replace(jobs, bounce_report_to=f"http://:s3cret@127.0.0.1:{port}/hook")
        assert await report_bounces(jobs_with_webhook) == 0
        await asyncio.sleep(0.005)
        assert await report_bounces(jobs_with_webhook) == 1
        assert await report_bounces(jobs_with_webhook) == 0
    bodies = [await request.body() for request in received]
    now_s = (await jobs.stores.mongo.now()).timestamp()
    ids = {verify("s3cret", request.headers, body, now_s).id for request, body in zip(received, bodies, strict=True)}
    assert len(ids) == 1
    assert "authorization" not in received[0].headers
    payload = orjson.loads(bodies[1])
    assert (payload["type"], payload["organizationId"], payload["sent"], payload["bounced"]) == (
        "bounce.summary",
        "acme",
        10,
        1,
    )
    assert payload["text"].startswith("Bounces: 10.00% of acme on ")
    assert "x.example: 1 of 1 bounced" in payload["text"].splitlines()
    assert payload["worstDomains"] == [{"domain": "x.example", "sent": 1, "bounced": 1, "rate": 1.0}]
