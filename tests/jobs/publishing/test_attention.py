"""Accounts whose credentials are refused: their publications wait, and are published with other credentials."""

import asyncio
from collections import Counter
from typing import Any

import pytest

from jobs.context import JobContext
from jobs.providers.egress import Egress
from jobs.providers.social.http import HttpClient
from jobs.providers.social.mastodon import Mastodon
from jobs.providers.social.network import CredentialsRefused, PublishedPost
from jobs.publishing.publisher import PostPublisher
from jobs.publishing.sweepers import resume_accounts
from storage.publishing.networks import Network
from storage.publishing.records import ConnectedAccount, MediaState, Publication, PublicationState, ScheduledPost
from storage.secrets.credentials import CredentialCipher
from tests.jobs.contexts import job_context
from tests.jobs.publishing.runs import connected_twin, quick_networks, run_once, run_uploads
from tests.storage.publishing.scenario import IMAGE, PublishingScenario, account_target
from tests.twins.bluesky import BlueskyTwin
from tests.twins.twin import NetworkTwin
from tests.waiting import poll_until_true

pytestmark = pytest.mark.anyio

S = PublicationState
NEW_SECRETS = {
    Network.MASTODON: "new",
    Network.INSTAGRAM: "1784:new",
    Network.BLUESKY: "ann.example:new",
    Network.X: "new",
}
ATTENTION, FAILED = "PUBLICATION_NEEDS_ATTENTION", "PUBLICATION_FAILED"


@pytest.fixture
def context(scenario: PublishingScenario, publisher: PostPublisher, egress: Egress) -> JobContext:
    return job_context(scenario.stores, egress, publisher=publisher)


def revoke(twin: NetworkTwin) -> None:
    """Lets the network accept the new secret only."""
    twin.token = "new"
    if isinstance(twin, BlueskyTwin):
        twin.app_password = "new"


def outcomes(publication: Publication) -> list[str]:
    return [each.outcome for each in publication.attempts]


async def notification_kinds(scenario: PublishingScenario) -> list[str]:
    rows = scenario.stores.mongo["notifications"].find({"_id.o": scenario.organization_id})
    return [each["kind"] async for each in rows]


async def stored_account(scenario: PublishingScenario, account: ConnectedAccount) -> ConnectedAccount:
    return await scenario.stores.accounts.get(scenario.organization_id, account.id)


async def hold_post(
    scenario: PublishingScenario, publisher: PostPublisher, account: ConnectedAccount, **more: Any
) -> ScheduledPost:
    """Schedules a post, and runs it until it waits for other credentials."""
    post = await scenario.schedule(account_target(account), in_s=-1, **more)
    held = await run_once(publisher, scenario, post)
    assert held.state is S.NEEDS_ATTENTION, held
    return post


@pytest.mark.parametrize("network", list(NEW_SECRETS))
async def test_refused_credentials_hold_post_until_replaced(
    scenario: PublishingScenario, publisher: PostPublisher, network: Network
) -> None:
    async with connected_twin(scenario, network) as (twin, account):
        revoke(twin)
        post = await hold_post(scenario, publisher, account, media=[IMAGE] if network is Network.INSTAGRAM else [])
        held = await scenario.publication(post)
        assert held.error is not None
        assert (held.error.code, held.progress, outcomes(held)) == ("UNAUTHORIZED", None, ["NEEDS_ATTENTION"])
        assert (await scenario.stored_document(held))["wake_at"] == held.late_at
        marked = (await stored_account(scenario, account)).attention
        assert marked is not None
        assert (marked.code, marked.reason) == ("UNAUTHORIZED", held.error.message)
        await scenario.replace_credentials(account, NEW_SECRETS[network])
        assert (await stored_account(scenario, account)).attention is None
        assert await scenario.stores.scheduled_posts.resume_account(account) == 1
        assert await scenario.stores.scheduled_posts.resume_account(account) == 0
        published = await run_once(publisher, scenario, post)
        assert (published.state, published.error, len(twin.ledger)) == (S.PUBLISHED, None, 1)
        assert await poll_until_true(lambda: notification_kinds(scenario)) == [ATTENTION]


async def test_marked_account_holds_posts_without_calls(scenario: PublishingScenario, publisher: PostPublisher) -> None:
    async with connected_twin(scenario, Network.MASTODON) as (twin, account):
        revoke(twin)
        first = await hold_post(scenario, publisher, account)
        requests = Counter(twin.request_counts)
        second = await hold_post(scenario, publisher, account)
        assert twin.request_counts == requests
        errors = [(await scenario.publication(post)).error for post in (first, second)]
        assert errors[0] == errors[1]


async def test_post_without_replacement_fails_at_max_lateness(
    scenario: PublishingScenario, publisher: PostPublisher
) -> None:
    async with connected_twin(scenario, Network.X) as (twin, account):
        revoke(twin)
        post = await hold_post(scenario, publisher, account, max_lateness_s=600)
        error = (await scenario.publication(post)).error
        await scenario.pass_time(590)
        assert (await run_once(publisher, scenario, post)).state is S.NEEDS_ATTENTION
        await scenario.pass_time(10)
        assert await scenario.stores.scheduled_posts.resume_account(account) == 0
        failed = await run_once(publisher, scenario, post)
        assert (failed.state, failed.error) == (S.FAILED, error)
        expected = [ATTENTION, FAILED]
        assert await poll_until_true(lambda: _all_notified(scenario, expected))
        late = await scenario.schedule(account_target(account), in_s=-1, max_lateness_s=600)
        await scenario.pass_time(600)
        assert (await run_once(publisher, scenario, late)).state is S.FAILED


async def _all_notified(scenario: PublishingScenario, expected: list[str]) -> bool:
    return sorted(await notification_kinds(scenario)) == sorted(expected)


async def test_undecryptable_credentials_hold_publication(
    scenario: PublishingScenario, publisher: PostPublisher
) -> None:
    account = await scenario.connect_account()
    sealed = CredentialCipher({"9": b"z" * 32}).seal("ok", account.id)
    await scenario.stores.mongo["accounts"].update_one({"_id": account.id}, {"$set": {"credentials": sealed}})
    post = await hold_post(scenario, publisher, account)
    error = (await scenario.publication(post)).error
    assert error is not None
    assert error.code == "CREDENTIALS_LOST"
    await scenario.replace_credentials(account, "ok")
    await scenario.stores.scheduled_posts.resume_account(account)
    assert (await run_once(publisher, scenario, post)).state is S.PUBLISHED


async def test_repeated_refusal_notifies_author_once(scenario: PublishingScenario, publisher: PostPublisher) -> None:
    async with connected_twin(scenario, Network.MASTODON) as (twin, account):
        revoke(twin)
        post = await hold_post(scenario, publisher, account)
        await scenario.replace_credentials(account, "another")
        await scenario.stores.scheduled_posts.resume_account(account)
        assert (await run_once(publisher, scenario, post)).state is S.NEEDS_ATTENTION
        assert outcomes(await scenario.publication(post)) == ["NEEDS_ATTENTION"] * 2
        assert await scenario.stores.scheduled_posts.resume_account(account) == 0
        await hold_post(scenario, publisher, account)
        assert await poll_until_true(lambda: _all_notified(scenario, [ATTENTION] * 2))


async def test_refused_upload_ahead_fails_nothing(scenario: PublishingScenario, publisher: PostPublisher) -> None:
    async with connected_twin(scenario, Network.INSTAGRAM) as (twin, account):
        revoke(twin)
        post = await scenario.schedule(account_target(account), in_s=300, media=[IMAGE])
        assert await run_uploads(publisher) == 1
        waiting = await scenario.publication(post)
        assert (waiting.state, waiting.media_state) == (S.SCHEDULED, MediaState.FAILED)
        assert (await stored_account(scenario, account)).attention is None
        await scenario.replace_credentials(account, NEW_SECRETS[Network.INSTAGRAM])
        await scenario.pass_time(301)
        assert (await run_once(publisher, scenario, post)).state is S.PUBLISHED


async def test_marked_account_gets_no_uploads(scenario: PublishingScenario, publisher: PostPublisher) -> None:
    async with connected_twin(scenario, Network.INSTAGRAM) as (twin, account):
        revoke(twin)
        await hold_post(scenario, publisher, account, media=[IMAGE])
        requests = Counter(twin.request_counts)
        await scenario.schedule(account_target(account), in_s=300, media=[IMAGE])
        assert await run_uploads(publisher) == 1
        assert twin.request_counts == requests


class RacingMastodon(Mastodon):
    """A client whose account gets other credentials after a refusal, before the refusal is stored."""

    def __init__(self, http: HttpClient, scenario: PublishingScenario, account: ConnectedAccount) -> None:
        super().__init__(http)
        self._scenario = scenario
        self._account = account

    async def publish(self, *arguments: Any) -> PublishedPost:
        try:
            return await super().publish(*arguments)
        except CredentialsRefused:
            await self._scenario.replace_credentials(self._account, "new")
            await self._scenario.stores.scheduled_posts.resume_account(self._account)
            raise


async def test_refusal_of_old_credentials_holds_nothing(scenario: PublishingScenario, egress: Egress) -> None:
    async with connected_twin(scenario, Network.MASTODON) as (twin, account):
        revoke(twin)
        racing = RacingMastodon(HttpClient(egress), scenario, account)
        networks = {**quick_networks(scenario.stores, egress), Network.MASTODON: racing}
        publisher = PostPublisher(scenario.stores, networks)
        post = await scenario.schedule(account_target(account), in_s=-1)
        again = await run_once(publisher, scenario, post)
        assert (again.state, (await stored_account(scenario, account)).attention) == (S.SCHEDULED, None)
        assert (await run_once(publisher, scenario, post)).state is S.PUBLISHED
        assert await notification_kinds(scenario) == []


async def test_retry_calls_network_and_others_follow(
    scenario: PublishingScenario, publisher: PostPublisher, context: JobContext
) -> None:
    async with connected_twin(scenario, Network.MASTODON) as (twin, account):
        old_token, twin.token = twin.token, "new"
        posts = [await hold_post(scenario, publisher, account) for _ in range(3)]
        assert await resume_accounts(context) == 0
        held = await scenario.publication(posts[0])
        await scenario.stores.scheduled_posts.retry(held)
        assert (await run_once(publisher, scenario, posts[0])).state is S.NEEDS_ATTENTION
        twin.token = old_token
        await scenario.stores.scheduled_posts.retry(await scenario.publication(posts[0]))
        assert await resume_accounts(context) == 2
        assert {(await run_once(publisher, scenario, post)).state for post in posts} == {S.PUBLISHED}
        assert len(twin.ledger) == 3


async def test_sweeper_fails_what_waits_for_disconnected_account(
    scenario: PublishingScenario, publisher: PostPublisher, context: JobContext
) -> None:
    async with connected_twin(scenario, Network.MASTODON) as (twin, account):
        revoke(twin)
        post = await hold_post(scenario, publisher, account)
        await scenario.stores.accounts.disconnect(account)
        assert (await stored_account(scenario, account)).attention is None
        assert await resume_accounts(context) == 1
        failed = await scenario.publication(post)
        assert failed.error is not None
        assert (failed.state, failed.error.code) == (S.FAILED, "FORBIDDEN")


async def test_replacement_beside_workers_publishes_each_post_once(
    scenario: PublishingScenario, egress: Egress, publisher: PostPublisher, context: JobContext
) -> None:
    """Four workers claim, while the credentials are replaced and three processes resume the account."""
    async with connected_twin(scenario, Network.MASTODON) as (twin, account):
        twin.token = "new"
        workers = [PostPublisher(scenario.stores, quick_networks(scenario.stores, egress)) for _ in range(4)]
        held = [await scenario.schedule(account_target(account), in_s=-1, text=f"held {n}") for n in range(20)]
        await run_once(publisher, scenario, held[0])
        due = [await scenario.schedule(account_target(account), in_s=-1, text=f"due {n}") for n in range(20)]

        async def replace() -> None:
            await scenario.replace_credentials(account, "new")
            await asyncio.gather(*(scenario.stores.scheduled_posts.resume_account(account) for _ in range(3)))

        await asyncio.gather(replace(), *(worker.sweep() for worker in workers))
        for _ in range(5):
            await asyncio.gather(*(worker.wait_until_idle() for worker in workers))
            await resume_accounts(context)
            await asyncio.gather(*(worker.sweep() for worker in workers))
        await asyncio.gather(*(worker.wait_until_idle() for worker in workers))
        states = {(await scenario.publication(post)).state for post in (*held, *due)}
        assert states == {S.PUBLISHED}
        assert Counter(post.text for post in twin.ledger) == Counter(post.text for post in (*held, *due))
        for worker in workers:
            await worker.close()
