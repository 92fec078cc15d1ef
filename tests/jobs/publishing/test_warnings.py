"""The sweeper that warns of the end of credentials."""

from datetime import timedelta

import pytest

from jobs.providers.egress import Egress
from jobs.publishing.warnings import warn_of_ends
from storage.publishing.accounts import AccountToConnect
from storage.publishing.credentials.lifetimes import CredentialLifetime
from storage.publishing.networks import Network
from storage.publishing.records import VerifiedAccount
from tests.jobs.contexts import job_context
from tests.storage.publishing.scenario import PublishingScenario

pytestmark = pytest.mark.anyio


async def test_due_warnings_are_sent(scenario: PublishingScenario, egress: Egress) -> None:
    accounts, jobs = scenario.stores.mongo["accounts"], job_context(scenario.stores, egress)
    lifetime, owner = CredentialLifetime(86_400.0), VerifiedAccount("7", "@harbour")
    new = AccountToConnect(scenario.organization_id, Network.X, "ours", None, "ann", owner, lifetime)
    account = await scenario.stores.accounts.connect(new, "token", None)
    assert await warn_of_ends(jobs) == 0
    ended = await scenario.now() - timedelta(seconds=1)
    await accounts.update_one({"_id": account.id}, {"$set": {"expires_at": ended, "warn_at": ended}})
    assert await warn_of_ends(jobs) == 1
    assert await warn_of_ends(jobs) == 0
