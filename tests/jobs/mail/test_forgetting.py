"""The sweeper that removes readable addresses."""

import asyncio

import pytest

from jobs.mail.forgetting import forget_addresses
from storage.mail.decisions.policies import DEFAULT_POLICY
from storage.stores import Stores
from tests.jobs.contexts import job_context
from tests.storage.mail.events import hard
from tests.storage.mail.scenario import MailScenario

pytestmark = pytest.mark.anyio


async def test_concurrent_sweeps_remove_readable_addresses(stores: Stores) -> None:
    mail, policies = MailScenario(stores, "acme"), stores.address_book.policies
    await policies.set("acme", DEFAULT_POLICY, 0, "op", "why", None, keep_addresses=True)
    await mail.add_events(hard(), hard("bob@example.org"))
    await policies.set("acme", DEFAULT_POLICY, 1, "op", "why not", None)
    jobs = job_context(stores)
    assert sum(await asyncio.gather(forget_addresses(jobs), forget_addresses(jobs))) >= 2
    assert await stores.mongo["mail_addresses"].count_documents({"readable": {"$exists": True}}) == 0
    assert (await mail.standing()).blocked
