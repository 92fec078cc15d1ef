"""A report is claimed by one worker at a time. After the claim expires, another worker can claim it."""

import asyncio

import pytest

from storage.mail.reports import ReportStore
from tests.storage.mail.organization_mail import OrganizationMail

pytestmark = pytest.mark.anyio


async def test_report_is_claimed_by_one_worker_until_sent(
    mail: OrganizationMail, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = ReportStore(mail.stores.mongo)
    assert sum(await asyncio.gather(*(store.claim(mail.org, 1, "alarm") for _ in range(10)))) == 1
    assert await store.claim(mail.org, 2, "alarm")
    assert await store.claim(mail.org, 1, "summary")
    monkeypatch.setattr("storage.mail.reports.CLAIM_S", 0)
    await asyncio.sleep(0.005)
    assert await store.claim(mail.org, 1, "alarm")
    await store.mark_sent(mail.org, 1, "alarm")
    await asyncio.sleep(0.005)
    assert not await store.claim(mail.org, 1, "alarm")
