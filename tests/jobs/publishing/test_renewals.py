"""Renewal of credentials: once, also by two workers, and when a worker is killed between the answer and the commit."""

import asyncio
import signal
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from datetime import timedelta

import pytest

from jobs.context import JobContext
from jobs.providers.egress import Egress
from jobs.providers.social.http import HttpClient
from jobs.providers.social.oauth.authorization import APP_PAUSE_S, OAuthApp
from jobs.providers.social.oauth.x import XOAuth
from jobs.providers.social.verification import AccountVerifier
from jobs.publishing.publisher import PostPublisher
from jobs.publishing.renewals import renew_credentials
from jobs.publishing.verifications import verify_credentials
from server.embedded import Mongod
from storage.ids import new_id
from storage.publishing.accounts import AccountToConnect
from storage.publishing.credentials.lifetimes import UNKNOWN_LIFETIME, CredentialLifetime
from storage.publishing.networks import Network
from storage.publishing.records import ConnectedAccount, PublicationState, VerifiedAccount
from storage.stores import open_stores
from storage.stores.dead_workers import release_leases_of
from tests.databases import CREDENTIAL_KEYS
from tests.jobs.contexts import job_context
from tests.jobs.publishing.runs import quick_networks, renewer, run_once
from tests.storage.faults import failpoint
from tests.storage.publishing.scenario import PublishingScenario, account_target, create_publishing_scenario
from tests.twins.instagram import InstagramTwin
from tests.twins.twin import NetworkFault, running_twin
from tests.twins.x import XTwin

pytestmark = pytest.mark.anyio

Twin = XTwin | InstagramTwin


@dataclass
class Renewing:
    """An account whose credentials are due to be renewed, its network's twin, and a worker."""

    scenario: PublishingScenario
    jobs: JobContext
    network: Network
    twin: Twin
    account: ConnectedAccount

    async def stored(self) -> ConnectedAccount:
        return await self.scenario.stores.accounts.get(self.scenario.organization_id, self.account.id)

    async def token(self) -> str:
        secret = await self.scenario.stores.accounts.decrypt_credentials(self.account)
        return secret.rpartition(":")[2]

    async def make_due(self) -> None:
        """Lets the time pass until the renewal is due, or until the lease of a worker has ended."""
        change = {"$set": {"renew_at": await self.scenario.now() - timedelta(seconds=1)}}
        await self.scenario.stores.mongo["accounts"].update_one({"_id": self.account.id}, change)

    async def due_in_s(self) -> float:
        (row,) = await self.scenario.stores.mongo.find("accounts", {"_id": self.account.id})
        left: timedelta = row["renew_at"] - await self.scenario.now()
        return left.total_seconds()

    def revoke(self) -> None:
        """Lets the network refuse the credentials."""
        self.twin.token = "revoked"
        if isinstance(self.twin, XTwin):
            self.twin.refresh_token = "revoked"

    async def kill_after_answer(self, databases: list[str]) -> None:
        """Kills a worker process after the network has renewed, and before its answer is stored."""
        self.twin.renewal_faults.append(NetworkFault.SILENT_AFTER)
        command = [sys.executable, "-m", "tests.jobs.publishing.renewing_worker", *databases]
        worker = await asyncio.create_subprocess_exec(*command, self.network.value, self.twin.url)
        await self.twin.is_renewed.wait()
        worker.kill()
        assert await worker.wait() == -signal.SIGKILL


@pytest.fixture
def databases(mongodb_uri: str, redis_url: str, shared_database: str) -> list[str]:
    """The addresses of the servers, and the name of the database."""
    return [mongodb_uri, redis_url, shared_database]


@pytest.fixture(params=[Network.X, Network.INSTAGRAM], ids=lambda network: network.value)
async def renewing(
    request: pytest.FixtureRequest, scenario: PublishingScenario, publisher: PostPublisher, egress: Egress
) -> AsyncIterator[Renewing]:
    await scenario.stores.mongo["accounts"].update_many({}, {"$unset": {"renew_at": ""}})
    async with due_account(request.param, scenario, publisher, egress) as renewing:
        yield renewing


@asynccontextmanager
async def due_account(
    network: Network,
    scenario: PublishingScenario,
    publisher: PostPublisher,
    egress: Egress,
    *,
    is_pasted: bool = False,
) -> AsyncIterator[Renewing]:
    """Connects an account whose credentials are due to be renewed. The end of pasted ones is not known."""
    is_x = network is Network.X
    async with running_twin(XTwin() if is_x else InstagramTwin()) as twin:
        assert isinstance(twin, Twin)
        jobs = job_context(scenario.stores, egress, publisher=publisher)
        jobs = replace(jobs, credential_renewers={network: renewer(network, egress, twin.url)})
        lifetime = CredentialLifetime(7200.0 if is_x else 5_184_000.0, "refresh-0" if is_x else None, is_renewable=True)
        lifetime = UNKNOWN_LIFETIME if is_pasted else lifetime
        owner = VerifiedAccount("1784", "@harbour")
        new = AccountToConnect(scenario.organization_id, network, "ours", twin.url, "ann", owner, lifetime)
        secret = "token" if is_x else "1784:token"
        renewing = Renewing(scenario, jobs, network, twin, await scenario.stores.accounts.connect(new, secret, None))
        await renewing.make_due()
        yield renewing


async def test_credentials_are_renewed_ahead_and_again(renewing: Renewing) -> None:
    tokens = {"token"}
    for _ in range(4):
        assert await renew_credentials(renewing.jobs) == 1
        assert await renew_credentials(renewing.jobs) == 0
        tokens.add(await renewing.token())
        assert await renewing.token() == renewing.twin.token
        await renewing.make_due()
    assert len(tokens) == 5
    stored = await renewing.stored()
    assert (stored.attention, stored.renews_credentials) == (None, True)


async def test_two_workers_renew_once(renewing: Renewing) -> None:
    counts = await asyncio.gather(*[renew_credentials(renewing.jobs) for _ in range(6)])
    assert sum(counts) == 1
    path = "POST /2/oauth2/token" if renewing.network is Network.X else "GET /refresh_access_token"
    assert renewing.twin.request_counts[path] == 1
    assert await renewing.token() == renewing.twin.token


@pytest.mark.parametrize("renewing", [Network.INSTAGRAM], indirect=True)
async def test_killed_worker_is_survived_where_repeating_works(renewing: Renewing, databases: list[str]) -> None:
    await renewing.kill_after_answer(databases)
    assert await renew_credentials(renewing.jobs) == 0, "the lease of the dead worker has not ended"
    assert await release_leases_of(renewing.scenario.stores, "killed") == 1
    assert await asyncio.gather(*[renew_credentials(renewing.jobs) for _ in range(2)]) in ([0, 1], [1, 0])
    assert (await renewing.stored()).attention is None
    assert await renewing.token() == renewing.twin.token


@pytest.mark.parametrize("renewing", [Network.X], indirect=True)
async def test_killed_worker_is_shown_where_repeating_is_refused(
    renewing: Renewing, publisher: PostPublisher, databases: list[str]
) -> None:
    await renewing.kill_after_answer(databases)
    assert await release_leases_of(renewing.scenario.stores, "killed") == 1
    assert await asyncio.gather(*[renew_credentials(renewing.jobs) for _ in range(2)]) in ([0, 1], [1, 0])
    stored = await renewing.stored()
    assert stored.attention is not None
    assert "its answer was lost" in stored.attention.reason
    assert "Connect the account again" in stored.attention.reason
    assert not stored.renews_credentials
    post = await renewing.scenario.schedule(account_target(stored), in_s=-1)
    assert (await run_once(publisher, renewing.scenario, post)).state is PublicationState.NEEDS_ATTENTION
    lifetime = CredentialLifetime(7200.0, renewing.twin.refresh_token, is_renewable=True)  # type: ignore[union-attr]
    replaced = await renewing.scenario.stores.accounts.replace_credentials(
        stored, renewing.twin.token, VerifiedAccount("7", "@harbour"), None, lifetime=lifetime
    )
    await renewing.scenario.stores.scheduled_posts.resume_account(replaced)
    assert (await run_once(publisher, renewing.scenario, post)).state is PublicationState.PUBLISHED


@pytest.mark.parametrize("renewing", [Network.X], indirect=True)
async def test_worker_killed_before_the_call_is_survived(renewing: Renewing) -> None:
    """The claim was stored, and X has not received the refresh token. The next worker's call succeeds."""
    assert await renewing.scenario.stores.credential_renewals.claim([Network.X]) is not None
    await renewing.make_due()
    await renew_credentials(renewing.jobs)
    assert (await renewing.stored()).attention is None
    assert await renewing.token() == renewing.twin.token


async def test_answer_outlives_a_failing_database(
    own_mongod: Mongod, redis_url: str, publisher: PostPublisher, egress: Egress
) -> None:
    async with open_stores(own_mongod.uri, redis_url, f"t_{new_id()}", credential_keys=CREDENTIAL_KEYS) as stores:
        scenario = await create_publishing_scenario(stores)
        async with due_account(Network.X, scenario, publisher, egress) as renewing:
            async with failpoint(own_mongod.uri, "update", times=2, closeConnection=True):
                await renew_credentials(renewing.jobs)
            assert await renewing.token() == renewing.twin.token
            assert (await renewing.stored()).attention is None


async def test_busy_network_is_asked_again(renewing: Renewing) -> None:
    renewing.twin.renewal_faults.append(NetworkFault.BUSY)
    assert await renew_credentials(renewing.jobs) == 1
    assert await renewing.token() == "token"
    assert 30 < await renewing.due_in_s() <= 3600
    await renewing.make_due()
    assert await renew_credentials(renewing.jobs) == 1
    assert await renewing.token() == renewing.twin.token


async def test_revoked_grant_needs_attention(renewing: Renewing) -> None:
    renewing.revoke()
    await renew_credentials(renewing.jobs)
    attention = (await renewing.stored()).attention
    assert attention is not None
    assert attention.code == "UNAUTHORIZED"
    assert f"{renewing.network.value} does not renew the token" in attention.reason
    assert await renew_credentials(renewing.jobs) == 0


@pytest.mark.parametrize("renewing", [Network.X], indirect=True)
async def test_refused_app_marks_no_account(renewing: Renewing, egress: Egress) -> None:
    wrong = XOAuth(HttpClient(egress), OAuthApp(XTwin.client_id, "wrong"), renewing.twin.url)
    await renew_credentials(replace(renewing.jobs, credential_renewers={Network.X: wrong}))
    assert (await renewing.stored()).attention is None
    assert APP_PAUSE_S / 2 < await renewing.due_in_s() <= APP_PAUSE_S
    await renewing.make_due()
    await renew_credentials(renewing.jobs)
    assert await renewing.token() == renewing.twin.token


async def test_worker_without_the_app_leaves_the_account(renewing: Renewing) -> None:
    assert await renew_credentials(replace(renewing.jobs, credential_renewers={})) == 0
    assert await renew_credentials(renewing.jobs) == 1


@pytest.mark.parametrize("renewing", [Network.X], indirect=True)
async def test_renewal_releases_posts_refused_during_it(renewing: Renewing, publisher: PostPublisher) -> None:
    """The old token is refused between the network's renewal and the commit. The mark is void with the new token."""
    renewing.twin.token = "newer"
    post = await renewing.scenario.schedule(account_target(renewing.account), in_s=-1)
    assert (await run_once(publisher, renewing.scenario, post)).state is PublicationState.NEEDS_ATTENTION
    await renew_credentials(renewing.jobs)
    assert (await renewing.stored()).attention is None
    assert (await run_once(publisher, renewing.scenario, post)).state is PublicationState.PUBLISHED


@pytest.fixture
async def pasted(scenario: PublishingScenario, publisher: PostPublisher, egress: Egress) -> AsyncIterator[Renewing]:
    """An Instagram account whose token a person has pasted a day ago."""
    await scenario.stores.mongo["accounts"].update_many({}, {"$unset": {"renew_at": ""}})
    async with due_account(Network.INSTAGRAM, scenario, publisher, egress, is_pasted=True) as pasted:
        verifier = AccountVerifier(quick_networks(scenario.stores, egress))
        pasted.jobs = replace(pasted.jobs, account_verifier=verifier)
        yield pasted


async def test_pasted_token_is_renewed_and_its_end_is_known(pasted: Renewing) -> None:
    assert pasted.account.credentials_expire_at is None
    assert await renew_credentials(pasted.jobs) == 1
    stored = await pasted.stored()
    assert await pasted.token() == pasted.twin.token != "token"
    assert stored.credentials_expire_at is not None
    assert stored.renews_credentials


async def test_pasted_token_that_is_not_renewed_stays_usable(pasted: Renewing) -> None:
    """The refusal says only that the token is not renewed. The verification then says that it is valid."""
    assert isinstance(pasted.twin, InstagramTwin)
    pasted.twin.are_tokens_young = True
    assert await renew_credentials(pasted.jobs) == 1
    assert await verify_credentials(pasted.jobs) == 1
    stored = await pasted.stored()
    assert (stored.attention, stored.renews_credentials) == (None, True)
    assert await renew_credentials(pasted.jobs) == 0
    assert await pasted.due_in_s() > 24 * 3600


async def test_pasted_token_that_was_revoked_needs_attention(pasted: Renewing) -> None:
    pasted.twin.token = "revoked"
    assert await renew_credentials(pasted.jobs) == 1
    assert (await pasted.stored()).attention is None
    assert await verify_credentials(pasted.jobs) == 1
    attention = (await pasted.stored()).attention
    assert attention is not None
    assert "INSTAGRAM refuses the credentials" in attention.reason
    assert await renew_credentials(pasted.jobs) == 0


async def test_refused_renewal_notifies_the_owner_once(renewing: Renewing) -> None:
    renewing.revoke()
    await renew_credentials(renewing.jobs)
    rows = await renewing.scenario.stores.mongo["outbox"].find({"ref.account": renewing.account.id}).to_list(None)
    notified = (
        await renewing.scenario.stores.mongo["notifications"].find({"account": renewing.account.id}).to_list(None)
    )
    kinds = [*(each["ref"]["kind"] for each in rows), *(each["kind"] for each in notified)]
    assert kinds == ["ACCOUNT_NEEDS_ATTENTION"]
