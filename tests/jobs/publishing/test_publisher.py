"""The publisher publishes each claimed publication once, at its due moment, to internal and external targets."""

import asyncio
from datetime import timedelta

import pytest

from jobs.providers.egress import Egress
from jobs.providers.social.sandbox import Sandbox
from jobs.publishing.publisher import PostPublisher
from storage.chat.roles import Moderator
from storage.identity.roles import Role
from storage.publishing.editing import ScheduledPostEdit
from storage.publishing.networks import Network
from storage.publishing.records import Publication, PublicationState, PublishingPhase, ScheduledPost
from storage.publishing.sandbox import SandboxStore
from storage.publishing.transitions import BeginAttempt
from tests.jobs.publishing.runs import TWINS, connected_twin, quick_networks, run_once, run_until_finished, run_uploads
from tests.storage.publishing.scenario import IMAGE, PublishingScenario, account_target
from tests.twins.twin import NetworkFault
from tests.waiting import poll_until_true

pytestmark = pytest.mark.anyio

S = PublicationState


async def test_internal_target_is_published_at_due_moment(
    scenario: PublishingScenario, publisher: PostPublisher
) -> None:
    due_at = await scenario.now() + timedelta(seconds=0.6)
    topic, home = [await scenario.schedule(each, due_at=due_at) for each in (scenario.topic, scenario.home)]
    assert await publisher.sweep() == 2
    await publisher.wait_until_idle()
    for post in (topic, home):
        publication = await scenario.publication(post)
        assert publication.state is S.PUBLISHED
        assert publication.published_at is not None
        assert publication.published_at >= due_at
        assert publication.lateness_ms is not None
        assert publication.lateness_ms < 5000, "The publication waited for a sweep, or for the end of a lease."
    (message,) = await scenario.messages()
    assert message["text"] == "hello"
    posts = await scenario.stores.mongo["posts"].find({"_id.o": scenario.organization_id}).to_list(None)
    assert [post["text"] for post in posts] == ["hello"]


async def test_mentions_resolve_at_due_moment(scenario: PublishingScenario, publisher: PostPublisher) -> None:
    post = await scenario.schedule(text="hi @bob", in_s=0.3)
    bob = await scenario.stores.users.sign_in(scenario.organization_id, "bob", [Role.MEMBER], None, None)
    await run_once(publisher, scenario, post)
    assert [message["mentions"] for message in await scenario.messages()] == [[bob.id]]


@pytest.mark.parametrize("network", list(TWINS))
async def test_external_target_is_published_once_at_due_moment(
    scenario: PublishingScenario, publisher: PostPublisher, network: Network
) -> None:
    async with connected_twin(scenario, network) as (twin, account):
        media = [] if network is not Network.INSTAGRAM else [IMAGE]
        due_at = await scenario.now() + timedelta(seconds=0.6)
        post = await scenario.schedule(account_target(account), due_at=due_at, media=media)
        publication = await run_once(publisher, scenario, post)
        assert publication.state is S.PUBLISHED, publication
        assert publication.published_at is not None
        assert publication.published_at >= due_at
        (published,) = twin.ledger
        assert published.at >= due_at.timestamp()
        assert published.id in str(publication.external_id)
        assert [each.outcome for each in publication.attempts] == ["PUBLISHED"]


async def test_hundred_sweeps_publish_once(scenario: PublishingScenario, publisher: PostPublisher) -> None:
    async with connected_twin(scenario, Network.X) as (twin, account):
        post = await scenario.schedule(scenario.topic, account_target(account), in_s=0.2)
        await asyncio.gather(*(publisher.sweep() for _ in range(100)))
        await publisher.wait_until_idle()
        assert len(twin.ledger) == 1
        assert len(await scenario.messages()) == 1
        assert {each.state for each in await scenario.publications(post)} == {S.PUBLISHED}


async def test_concurrent_sweeps_share_one_claim(scenario: PublishingScenario, publisher: PostPublisher) -> None:
    await scenario.schedule(in_s=-1)

    async def count_reads() -> int:
        (stats,) = await scenario.stores.mongo.aggregate("publications", [{"$collStats": {"latencyStats": {}}}])
        return int(stats["latencyStats"]["reads"]["ops"])

    reads_before = await count_reads()
    assert sum(await asyncio.gather(*(publisher.sweep() for _ in range(100)))) == 100
    await publisher.wait_until_idle()
    assert await count_reads() - reads_before < 20
    await asyncio.gather(*(publisher.sweep() for _ in range(3)), publisher.close())


async def test_edit_of_claimed_post_is_published(scenario: PublishingScenario, publisher: PostPublisher) -> None:
    async with connected_twin(scenario, Network.WEBHOOK) as (twin, account):
        post = await scenario.schedule(scenario.topic, account_target(account), in_s=3)
        await publisher.sweep()
        await scenario.stores.scheduled_posts.update(
            scenario.organization_id, post.id, ScheduledPostEdit(text="edited")
        )
        await publisher.sweep()
        await publisher.wait_until_idle()
        assert [entry.text for entry in twin.ledger] == ["edited"]
        assert [message["text"] for message in await scenario.messages()] == ["edited"]


async def test_cancelled_claimed_post_is_not_published(scenario: PublishingScenario, publisher: PostPublisher) -> None:
    async with connected_twin(scenario, Network.X) as (twin, account):
        post = await scenario.schedule(scenario.topic, account_target(account), in_s=3)
        await publisher.sweep()
        await scenario.stores.scheduled_posts.cancel(scenario.organization_id, post.id)
        await publisher.wait_until_idle()
        assert (twin.ledger, await scenario.messages()) == ([], [])
        assert {each.state for each in await scenario.publications(post)} == {S.CANCELLED}


def has_failed_as_forbidden(publication: Publication) -> bool:
    error = publication.error
    return publication.state is S.FAILED and error is not None and error.code == "FORBIDDEN"


async def test_rights_are_checked_at_due_moment(scenario: PublishingScenario, publisher: PostPublisher) -> None:
    account = await scenario.connect_account()
    to_topic = await scenario.schedule(in_s=-1)
    await scenario.topic_scenario.hand_over_and_leave()
    assert has_failed_as_forbidden(await run_once(publisher, scenario, to_topic))
    to_account = await scenario.schedule(account_target(account), in_s=-1)
    await scenario.end_roles(Role.OPERATOR)
    assert has_failed_as_forbidden(await run_once(publisher, scenario, to_account))
    to_home = await scenario.schedule(scenario.home, in_s=-1)
    await scenario.end_roles(Role.OPERATOR, Role.MEMBER)
    assert has_failed_as_forbidden(await run_once(publisher, scenario, to_home))
    assert await scenario.messages() == []


async def test_publication_to_archived_topic_fails(scenario: PublishingScenario, publisher: PostPublisher) -> None:
    post = await scenario.schedule(in_s=-1)
    await scenario.stores.topics.set_archived(scenario.topic_scenario.topic.id, True, Moderator("ann"))
    assert has_failed_as_forbidden(await run_once(publisher, scenario, post))
    assert await scenario.messages() == []


async def test_publication_to_disconnected_account_fails(
    scenario: PublishingScenario, publisher: PostPublisher
) -> None:
    account = await scenario.connect_account()
    waiting_post = await scenario.schedule(account_target(account), in_s=60)
    due = await scenario.schedule(account_target(account), in_s=-1)
    await scenario.stores.accounts.disconnect(account)
    assert has_failed_as_forbidden(await run_once(publisher, scenario, due))
    assert await scenario.stores.scheduled_posts.fail_scheduled(account) == 1
    assert has_failed_as_forbidden(await scenario.publication(waiting_post))


async def test_outage_fails_only_publications_past_deadline(
    scenario: PublishingScenario, publisher: PostPublisher
) -> None:
    account = account_target(await scenario.connect_account())
    late_posts = [await scenario.schedule(each, max_lateness_s=60) for each in (scenario.topic, account)]
    posts_in_time = [await scenario.schedule(each, max_lateness_s=3600) for each in (scenario.topic, account)]
    await scenario.pass_time(180)
    await publisher.sweep()
    await publisher.wait_until_idle()
    for post in late_posts:
        failed = await scenario.publication(post)
        assert failed.error is not None
        assert (failed.state, failed.error.code) == (S.FAILED, "TOO_LATE")
    assert {(await scenario.publication(post)).state for post in posts_in_time} == {S.PUBLISHED}


async def test_close_releases_waiting_and_finishes_started(scenario: PublishingScenario, egress: Egress) -> None:
    slow_network = {Network.SANDBOX: Sandbox(SandboxStore(scenario.stores.mongo), 3)}
    publisher = PostPublisher(scenario.stores, {**quick_networks(scenario.stores, egress), **slow_network})
    slow = await scenario.connect_account(secret="slow")
    started_post = await scenario.schedule(account_target(slow), in_s=-1)
    waiting_post = await scenario.schedule(in_s=4.5)
    await publisher.sweep()

    async def is_publishing() -> bool:
        return (await scenario.publication(started_post)).state is S.PUBLISHING

    assert await poll_until_true(is_publishing)
    await publisher.close()
    assert (await scenario.publication(started_post)).state is S.PUBLISHED
    assert (await scenario.claim(waiting_post)).state is S.SCHEDULED


async def test_preparation_of_dead_worker_is_continued(scenario: PublishingScenario, publisher: PostPublisher) -> None:
    post = await scenario.schedule(account_target(await scenario.connect_account()), in_s=-1)
    claimed = await scenario.claim(post)
    await scenario.stores.scheduled_posts.apply(BeginAttempt(claimed, PublishingPhase.PREPARING, "key"))
    await scenario.pass_time(10)
    assert (await run_once(publisher, scenario, post)).state is S.PUBLISHED


async def test_hanging_network_blocks_no_other_target(scenario: PublishingScenario, publisher: PostPublisher) -> None:
    async with connected_twin(scenario, Network.MASTODON) as (twin, account):
        twin.faults.extend([NetworkFault.SILENT_BEFORE] * 10)
        hanging_posts = [await scenario.schedule(account_target(account), in_s=-1) for _ in range(10)]
        await publisher.sweep()

        async def are_all_hanging() -> bool:
            return not twin.faults

        assert await poll_until_true(are_all_hanging)
        post = await scenario.schedule(in_s=-1)
        await publisher.sweep()

        async def is_published() -> bool:
            return (await scenario.publication(post)).state is S.PUBLISHED

        assert await poll_until_true(is_published)
        assert {(await scenario.publication(each)).state for each in hanging_posts} == {S.PUBLISHING}
    await publisher.wait_until_idle()


async def test_call_interrupted_by_crash_is_reconciled(scenario: PublishingScenario, publisher: PostPublisher) -> None:
    post = await scenario.schedule(account_target(await scenario.connect_account(secret="ok")), in_s=-1)
    claimed = await scenario.claim(post)
    await scenario.stores.scheduled_posts.apply(BeginAttempt(claimed, PublishingPhase.CALLING, "key"))
    await scenario.pass_time(16)
    unknown = await run_once(publisher, scenario, post)
    assert unknown.state is S.UNKNOWN
    assert (await run_until_finished(publisher, scenario, post)).state is S.PUBLISHED


async def seconds_until_published(scenario: PublishingScenario, publisher: PostPublisher, post: ScheduledPost) -> int:
    """Simulates seconds, each with a sweep. Returns how many pass until the post is published."""
    for second in range(60):
        if (await run_once(publisher, scenario, post)).state is S.PUBLISHED:
            return second
        await scenario.pass_time(1)
    raise AssertionError(await scenario.publication(post))


@pytest.mark.parametrize(
    ("network", "phase"),
    [
        (Network.WEBHOOK, None),
        (Network.INSTAGRAM, PublishingPhase.PREPARING),
        *((network, PublishingPhase.CALLING) for network in TWINS if network is not Network.X),
    ],
)
async def test_claim_of_killed_worker_is_published_within_15_s(
    scenario: PublishingScenario, publisher: PostPublisher, network: Network, phase: PublishingPhase | None
) -> None:
    """The worker dies after its claim, or, with `phase`, after it has stored this phase, whose lease is the longest."""
    async with connected_twin(scenario, network) as (twin, account):
        media = [IMAGE] if network is Network.INSTAGRAM else []
        post = await scenario.schedule(account_target(account), in_s=0, media=media)
        await run_uploads(publisher)
        claimed = await scenario.claim(post)
        if phase is not None:
            key = quick_networks(scenario.stores, Egress())[network].new_key(claimed.id, claimed.due_at)
            await scenario.stores.scheduled_posts.apply(BeginAttempt(claimed, phase, key))
        assert await seconds_until_published(scenario, publisher, post) <= 14
        assert len(twin.ledger) == 1


async def test_internal_claim_of_killed_worker_takes_at_most_15_s(
    scenario: PublishingScenario, publisher: PostPublisher
) -> None:
    for target in (scenario.topic, scenario.home):
        post = await scenario.schedule(target, in_s=0)
        await scenario.claim(post)
        assert await seconds_until_published(scenario, publisher, post) <= 14
