"""A worker's publisher: what is due is held to the exact moment and published once, inside and outside."""

import asyncio
from datetime import timedelta

import pytest

from jobs.providers.egress import Egress
from jobs.providers.social.sandbox import Sandbox
from jobs.publishing.publisher import PostPublisher
from storage.identity.roles import Role
from storage.publishing.networks import Network
from storage.publishing.records import CallPhase, Publication, PublicationState, ScheduledPost
from storage.publishing.sandbox import SandboxStore
from storage.publishing.scheduling import ScheduledPostEdit
from storage.publishing.transitions import BeginAttempt
from tests.jobs.publishing.runs import TWINS, connected, quick_networks, settled, uploaded, worked
from tests.storage.places import soon
from tests.storage.publishing.scenario import IMAGE, PublishingScenario, account_target
from tests.twins.twin import Fault

pytestmark = pytest.mark.anyio

S = PublicationState


async def test_inside_it_is_published_at_the_moment(scenario: PublishingScenario, publisher: PostPublisher) -> None:
    due_at = await scenario.now() + timedelta(seconds=0.6)
    topic, home = [await scenario.schedule(each, due_at=due_at) for each in (scenario.topic, scenario.home)]
    assert await publisher.sweep() == 2
    await publisher.idle()
    for post in (topic, home):
        publication = await scenario.only(post)
        assert publication.state is S.PUBLISHED
        assert publication.published_at is not None
        assert publication.published_at >= due_at
        assert publication.lateness_ms is not None
        assert publication.lateness_ms < 5000, "no sweep or lease was waited for"
    (message,) = await scenario.messages()
    assert message["text"] == "hello"
    found = await scenario.stores.mongo["posts"].find({"_id.o": scenario.organization_id}).to_list(None)
    assert [row["text"] for row in found] == ["hello"]


async def test_mentions_are_those_of_the_due_moment(scenario: PublishingScenario, publisher: PostPublisher) -> None:
    post = await scenario.schedule(text="hi @bob", in_s=0.3)
    bob = await scenario.stores.users.sign_in(scenario.organization_id, "bob", [Role.MEMBER], None, None)
    await worked(publisher, scenario, post)
    assert [message["mentions"] for message in await scenario.messages()] == [[bob.id]]


@pytest.mark.parametrize("network", list(TWINS))
async def test_outside_it_starts_at_the_moment_and_is_there_once(
    scenario: PublishingScenario, publisher: PostPublisher, network: Network
) -> None:
    async with connected(scenario, network) as (twin, account):
        media = [] if network is not Network.INSTAGRAM else [IMAGE]
        due_at = await scenario.now() + timedelta(seconds=0.6)
        post = await scenario.schedule(account_target(account), due_at=due_at, media=media)
        publication = await worked(publisher, scenario, post)
        assert publication.state is S.PUBLISHED, publication
        assert publication.published_at is not None
        assert publication.published_at >= due_at
        (effect,) = twin.ledger
        assert effect.at >= due_at.timestamp()
        assert effect.id in str(publication.external_id)
        assert [each.outcome for each in publication.attempts] == ["PUBLISHED"]


async def test_a_hundred_triggers_publish_once(scenario: PublishingScenario, publisher: PostPublisher) -> None:
    async with connected(scenario, Network.X) as (twin, account):
        post = await scenario.schedule(scenario.topic, account_target(account), in_s=0.2)
        await asyncio.gather(*(publisher.sweep() for _ in range(100)))
        await publisher.idle()
        assert len(twin.ledger) == 1
        assert len(await scenario.messages()) == 1
        assert {each.state for each in await scenario.publications(post)} == {S.PUBLISHED}


async def test_triggers_that_come_together_share_a_look(scenario: PublishingScenario, publisher: PostPublisher) -> None:
    await scenario.schedule(in_s=-1)

    async def looks() -> int:
        (row,) = await scenario.stores.mongo.aggregate("publications", [{"$collStats": {"latencyStats": {}}}])
        return int(row["latencyStats"]["reads"]["ops"])

    before = await looks()
    assert sum(await asyncio.gather(*(publisher.sweep() for _ in range(100)))) == 100
    await publisher.idle()
    assert await looks() - before < 20
    await asyncio.gather(*(publisher.sweep() for _ in range(3)), publisher.close())


async def test_what_is_edited_while_it_is_held_is_published_as_edited(
    scenario: PublishingScenario, publisher: PostPublisher
) -> None:
    async with connected(scenario, Network.WEBHOOK) as (twin, account):
        post = await scenario.schedule(scenario.topic, account_target(account), in_s=3)
        await publisher.sweep()
        await scenario.stores.scheduled_posts.update(
            scenario.organization_id, post.id, ScheduledPostEdit(text="edited")
        )
        await publisher.sweep()
        await publisher.idle()
        assert [effect.text for effect in twin.ledger] == ["edited"]
        assert [message["text"] for message in await scenario.messages()] == ["edited"]


async def test_what_is_cancelled_while_it_is_held_is_not_published(
    scenario: PublishingScenario, publisher: PostPublisher
) -> None:
    async with connected(scenario, Network.X) as (twin, account):
        post = await scenario.schedule(scenario.topic, account_target(account), in_s=3)
        await publisher.sweep()
        await scenario.stores.scheduled_posts.cancel(scenario.organization_id, post.id)
        await publisher.idle()
        assert (twin.ledger, await scenario.messages()) == ([], [])
        assert {each.state for each in await scenario.publications(post)} == {S.CANCELLED}


async def forbidden(publisher: PostPublisher, scenario: PublishingScenario, publication: Publication) -> bool:
    error = publication.error
    return publication.state is S.FAILED and error is not None and error.code == "FORBIDDEN"


async def test_rights_are_those_of_the_due_moment(scenario: PublishingScenario, publisher: PostPublisher) -> None:
    account = await scenario.account()
    to_topic = await scenario.schedule(in_s=-1)
    await scenario.stores.communities.leave(scenario.place.community, "ann")
    assert await forbidden(publisher, scenario, await worked(publisher, scenario, to_topic))
    outside = await scenario.schedule(account_target(account), in_s=-1)
    await scenario.stores.users.sign_in(scenario.organization_id, "ann", [Role.MEMBER], None, None)
    assert await forbidden(publisher, scenario, await worked(publisher, scenario, outside))
    home = await scenario.schedule(scenario.home, in_s=-1)
    await scenario.stores.users.sign_in(scenario.organization_id, "ann", [Role.SERVICE], None, None)
    assert await forbidden(publisher, scenario, await worked(publisher, scenario, home))
    assert await scenario.messages() == []


async def test_a_disconnected_account_is_not_published_to(
    scenario: PublishingScenario, publisher: PostPublisher
) -> None:
    account = await scenario.account()
    waiting = await scenario.schedule(account_target(account), in_s=60)
    due = await scenario.schedule(account_target(account), in_s=-1)
    await scenario.stores.accounts.disconnect(account)
    assert await forbidden(publisher, scenario, await worked(publisher, scenario, due))
    assert await scenario.stores.scheduled_posts.fail_waiting(account) == 1
    assert await forbidden(publisher, scenario, await scenario.only(waiting))


async def test_after_an_outage_what_is_too_late_fails_and_the_rest_is_published(
    scenario: PublishingScenario, publisher: PostPublisher
) -> None:
    account = account_target(await scenario.account())
    late = [await scenario.schedule(each, max_lateness_s=60) for each in (scenario.topic, account)]
    in_time = [await scenario.schedule(each, max_lateness_s=3600) for each in (scenario.topic, account)]
    await scenario.pass_time(180)
    await publisher.sweep()
    await publisher.idle()
    for post in late:
        failed = await scenario.only(post)
        assert failed.error is not None
        assert (failed.state, failed.error.code) == (S.FAILED, "TOO_LATE")
    assert {(await scenario.only(post)).state for post in in_time} == {S.PUBLISHED}


async def test_closing_gives_back_what_is_held_and_finishes_what_has_begun(
    scenario: PublishingScenario, egress: Egress
) -> None:
    takes_a_while = {Network.SANDBOX: Sandbox(SandboxStore(scenario.stores.mongo), 3)}
    publisher = PostPublisher(scenario.stores, {**quick_networks(scenario.stores, egress), **takes_a_while})
    slow = await scenario.account(secret="slow")
    begun = await scenario.schedule(account_target(slow), in_s=-1)
    held = await scenario.schedule(in_s=4.5)
    await publisher.sweep()

    async def publishing() -> bool:
        return (await scenario.only(begun)).state is S.PUBLISHING

    assert await soon(publishing)
    await publisher.close()
    assert (await scenario.only(begun)).state is S.PUBLISHED
    assert (await scenario.claimed(held)).state is S.SCHEDULED


async def test_what_a_dead_worker_had_only_prepared_is_gone_on_with(
    scenario: PublishingScenario, publisher: PostPublisher
) -> None:
    post = await scenario.schedule(account_target(await scenario.account()), in_s=-1)
    claimed = await scenario.claimed(post)
    await scenario.stores.scheduled_posts.apply(BeginAttempt(claimed, CallPhase.PREPARING, "key"))
    await scenario.pass_time(10)
    assert (await worked(publisher, scenario, post)).state is S.PUBLISHED


async def test_one_network_that_hangs_does_not_hold_up_the_others(
    scenario: PublishingScenario, publisher: PostPublisher
) -> None:
    async with connected(scenario, Network.MASTODON) as (twin, account):
        twin.faults.extend([Fault.SILENT_BEFORE] * 10)
        stuck = [await scenario.schedule(account_target(account), in_s=-1) for _ in range(10)]
        await publisher.sweep()

        async def hang() -> bool:
            return not twin.faults

        assert await soon(hang)
        post = await scenario.schedule(in_s=-1)
        await publisher.sweep()

        async def published() -> bool:
            return (await scenario.only(post)).state is S.PUBLISHED

        assert await soon(published)
        assert {(await scenario.only(each)).state for each in stuck} == {S.PUBLISHING}
    await publisher.idle()


async def test_what_settles_itself_does(scenario: PublishingScenario, publisher: PostPublisher) -> None:
    post = await scenario.schedule(account_target(await scenario.account(secret="ok")), in_s=-1)
    claimed = await scenario.claimed(post)
    await scenario.stores.scheduled_posts.apply(BeginAttempt(claimed, CallPhase.CALLING, "key"))
    await scenario.pass_time(16)
    cut_off = await worked(publisher, scenario, post)
    assert cut_off.state is S.UNKNOWN
    assert (await settled(publisher, scenario, post)).state is S.PUBLISHED


async def seconds_until_published(scenario: PublishingScenario, publisher: PostPublisher, post: ScheduledPost) -> int:
    """How many seconds pass, with a sweep in each, until it is published by somebody else."""
    for second in range(60):
        if (await worked(publisher, scenario, post)).state is S.PUBLISHED:
            return second
        await scenario.pass_time(1)
    raise AssertionError(await scenario.only(post))


@pytest.mark.parametrize(
    ("network", "phase"),
    [
        (Network.WEBHOOK, None),
        (Network.INSTAGRAM, CallPhase.PREPARING),
        *((network, CallPhase.CALLING) for network in TWINS if network is not Network.X),
    ],
)
async def test_what_a_killed_worker_held_is_published_within_fifteen_seconds(
    scenario: PublishingScenario, publisher: PostPublisher, network: Network, phase: CallPhase | None
) -> None:
    """It is gone right at the due moment, or when it had stored how far it is, which is the most that it can leave."""
    async with connected(scenario, network) as (twin, account):
        media = [IMAGE] if network is Network.INSTAGRAM else []
        post = await scenario.schedule(account_target(account), in_s=0, media=media)
        await uploaded(publisher)
        held = await scenario.claimed(post)
        if phase is not None:
            key = quick_networks(scenario.stores, Egress())[network].new_key(held.id, held.due_at)
            await scenario.stores.scheduled_posts.apply(BeginAttempt(held, phase, key))
        assert await seconds_until_published(scenario, publisher, post) <= 14
        assert len(twin.ledger) == 1


async def test_inside_it_is_within_fifteen_seconds_too(scenario: PublishingScenario, publisher: PostPublisher) -> None:
    for target in (scenario.topic, scenario.home):
        post = await scenario.schedule(target, in_s=0)
        await scenario.claimed(post)
        assert await seconds_until_published(scenario, publisher, post) <= 14
