"""Calls to networks that fail, hang or lose their answer: the post is published at most once."""

from collections.abc import Sequence

import pytest

from jobs.providers.egress import Egress
from jobs.providers.social.registry import all_networks
from jobs.publishing.external import RETRY_S
from jobs.publishing.publisher import PostPublisher
from storage.publishing.networks import Network
from storage.publishing.records import NOT_VERIFIED, Publication, PublicationState, PublishingPhase
from storage.publishing.sandbox import SandboxStore
from storage.publishing.transitions import BeginAttempt
from tests.jobs.publishing.runs import TWINS, connected_twin, quick_networks, run_once, run_until_finished, run_uploads
from tests.storage.publishing.scenario import IMAGE, PublishingScenario, account_target
from tests.twins.instagram import InstagramTwin
from tests.twins.mastodon import MastodonTwin
from tests.twins.twin import NetworkFault
from tests.twins.webhook import WebhookTwin
from tests.waiting import poll_until_true

pytestmark = pytest.mark.anyio

S = PublicationState
RECONCILABLE = [network for network in TWINS if network is not Network.X]
FAULTS_AFTER_EFFECT = [NetworkFault.FAIL_AFTER, NetworkFault.CUT_AFTER]
FAULTS_BEFORE_EFFECT = [NetworkFault.FAIL_BEFORE, NetworkFault.CUT_BEFORE]


def media_for(network: Network) -> Sequence[object]:
    return [IMAGE] if network is Network.INSTAGRAM else []


def outcomes(publication: Publication) -> list[str]:
    return [each.outcome for each in publication.attempts]


async def notification_kinds(scenario: PublishingScenario) -> list[str]:
    notifications = scenario.stores.mongo["notifications"].find({"_id.o": scenario.organization_id})
    return [each["kind"] async for each in notifications]


@pytest.mark.parametrize("fault", [*FAULTS_AFTER_EFFECT, *FAULTS_BEFORE_EFFECT])
@pytest.mark.parametrize("network", RECONCILABLE)
async def test_lost_answer_is_reconciled(
    scenario: PublishingScenario, publisher: PostPublisher, network: Network, fault: NetworkFault
) -> None:
    async with connected_twin(scenario, network) as (twin, account):
        twin.faults.append(fault)
        post = await scenario.schedule(account_target(account), in_s=-1, media=media_for(network))
        unknown = await run_once(publisher, scenario, post)
        assert unknown.state is S.UNKNOWN
        finished = await run_until_finished(publisher, scenario, post)
        assert finished.state is S.PUBLISHED, finished
        assert finished.published_at is not None
        assert outcomes(finished) == ["UNKNOWN", "PUBLISHED"]
        assert len(twin.ledger) == 1
        assert await notification_kinds(scenario) == []


async def test_unanswered_call_times_out_and_is_reconciled(
    scenario: PublishingScenario, publisher: PostPublisher, egress: Egress
) -> None:
    short_timeout_publisher = PostPublisher(scenario.stores, quick_networks(scenario.stores, egress, call_timeout_s=2))
    async with connected_twin(scenario, Network.WEBHOOK) as (twin, account):
        twin.faults.append(NetworkFault.SILENT_AFTER)
        post = await scenario.schedule(account_target(account), in_s=-1)
        assert (await run_once(short_timeout_publisher, scenario, post)).state is S.UNKNOWN
        assert (await run_until_finished(publisher, scenario, post)).state is S.PUBLISHED
        assert len(twin.ledger) == 1


@pytest.mark.parametrize(
    ("network", "acts_last"),
    [*((network, False) for network in RECONCILABLE), (Network.INSTAGRAM, True), (Network.WEBHOOK, True)],
)
async def test_late_effect_is_published_once_and_never_failed(
    scenario: PublishingScenario, publisher: PostPublisher, network: Network, acts_last: bool
) -> None:
    """The network acts late on the first call: just before the repeated call.

    With `acts_last`, it acts only after the publication is finished.
    """
    async with connected_twin(scenario, network) as (twin, account):
        twin.faults.append(NetworkFault.LATE)
        twin.acts_late_only_on_request = acts_last
        post = await scenario.schedule(account_target(account), in_s=-1, media=media_for(network))
        assert (await run_once(publisher, scenario, post)).state is S.UNKNOWN
        finished = await run_until_finished(publisher, scenario, post)
        await twin.act_late()
        assert finished.state is S.PUBLISHED, finished
        assert len(twin.ledger) == 1
        assert await notification_kinds(scenario) == []


async def test_late_effect_on_x_waits_for_person(scenario: PublishingScenario, publisher: PostPublisher) -> None:
    async with connected_twin(scenario, Network.X) as (twin, account):
        twin.faults.append(NetworkFault.LATE)
        post = await scenario.schedule(account_target(account), in_s=-1)
        assert (await run_until_finished(publisher, scenario, post)).state is S.UNKNOWN
        await twin.act_late()
        await scenario.pass_time(3600)
        assert (await run_until_finished(publisher, scenario, post)).state is S.UNKNOWN
        assert len(twin.ledger) == 1


@pytest.mark.parametrize("fault", [NetworkFault.FAIL_BEFORE, NetworkFault.FAIL_AFTER, NetworkFault.LATE])
@pytest.mark.parametrize("network", [Network.MASTODON, Network.INSTAGRAM])
async def test_published_at_is_start_of_last_call_that_may_publish(
    scenario: PublishingScenario, publisher: PostPublisher, network: Network, fault: NetworkFault
) -> None:
    async with connected_twin(scenario, network) as (twin, account):
        twin.faults.append(fault)
        post = await scenario.schedule(account_target(account), in_s=0, media=media_for(network))
        first = await run_once(publisher, scenario, post)
        assert first.progress is not None
        await scenario.pass_time(40)
        finished = await run_until_finished(publisher, scenario, post)
        assert finished.state is S.PUBLISHED
        assert finished.lateness_ms is not None
        is_looked_up = network is Network.INSTAGRAM and fault is NetworkFault.FAIL_AFTER
        assert (finished.lateness_ms < 40_000) == is_looked_up, finished


async def test_author_is_notified_once_of_unknown_past_deadline(
    scenario: PublishingScenario, publisher: PostPublisher
) -> None:
    async with connected_twin(scenario, Network.BLUESKY) as (twin, account):
        twin.faults.extend([NetworkFault.FAIL_AFTER] * 12)
        post = await scenario.schedule(account_target(account), in_s=-1, max_lateness_s=200)
        for _ in range(11):
            await run_once(publisher, scenario, post)
            await scenario.pass_time(16)
        assert await notification_kinds(scenario) == []
        for _ in range(20):
            await scenario.pass_time(16)
            await run_once(publisher, scenario, post)
        assert await poll_until_true(lambda: notification_kinds(scenario)) == ["PUBLICATION_UNKNOWN"]
        twin.faults.clear()
        await scenario.pass_time(1800)
        assert (await run_until_finished(publisher, scenario, post)).state is S.PUBLISHED
        assert await notification_kinds(scenario) == ["PUBLICATION_UNKNOWN"]


@pytest.mark.parametrize("fault", [*FAULTS_AFTER_EFFECT, *FAULTS_BEFORE_EFFECT])
async def test_lost_answer_of_x_waits_for_person(
    scenario: PublishingScenario, publisher: PostPublisher, fault: NetworkFault
) -> None:
    async with connected_twin(scenario, Network.X) as (twin, account):
        twin.faults.append(fault)
        post = await scenario.schedule(account_target(account), in_s=-1)
        assert (await run_until_finished(publisher, scenario, post)).state is S.UNKNOWN
        assert len(twin.ledger) == (fault in FAULTS_AFTER_EFFECT)
        assert await poll_until_true(lambda: notification_kinds(scenario)) == ["PUBLICATION_UNKNOWN"]
        await scenario.pass_time(3600)
        assert (await run_once(publisher, scenario, post)).state is S.UNKNOWN
        assert twin.request_counts["POST /2/tweets"] == 1


@pytest.mark.parametrize("network", list(TWINS))
async def test_call_of_dead_worker_is_unknown_then_reconciled(
    scenario: PublishingScenario, publisher: PostPublisher, network: Network
) -> None:
    async with connected_twin(scenario, network) as (twin, account):
        post = await scenario.schedule(account_target(account), in_s=-1)
        claimed = await scenario.claim(post)
        key = quick_networks(scenario.stores, Egress())[network].new_key(claimed.id, claimed.due_at)
        await scenario.stores.scheduled_posts.apply(BeginAttempt(claimed, PublishingPhase.CALLING, key))
        await scenario.pass_time(16)
        unknown = await run_once(publisher, scenario, post)
        assert (unknown.state, twin.ledger) == (S.UNKNOWN, [])
        finished = await run_until_finished(publisher, scenario, post)
        expected = {Network.X: S.UNKNOWN, Network.INSTAGRAM: S.FAILED}.get(network, S.PUBLISHED)
        assert finished.state is expected, finished
        assert len(twin.ledger) == (expected is S.PUBLISHED)


async def test_key_past_retention_is_not_sent_again(scenario: PublishingScenario, publisher: PostPublisher) -> None:
    async with connected_twin(scenario, Network.MASTODON) as (twin, account):
        assert isinstance(twin, MastodonTwin)
        twin.faults.append(NetworkFault.CUT_AFTER)
        post = await scenario.schedule(account_target(account), in_s=-1)
        await run_once(publisher, scenario, post)
        twin.retention_s = 0
        await scenario.pass_time(3600)
        unresolved = await run_once(publisher, scenario, post)
        assert unresolved.state is S.UNKNOWN
        assert "wake_at" not in await scenario.stored_document(unresolved)
        assert len(twin.ledger) == 1
        assert await poll_until_true(lambda: notification_kinds(scenario)) == ["PUBLICATION_UNKNOWN"]


async def test_repeated_unknown_outcome_is_reconciled_in_the_end(
    scenario: PublishingScenario, publisher: PostPublisher
) -> None:
    async with connected_twin(scenario, Network.WEBHOOK) as (twin, account):
        twin.faults.extend([NetworkFault.FAIL_AFTER] * 4)
        post = await scenario.schedule(account_target(account), in_s=-1)
        assert (await run_until_finished(publisher, scenario, post)).state is S.PUBLISHED
        assert len(twin.ledger) == 1
        assert outcomes(await scenario.publication(post)) == ["UNKNOWN"] * 4 + ["PUBLISHED"]


async def test_revoked_token_leaves_unknown_to_person(scenario: PublishingScenario, publisher: PostPublisher) -> None:
    async with connected_twin(scenario, Network.MASTODON) as (twin, account):
        twin.faults.append(NetworkFault.CUT_AFTER)
        post = await scenario.schedule(account_target(account), in_s=-1)
        await run_once(publisher, scenario, post)
        twin.token = "another"
        unresolved = await run_until_finished(publisher, scenario, post)
        assert unresolved.state is S.UNKNOWN
        assert "wake_at" not in await scenario.stored_document(unresolved)


async def test_waiting_posts_go_on_with_new_credentials(scenario: PublishingScenario, publisher: PostPublisher) -> None:
    """The network refuses the old ones. One post was scheduled before, and the outcome of another is unknown."""
    async with connected_twin(scenario, Network.MASTODON) as (twin, account):
        waiting = await scenario.schedule(account_target(account), text="waiting", in_s=60)
        twin.faults.append(NetworkFault.CUT_AFTER)
        unknown = await scenario.schedule(account_target(account), text="unknown", in_s=-1)
        assert (await run_once(publisher, scenario, unknown)).state is S.UNKNOWN
        twin.token = "new"
        await scenario.stores.accounts.replace_credentials(account, "new", NOT_VERIFIED, None)
        await scenario.pass_time(61)
        for post in (waiting, unknown):
            assert (await run_until_finished(publisher, scenario, post)).state is S.PUBLISHED
        assert outcomes(await scenario.publication(waiting)) == ["PUBLISHED"]
        assert [post.text for post in twin.ledger] == ["unknown", "waiting"]


async def test_disconnected_account_leaves_unknown_to_person(
    scenario: PublishingScenario, publisher: PostPublisher
) -> None:
    async with connected_twin(scenario, Network.WEBHOOK) as (twin, account):
        twin.faults.append(NetworkFault.FAIL_AFTER)
        post = await scenario.schedule(account_target(account), in_s=-1)
        await run_once(publisher, scenario, post)
        await scenario.stores.accounts.disconnect(account)
        unresolved = await run_until_finished(publisher, scenario, post)
        assert unresolved.state is S.UNKNOWN
        assert "wake_at" not in await scenario.stored_document(unresolved)


async def test_refused_connection_is_tried_five_times(scenario: PublishingScenario, publisher: PostPublisher) -> None:
    account = await scenario.connect_account(Network.WEBHOOK, WebhookTwin.secret, "http://127.0.0.1:1/hook")
    post = await scenario.schedule(account_target(account), in_s=-1)
    first = await run_once(publisher, scenario, post)
    assert (first.state, outcomes(first)) == (S.PUBLISHING, ["NO_EFFECT"])
    document = await scenario.stored_document(first)
    pause = document["wake_at"] - document["progress"]["at"]
    assert 0.8 * RETRY_S[0] <= pause.total_seconds() <= 1.2 * RETRY_S[0]
    finished = await run_until_finished(publisher, scenario, post)
    assert finished.error is not None
    assert (finished.state, finished.error.code) == (S.FAILED, "UNREACHABLE")
    assert outcomes(finished) == ["NO_EFFECT"] * 4 + ["FAILED"]


async def test_busy_network_is_retried_after_its_delay(scenario: PublishingScenario, publisher: PostPublisher) -> None:
    async with connected_twin(scenario, Network.MASTODON) as (twin, account):
        twin.faults.append(NetworkFault.BUSY)
        twin.busy_headers = {"Retry-After": "10"}
        post = await scenario.schedule(account_target(account), in_s=-1)
        await run_once(publisher, scenario, post)
        await scenario.pass_time(8)
        assert (await run_once(publisher, scenario, post)).state is S.PUBLISHING
        await scenario.pass_time(3)
        assert (await run_once(publisher, scenario, post)).state is S.PUBLISHED
        assert len(twin.ledger) == 1


async def test_refusal_is_final_and_notified(scenario: PublishingScenario, publisher: PostPublisher) -> None:
    async with connected_twin(scenario, Network.WEBHOOK) as (twin, account):
        assert isinstance(twin, WebhookTwin)
        twin.refusal_status = 410
        post = await scenario.schedule(account_target(account), in_s=-1)
        failed = await run_until_finished(publisher, scenario, post)
        assert failed.error is not None
        assert (failed.state, failed.error.code) == (S.FAILED, "REFUSED")
        assert "410" in failed.error.message
        twin.refusal_status = None
        await scenario.pass_time(600)
        assert (await run_once(publisher, scenario, post)).state is S.FAILED
        assert twin.ledger == []
        assert await poll_until_true(lambda: notification_kinds(scenario)) == ["PUBLICATION_FAILED"]


async def test_expired_container_is_uploaded_again(scenario: PublishingScenario, publisher: PostPublisher) -> None:
    async with connected_twin(scenario, Network.INSTAGRAM) as (twin, account):
        assert isinstance(twin, InstagramTwin)
        post = await scenario.schedule(account_target(account), in_s=30, media=[IMAGE])
        await run_uploads(publisher)
        (container,) = twin.containers.values()
        container["status"] = "EXPIRED"
        await scenario.pass_time(31)
        assert (await run_until_finished(publisher, scenario, post)).state is S.PUBLISHED
        assert len(twin.containers) == 2
        assert len(twin.ledger) == 1


async def test_private_address_of_account_is_refused(scenario: PublishingScenario) -> None:
    egress = Egress()
    publisher = PostPublisher(scenario.stores, quick_networks(scenario.stores, egress))
    account = await scenario.connect_account(Network.WEBHOOK, "secret", "http://127.0.0.1:9/hook")
    failed = await run_once(publisher, scenario, await scenario.schedule(account_target(account), in_s=-1))
    await egress.aclose()
    assert failed.error is not None
    assert (failed.state, failed.error.code) == (S.FAILED, "BAD_ADDRESS")


@pytest.mark.parametrize(
    ("credentials", "state"), [("ok", S.PUBLISHED), ("fail", S.FAILED), ("lose", S.UNKNOWN), ("slow", S.PUBLISHED)]
)
async def test_sandbox_produces_each_outcome(
    scenario: PublishingScenario, publisher: PostPublisher, credentials: str, state: PublicationState
) -> None:
    account = await scenario.connect_account(secret=credentials)
    post = await scenario.schedule(account_target(account), in_s=-1)
    assert (await run_until_finished(publisher, scenario, post)).state is state


async def test_every_network_has_class_and_twin(scenario: PublishingScenario, egress: Egress) -> None:
    classes = all_networks(egress, SandboxStore(scenario.stores.mongo)).keys()
    assert classes == TWINS.keys() | {Network.SANDBOX} == set(Network)
