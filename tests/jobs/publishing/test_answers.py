"""Answers of people about unknown outcomes, with the networks: what is published again, and never twice."""

import asyncio

import pytest

from jobs.publishing.publisher import PostPublisher
from storage.errors import Conflict
from storage.publishing.networks import Network
from storage.publishing.records import Publication, PublicationState, ScheduledPost
from storage.publishing.resolution import PersonalAnswer
from storage.publishing.transitions import MANUAL, BeginReconciliation, MarkUnknown, ReconciliationPolicy
from tests.jobs.publishing.runs import connected_twin, run_once, run_until_finished
from tests.jobs.publishing.test_attached_media import HILL, attach
from tests.jobs.publishing.test_external import notification_kinds, outcomes
from tests.storage.publishing.scenario import IMAGE, PublishingScenario, account_target
from tests.twins.twin import NetworkFault
from tests.waiting import poll_until_true

pytestmark = pytest.mark.anyio

S = PublicationState
AGAIN = PersonalAnswer(is_published=False, publishes_again=True)
IS_THERE = PersonalAnswer(is_published=True)
UPLOAD = "POST /2/media/upload/initialize"
CALL = "POST /2/tweets"


async def leave_to_person(scenario: PublishingScenario, post: ScheduledPost) -> Publication:
    """Ends the reconciliation of an unknown outcome, as refused credentials do."""
    claimed = await claim_unknown(scenario, post)
    return await scenario.stores.scheduled_posts.apply(MarkUnknown(claimed, "refused", MANUAL))


async def claim_unknown(scenario: PublishingScenario, post: ScheduledPost) -> Publication:
    await scenario.pass_time(16)
    claimed = await scenario.claim(post)
    assert claimed.state is S.UNKNOWN
    return claimed


async def test_post_to_x_is_published_again_after_lateness(
    scenario: PublishingScenario, publisher: PostPublisher
) -> None:
    async with connected_twin(scenario, Network.X) as (twin, account):
        twin.faults.append(NetworkFault.CUT_BEFORE)
        files = await attach(scenario, HILL)
        post = await scenario.schedule(account_target(account), in_s=-1, max_lateness_s=60, attachments=files)
        lost = await run_once(publisher, scenario, post)
        assert (lost.state, twin.ledger, twin.request_counts[UPLOAD]) == (S.UNKNOWN, [], 1)
        await scenario.pass_time(3600)
        await scenario.stores.scheduled_posts.resolve(lost, AGAIN)
        published = await run_once(publisher, scenario, post)
        assert (published.state, outcomes(published)) == (S.PUBLISHED, ["UNKNOWN", "NO_EFFECT", "PUBLISHED"])
        assert (len(twin.ledger), twin.request_counts[CALL], twin.request_counts[UPLOAD]) == (1, 2, 2)
        assert published.lateness_ms is not None
        assert published.lateness_ms > 3_600_000, "Lateness counts from the due moment of the post."


async def test_each_unknown_outcome_is_notified_once(scenario: PublishingScenario, publisher: PostPublisher) -> None:
    async with connected_twin(scenario, Network.X) as (twin, account):
        twin.faults.extend([NetworkFault.CUT_BEFORE] * 2)
        post = await scenario.schedule(account_target(account), in_s=-1)
        lost = await run_once(publisher, scenario, post)
        await scenario.stores.scheduled_posts.resolve(lost, AGAIN)
        assert (await run_once(publisher, scenario, post)).state is S.UNKNOWN
        await poll_until_true(lambda: has_notifications(scenario, 2))
        await scenario.pass_time(3600)
        assert (await run_once(publisher, scenario, post)).state is S.UNKNOWN
        assert await notification_kinds(scenario) == ["PUBLICATION_UNKNOWN"] * 2


async def has_notifications(scenario: PublishingScenario, count: int) -> bool:
    return len(await notification_kinds(scenario)) == count


@pytest.mark.parametrize("network", [Network.MASTODON, Network.BLUESKY])
async def test_key_prevents_second_post_after_wrong_answer(
    scenario: PublishingScenario, publisher: PostPublisher, network: Network
) -> None:
    """The post is there, but the person has not found it."""
    async with connected_twin(scenario, network) as (twin, account):
        twin.faults.append(NetworkFault.CUT_AFTER)
        post = await scenario.schedule(account_target(account), in_s=-1)
        await run_once(publisher, scenario, post)
        lost = await leave_to_person(scenario, post)
        await scenario.stores.scheduled_posts.resolve(lost, AGAIN)
        published = await run_once(publisher, scenario, post)
        assert (published.state, len(twin.ledger)) == (S.PUBLISHED, 1)
        assert published.due_at == lost.due_at


async def test_container_is_created_anew(scenario: PublishingScenario, publisher: PostPublisher) -> None:
    async with connected_twin(scenario, Network.INSTAGRAM) as (twin, account):
        twin.faults.append(NetworkFault.CUT_BEFORE)
        post = await scenario.schedule(account_target(account), in_s=-1, media=[IMAGE])
        await run_once(publisher, scenario, post)
        lost = await leave_to_person(scenario, post)
        await scenario.stores.scheduled_posts.resolve(lost, AGAIN)
        assert (await run_until_finished(publisher, scenario, post)).state is S.PUBLISHED
        assert len(twin.ledger) == 1


async def test_answer_during_reconciliation_does_not_publish_twice(
    scenario: PublishingScenario, publisher: PostPublisher
) -> None:
    """A container is no protection here: publishing again creates another one. So the answer is refused meanwhile."""
    async with connected_twin(scenario, Network.INSTAGRAM) as (twin, account):
        twin.faults.append(NetworkFault.CUT_BEFORE)
        post = await scenario.schedule(account_target(account), in_s=-1, media=[IMAGE])
        lost = await run_once(publisher, scenario, post)
        store = scenario.stores.scheduled_posts
        await scenario.pass_time(16)
        sweep = asyncio.create_task(run_once(publisher, scenario, post))
        answers = [asyncio.create_task(store.resolve(lost, AGAIN)) for _ in range(10)]
        results = await asyncio.gather(sweep, *answers, return_exceptions=True)
        accepted = [each for each in results[1:] if not isinstance(each, Conflict)]
        assert len(accepted) <= 1, results
        assert (await run_until_finished(publisher, scenario, post)).state is S.PUBLISHED
        assert len(twin.ledger) == 1


@pytest.mark.parametrize("has_begun", [False, True])
async def test_claimed_publication_is_not_published_again(
    scenario: PublishingScenario, publisher: PostPublisher, has_begun: bool
) -> None:
    async with connected_twin(scenario, Network.MASTODON) as (twin, account):
        twin.faults.append(NetworkFault.CUT_AFTER)
        post, store = await scenario.schedule(account_target(account), in_s=-1), scenario.stores.scheduled_posts
        await run_once(publisher, scenario, post)
        claimed = await claim_unknown(scenario, post)
        if has_begun:
            await store.apply(BeginReconciliation(claimed, ReconciliationPolicy(5)))
        with pytest.raises(Conflict, match="asked at this moment"):
            await store.resolve(claimed, AGAIN)
        assert (await store.resolve(claimed, IS_THERE)).state is S.PUBLISHED
