"""Daily verification at the networks' twins: refusals mark the account and hold its posts, failures do not."""

import asyncio
from collections.abc import AsyncIterator
from dataclasses import dataclass, replace
from datetime import timedelta

import pytest

from jobs.context import JobContext
from jobs.providers.egress import Egress
from jobs.providers.social.http import HttpClient
from jobs.providers.social.mastodon import Mastodon
from jobs.providers.social.network import PublishingAccount
from jobs.providers.social.verification import AccountVerifier
from jobs.publishing.publisher import PostPublisher
from jobs.publishing.verifications import verify_credentials
from storage.publishing.accounts import AccountToConnect
from storage.publishing.networks import Network
from storage.publishing.records import ConnectedAccount, PublicationState, VerifiedAccount
from storage.secrets.credentials import CredentialCipher
from tests.jobs.contexts import job_context
from tests.jobs.publishing.runs import SECRETS, TWINS, quick_networks, run_once
from tests.storage.publishing.scenario import IMAGE, PublishingScenario, account_target
from tests.twins.bluesky import BlueskyTwin
from tests.twins.mastodon import MastodonTwin
from tests.twins.twin import NetworkFault, NetworkTwin, running_twin
from tests.twins.x import XTwin
from tests.waiting import until

pytestmark = pytest.mark.anyio

ASKED = [Network.MASTODON, Network.INSTAGRAM, Network.BLUESKY, Network.X]
DAY_S = 86_400.0


@dataclass
class Verifying:
    """An account whose credentials are due to be verified, its network's twin, and a worker."""

    scenario: PublishingScenario
    jobs: JobContext
    publisher: PostPublisher
    network: Network
    twin: NetworkTwin
    account: ConnectedAccount

    async def stored(self) -> ConnectedAccount:
        return await self.scenario.stores.accounts.get(self.scenario.organization_id, self.account.id)

    async def make_due(self) -> None:
        """Lets a day pass."""
        change = {"$set": {"verify_at": await self.scenario.now() - timedelta(seconds=1)}}
        await self.scenario.stores.mongo["accounts"].update_one({"_id": self.account.id}, change)

    async def due_in_s(self) -> float:
        (row,) = await self.scenario.stores.mongo.find("accounts", {"_id": self.account.id})
        left: timedelta = row["verify_at"] - await self.scenario.now()
        return left.total_seconds()

    def accept(self, token: str) -> None:
        """Lets the network accept another token only."""
        self.twin.token = token
        if isinstance(self.twin, BlueskyTwin):
            self.twin.app_password = token

    async def publish(self) -> PublicationState:
        """Schedules a post that is due, and returns its state after a sweep."""
        media = [IMAGE] if self.network is Network.INSTAGRAM else []
        post = await self.scenario.schedule(account_target(self.account), in_s=-1, media=media)
        return (await run_once(self.publisher, self.scenario, post)).state

    async def held(self) -> int:
        query = {"org": self.scenario.organization_id, "state": "NEEDS_ATTENTION"}
        return await self.scenario.stores.mongo["publications"].count_documents(query)

    async def notified(self) -> list[str]:
        """Returns the kinds of the owner's notifications about accounts, after all have arrived."""
        stores, stream = self.scenario.stores, f"user:{self.scenario.organization_id}/ann"

        async def is_relayed() -> bool:
            stores.outbox.nudge(stream)
            return await stores.mongo["outbox"].count_documents({"stream": stream}) == 0

        await until(is_relayed, interval_s=0.1)
        query = {"_id.o": self.scenario.organization_id, "account": self.account.id}
        return [each["kind"] async for each in stores.mongo["notifications"].find(query)]


@pytest.fixture
async def verifying(
    request: pytest.FixtureRequest, scenario: PublishingScenario, publisher: PostPublisher, egress: Egress
) -> AsyncIterator[Verifying]:
    network: Network = getattr(request, "param", Network.MASTODON)
    accounts = scenario.stores.mongo["accounts"]
    later = await scenario.now() + timedelta(days=1)
    await accounts.update_many({}, {"$set": {"verify_at": later}})
    async with running_twin(TWINS[network]()) as twin:
        verifier = AccountVerifier(quick_networks(scenario.stores, egress))
        jobs = replace(job_context(scenario.stores, egress, publisher=publisher), account_verifier=verifier)
        owner = await verifier.verify(network, twin.url, SECRETS[network])
        new = AccountToConnect(scenario.organization_id, network, "ours", twin.url, "ann", owner)
        account = await scenario.stores.accounts.connect(new, SECRETS[network], None)
        twin.request_counts.clear()
        verifying = Verifying(scenario, jobs, publisher, network, twin, account)
        await verifying.make_due()
        yield verifying


each_network = pytest.mark.parametrize("verifying", ASKED, indirect=True, ids=lambda network: network.value)


@each_network
async def test_accepted_credentials_are_verified_daily(verifying: Verifying) -> None:
    assert await verify_credentials(verifying.jobs) == 1
    assert await verify_credentials(verifying.jobs) == 0
    stored = await verifying.stored()
    assert (stored.attention, stored.handle) == (None, verifying.account.handle)
    assert stored.verified_at is not None
    assert verifying.account.verified_at is not None
    assert stored.verified_at > verifying.account.verified_at
    assert 0.8 * DAY_S < await verifying.due_in_s() < 1.2 * DAY_S
    assert await verifying.notified() == []


@each_network
async def test_revoked_credentials_hold_posts_until_they_work(verifying: Verifying) -> None:
    verifying.accept("other")
    assert await verify_credentials(verifying.jobs) == 1
    attention = (await verifying.stored()).attention
    assert attention is not None
    assert attention.code == "UNAUTHORIZED"
    assert f"{verifying.network.value} refuses the credentials (" in attention.reason
    assert await verifying.notified() == ["ACCOUNT_NEEDS_ATTENTION"]
    verifying.twin.request_counts.clear()
    assert await verifying.publish() is PublicationState.NEEDS_ATTENTION
    assert not verifying.twin.request_counts, "The post is held without a call."
    verifying.accept(SECRETS[verifying.network].rpartition(":")[2])
    await verifying.make_due()
    assert await verify_credentials(verifying.jobs) == 1
    assert (await verifying.stored()).attention is None
    assert await verifying.held() == 0
    assert await verifying.notified() == ["ACCOUNT_NEEDS_ATTENTION"]


async def test_two_workers_ask_once(verifying: Verifying) -> None:
    counts = await asyncio.gather(*[verify_credentials(verifying.jobs) for _ in range(6)])
    assert sum(counts) == 1
    assert sum(verifying.twin.request_counts.values()) == 1


async def test_two_workers_notify_once(verifying: Verifying) -> None:
    for _ in range(2):
        verifying.accept("other")
        await verifying.make_due()
        await asyncio.gather(*[verify_credentials(verifying.jobs) for _ in range(4)])
    assert await verifying.notified() == ["ACCOUNT_NEEDS_ATTENTION"]


@each_network
@pytest.mark.parametrize("fault", [NetworkFault.BUSY, NetworkFault.FAIL_BEFORE, NetworkFault.CUT_BEFORE])
async def test_network_without_answer_is_asked_later(verifying: Verifying, fault: NetworkFault) -> None:
    verifying.twin.verification_faults.append(fault)
    assert await verify_credentials(verifying.jobs) == 1
    stored = await verifying.stored()
    assert (stored.attention, stored.verified_at) == (None, verifying.account.verified_at)
    assert 1800 < await verifying.due_in_s() <= 3600
    await verifying.make_due()
    await verify_credentials(verifying.jobs)
    assert (await verifying.stored()).verified_at != verifying.account.verified_at


async def test_silent_network_is_asked_later(verifying: Verifying) -> None:
    verifying.twin.verification_faults.append(NetworkFault.SILENT_BEFORE)
    assert verifying.jobs.account_verifier is not None
    impatient = replace(verifying.jobs.account_verifier, timeout_s=0.2)
    assert await verify_credentials(replace(verifying.jobs, account_verifier=impatient)) == 1
    assert (await verifying.stored()).attention is None
    assert 1800 < await verifying.due_in_s() <= 3600


async def test_unreachable_network_is_asked_later(verifying: Verifying) -> None:
    change = {"$set": {"base_url": "http://127.0.0.1:1"}}
    await verifying.scenario.stores.mongo["accounts"].update_one({"_id": verifying.account.id}, change)
    assert await verify_credentials(verifying.jobs) == 1
    assert (await verifying.stored()).attention is None
    assert 1800 < await verifying.due_in_s() <= 3600


async def test_address_without_network_marks_no_account(verifying: Verifying) -> None:
    """The server answers 404: its administrators may move it, and the credentials may be valid."""
    change = {"$set": {"base_url": f"{verifying.twin.url}/elsewhere"}}
    await verifying.scenario.stores.mongo["accounts"].update_one({"_id": verifying.account.id}, change)
    assert await verify_credentials(verifying.jobs) == 1
    assert (await verifying.stored()).attention is None
    assert await verifying.due_in_s() > 0.8 * DAY_S


@pytest.mark.parametrize("verifying", [Network.X], indirect=True)
async def test_credentials_that_may_not_ask_mark_no_account(verifying: Verifying) -> None:
    """X answers 403 to an app's token. A 403 that does not name the credentials says nothing about publishing."""
    await verifying.scenario.replace_credentials(verifying.account, XTwin.app_token)
    assert await verify_credentials(verifying.jobs) == 1
    assert (await verifying.stored()).attention is None


async def test_other_account_is_refused(verifying: Verifying) -> None:
    assert isinstance(verifying.twin, MastodonTwin)
    verifying.twin.user_id, verifying.twin.username = "99", "other"
    await verify_credentials(verifying.jobs)
    stored = await verifying.stored()
    assert stored.attention is not None
    assert stored.attention.reason == (
        "The credentials belong to @other@127.0.0.1 at MASTODON, and not to @harbour@127.0.0.1 any more."
    )
    assert (stored.network_id, stored.handle) == (verifying.account.network_id, verifying.account.handle)


async def test_new_handle_of_the_account_is_stored(verifying: Verifying) -> None:
    assert isinstance(verifying.twin, MastodonTwin)
    verifying.twin.username = "port"
    await verify_credentials(verifying.jobs)
    assert (await verifying.stored()).handle == "@port@127.0.0.1"


async def test_disabled_login_needs_attention(verifying: Verifying) -> None:
    assert isinstance(verifying.twin, MastodonTwin)
    verifying.twin.is_disabled = True
    await verify_credentials(verifying.jobs)
    attention = (await verifying.stored()).attention
    assert attention is not None
    assert "Your login is currently disabled" in attention.reason


async def test_credentials_that_cannot_be_decrypted_need_attention(verifying: Verifying) -> None:
    accounts, id_ = verifying.scenario.stores.mongo["accounts"], verifying.account.id
    (before,) = await accounts.find({"_id": id_}).to_list(None)
    sealed = CredentialCipher({"9": b"z" * 32}).seal("token", id_)
    await accounts.update_one({"_id": id_}, {"$set": {"credentials": sealed}})
    await verify_credentials(verifying.jobs)
    attention = (await verifying.stored()).attention
    assert attention is not None
    assert attention.code == "CREDENTIALS_LOST"
    assert not verifying.twin.request_counts
    await accounts.update_one({"_id": id_}, {"$set": {"credentials": before["credentials"]}})
    await verifying.make_due()
    await verify_credentials(verifying.jobs)
    assert (await verifying.stored()).attention is None


class LateMastodon(Mastodon):
    """Mastodon whose answer arrives after a person has replaced the credentials."""

    def __init__(self, http: HttpClient, verifying: Verifying) -> None:
        super().__init__(http)
        self._verifying = verifying

    async def verify(self, account: PublishingAccount) -> VerifiedAccount:
        try:
            return await super().verify(account)
        finally:
            stores, connected = self._verifying.scenario.stores, self._verifying.account
            owner = VerifiedAccount(connected.network_id, "@replaced")
            await stores.accounts.replace_credentials(connected, "new", owner, None)


@pytest.mark.parametrize("is_accepted", [True, False])
async def test_replacement_during_the_call_wins(verifying: Verifying, egress: Egress, is_accepted: bool) -> None:
    """The network's answer is about the old credentials."""
    if not is_accepted:
        verifying.accept("other")
    late = LateMastodon(HttpClient(egress), verifying)
    jobs = replace(verifying.jobs, account_verifier=AccountVerifier({Network.MASTODON: late}))
    assert await verify_credentials(jobs) == 1
    stored = await verifying.stored()
    assert (stored.attention, stored.handle) == (None, "@replaced")
    assert await verifying.due_in_s() > 0.8 * DAY_S
    assert await verifying.notified() == []


async def test_worker_without_networks_leaves_the_account(verifying: Verifying) -> None:
    assert await verify_credentials(replace(verifying.jobs, account_verifier=None)) == 0
    assert await verify_credentials(verifying.jobs) == 1
