"""Claims of mail summaries and alarms.

A report is claimed by one worker at a time. If the claim expires before the report was sent, another worker can claim
it. A sent report can't be claimed.
"""

import asyncio

import pytest

from storage.mail.reports import MailReportClaims
from tests.storage.mail.scenario import MailScenario

pytestmark = pytest.mark.anyio


async def test_report_is_claimed_by_one_worker_and_sent_once(
    mail: MailScenario, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = MailReportClaims(mail.stores.mongo)
    assert sum(await asyncio.gather(*(store.claim(mail.org, 1, "alarm") for _ in range(10)))) == 1
    assert await store.claim(mail.org, 2, "alarm")
    assert await store.claim(mail.org, 1, "summary")
    monkeypatch.setattr("storage.mail.reports.CLAIM_S", 0)
    await asyncio.sleep(0.005)
    assert await store.claim(mail.org, 1, "alarm")
    await store.mark_sent(mail.org, 1, "alarm")
    await asyncio.sleep(0.005)
    assert not await store.claim(mail.org, 1, "alarm")
