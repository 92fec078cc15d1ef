"""A worker's desk: what is due is held to the exact moment and published once, inside and outside."""

import asyncio
from datetime import timedelta

import pytest

from jobs.providers.egress import Egress
from jobs.providers.social.sandbox import Sandbox
from jobs.publishing.desk import Desk
from storage.identity.records import Role
from storage.publishing.networks import Network
from storage.publishing.progress import Begin
from storage.publishing.records import Phase, Publication, PublicationState, ScheduledPost
from storage.publishing.sandbox import SandboxStore
from storage.publishing.scheduling import PostEdit
from tests.jobs.publishing.desks import TWINS, connected, quick_networks, settled, uploaded, worked
from tests.storage.places import soon
from tests.storage.publishing.newsroom import IMAGE, Newsroom, account_target
from tests.twins.twin import Fault

pytestmark = pytest.mark.anyio

S = PublicationState


async def test_inside_it_is_published_at_the_moment(newsroom: Newsroom, desk: Desk) -> None:
    due_at = await newsroom.now() + timedelta(seconds=0.6)
    topic, home = [await newsroom.schedule(each, due_at=due_at) for each in (newsroom.topic, newsroom.home)]
    assert await desk.sweep() == 2
    await desk.idle()
    for post in (topic, home):
        publication = await newsroom.only(post)
        assert publication.state is S.PUBLISHED
        assert publication.published_at is not None
        assert publication.published_at >= due_at
        assert publication.lateness_ms is not None
        assert publication.lateness_ms < 5000, "no sweep or lease was waited for"
    (message,) = await newsroom.messages()
    assert message["text"] == "hello"
    found = await newsroom.stores.mongo["posts"].find({"_id.o": newsroom.organization_id}).to_list(None)
    assert [row["text"] for row in found] == ["hello"]


async def test_mentions_are_those_of_the_due_moment(newsroom: Newsroom, desk: Desk) -> None:
    post = await newsroom.schedule(text="hi @bob", in_s=0.3)
    bob = await newsroom.stores.users.sign_in(newsroom.organization_id, "bob", [Role.MEMBER], None, None)
    await worked(desk, newsroom, post)
    assert [message["mentions"] for message in await newsroom.messages()] == [[bob.id]]


@pytest.mark.parametrize("network", list(TWINS))
async def test_outside_it_starts_at_the_moment_and_is_there_once(
    newsroom: Newsroom, desk: Desk, network: Network
) -> None:
    async with connected(newsroom, network) as (twin, account):
        media = [] if network is not Network.INSTAGRAM else [IMAGE]
        due_at = await newsroom.now() + timedelta(seconds=0.6)
        post = await newsroom.schedule(account_target(account), due_at=due_at, media=media)
        publication = await worked(desk, newsroom, post)
        assert publication.state is S.PUBLISHED, publication
        assert publication.published_at is not None
        assert publication.published_at >= due_at
        (effect,) = twin.ledger
        assert effect.at >= due_at.timestamp()
        assert effect.id in str(publication.external_id)
        assert [each.outcome for each in publication.attempts] == ["PUBLISHED"]


async def test_a_hundred_triggers_publish_once(newsroom: Newsroom, desk: Desk) -> None:
    async with connected(newsroom, Network.X) as (twin, account):
        post = await newsroom.schedule(newsroom.topic, account_target(account), in_s=0.2)
        await asyncio.gather(*(desk.sweep() for _ in range(100)))
        await desk.idle()
        assert len(twin.ledger) == 1
        assert len(await newsroom.messages()) == 1
        assert {each.state for each in await newsroom.publications(post)} == {S.PUBLISHED}


async def test_triggers_that_come_together_share_a_look(newsroom: Newsroom, desk: Desk) -> None:
    await newsroom.schedule(in_s=-1)

    async def looks() -> int:
        (row,) = await newsroom.stores.mongo.aggregate("publications", [{"$collStats": {"latencyStats": {}}}])
        return int(row["latencyStats"]["reads"]["ops"])

    before = await looks()
    assert sum(await asyncio.gather(*(desk.sweep() for _ in range(100)))) == 100
    await desk.idle()
    assert await looks() - before < 20
    await asyncio.gather(*(desk.sweep() for _ in range(3)), desk.close())


async def test_what_is_edited_while_it_is_held_is_published_as_edited(newsroom: Newsroom, desk: Desk) -> None:
    async with connected(newsroom, Network.WEBHOOK) as (twin, account):
        post = await newsroom.schedule(newsroom.topic, account_target(account), in_s=3)
        await desk.sweep()
        await newsroom.stores.scheduled_posts.update(newsroom.organization_id, post.id, PostEdit(text="edited"))
        await desk.sweep()
        await desk.idle()
        assert [effect.text for effect in twin.ledger] == ["edited"]
        assert [message["text"] for message in await newsroom.messages()] == ["edited"]


async def test_what_is_cancelled_while_it_is_held_is_not_published(newsroom: Newsroom, desk: Desk) -> None:
    async with connected(newsroom, Network.X) as (twin, account):
        post = await newsroom.schedule(newsroom.topic, account_target(account), in_s=3)
        await desk.sweep()
        await newsroom.stores.scheduled_posts.cancel(newsroom.organization_id, post.id)
        await desk.idle()
        assert (twin.ledger, await newsroom.messages()) == ([], [])
        assert {each.state for each in await newsroom.publications(post)} == {S.CANCELLED}


async def forbidden(desk: Desk, newsroom: Newsroom, publication: Publication) -> bool:
    error = publication.error
    return publication.state is S.FAILED and error is not None and error.code == "FORBIDDEN"


async def test_rights_are_those_of_the_due_moment(newsroom: Newsroom, desk: Desk) -> None:
    account = await newsroom.account()
    to_topic = await newsroom.schedule(in_s=-1)
    await newsroom.stores.communities.leave(newsroom.place.community, "ann")
    assert await forbidden(desk, newsroom, await worked(desk, newsroom, to_topic))
    outside = await newsroom.schedule(account_target(account), in_s=-1)
    await newsroom.stores.users.sign_in(newsroom.organization_id, "ann", [Role.MEMBER], None, None)
    assert await forbidden(desk, newsroom, await worked(desk, newsroom, outside))
    home = await newsroom.schedule(newsroom.home, in_s=-1)
    await newsroom.stores.users.sign_in(newsroom.organization_id, "ann", [Role.SERVICE], None, None)
    assert await forbidden(desk, newsroom, await worked(desk, newsroom, home))
    assert await newsroom.messages() == []


async def test_a_disconnected_account_is_not_published_to(newsroom: Newsroom, desk: Desk) -> None:
    account = await newsroom.account()
    waiting = await newsroom.schedule(account_target(account), in_s=60)
    due = await newsroom.schedule(account_target(account), in_s=-1)
    await newsroom.stores.accounts.disconnect(account)
    assert await forbidden(desk, newsroom, await worked(desk, newsroom, due))
    assert await newsroom.stores.scheduled_posts.fail_waiting(account) == 1
    assert await forbidden(desk, newsroom, await newsroom.only(waiting))


async def test_after_an_outage_what_is_too_late_fails_and_the_rest_is_published(newsroom: Newsroom, desk: Desk) -> None:
    account = account_target(await newsroom.account())
    late = [await newsroom.schedule(each, max_lateness_s=60) for each in (newsroom.topic, account)]
    in_time = [await newsroom.schedule(each, max_lateness_s=3600) for each in (newsroom.topic, account)]
    await newsroom.pass_time(180)
    await desk.sweep()
    await desk.idle()
    for post in late:
        failed = await newsroom.only(post)
        assert failed.error is not None
        assert (failed.state, failed.error.code) == (S.FAILED, "TOO_LATE")
    assert {(await newsroom.only(post)).state for post in in_time} == {S.PUBLISHED}


async def test_closing_gives_back_what_is_held_and_finishes_what_has_begun(newsroom: Newsroom, egress: Egress) -> None:
    takes_a_while = {Network.SANDBOX: Sandbox(SandboxStore(newsroom.stores.mongo), 3)}
    desk = Desk(newsroom.stores, {**quick_networks(newsroom.stores, egress), **takes_a_while})
    slow = await newsroom.account(secret="slow")
    begun = await newsroom.schedule(account_target(slow), in_s=-1)
    held = await newsroom.schedule(in_s=4.5)
    await desk.sweep()

    async def publishing() -> bool:
        return (await newsroom.only(begun)).state is S.PUBLISHING

    assert await soon(publishing)
    await desk.close()
    assert (await newsroom.only(begun)).state is S.PUBLISHED
    assert (await newsroom.claimed(held)).state is S.SCHEDULED


async def test_what_a_dead_worker_had_only_prepared_is_gone_on_with(newsroom: Newsroom, desk: Desk) -> None:
    post = await newsroom.schedule(account_target(await newsroom.account()), in_s=-1)
    claimed = await newsroom.claimed(post)
    await newsroom.stores.scheduled_posts.step(Begin(claimed, Phase.PREPARING, "key"))
    await newsroom.pass_time(10)
    assert (await worked(desk, newsroom, post)).state is S.PUBLISHED


async def test_one_network_that_hangs_does_not_hold_up_the_others(newsroom: Newsroom, desk: Desk) -> None:
    async with connected(newsroom, Network.MASTODON) as (twin, account):
        twin.faults.extend([Fault.SILENT_BEFORE] * 10)
        stuck = [await newsroom.schedule(account_target(account), in_s=-1) for _ in range(10)]
        await desk.sweep()

        async def hang() -> bool:
            return not twin.faults

        assert await soon(hang)
        post = await newsroom.schedule(in_s=-1)
        await desk.sweep()

        async def published() -> bool:
            return (await newsroom.only(post)).state is S.PUBLISHED

        assert await soon(published)
        assert {(await newsroom.only(each)).state for each in stuck} == {S.PUBLISHING}
    await desk.idle()


async def test_what_settles_itself_does(newsroom: Newsroom, desk: Desk) -> None:
    post = await newsroom.schedule(account_target(await newsroom.account(secret="ok")), in_s=-1)
    claimed = await newsroom.claimed(post)
    await newsroom.stores.scheduled_posts.step(Begin(claimed, Phase.CALLING, "key"))
    await newsroom.pass_time(16)
    cut_off = await worked(desk, newsroom, post)
    assert cut_off.state is S.UNKNOWN
    assert (await settled(desk, newsroom, post)).state is S.PUBLISHED


async def seconds_until_published(newsroom: Newsroom, desk: Desk, post: ScheduledPost) -> int:
    """How many seconds pass, with a sweep in each, until it is published by somebody else."""
    for second in range(60):
        if (await worked(desk, newsroom, post)).state is S.PUBLISHED:
            return second
        await newsroom.pass_time(1)
    raise AssertionError(await newsroom.only(post))


@pytest.mark.parametrize(
    ("network", "phase"),
    [
        (Network.WEBHOOK, None),
        (Network.INSTAGRAM, Phase.PREPARING),
        *((network, Phase.CALLING) for network in TWINS if network is not Network.X),
    ],
)
async def test_what_a_killed_worker_held_is_published_within_fifteen_seconds(
    newsroom: Newsroom, desk: Desk, network: Network, phase: Phase | None
) -> None:
    """It is gone right at the due moment, or when it had stored how far it is, which is the most that it can leave."""
    async with connected(newsroom, network) as (twin, account):
        media = [IMAGE] if network is Network.INSTAGRAM else []
        post = await newsroom.schedule(account_target(account), in_s=0, media=media)
        await uploaded(desk)
        held = await newsroom.claimed(post)
        if phase is not None:
            key = quick_networks(newsroom.stores, Egress())[network].new_key(held.id, held.due_at)
            await newsroom.stores.scheduled_posts.step(Begin(held, phase, key))
        assert await seconds_until_published(newsroom, desk, post) <= 14
        assert len(twin.ledger) == 1


async def test_inside_it_is_within_fifteen_seconds_too(newsroom: Newsroom, desk: Desk) -> None:
    for target in (newsroom.topic, newsroom.home):
        post = await newsroom.schedule(target, in_s=0)
        await newsroom.claimed(post)
        assert await seconds_until_published(newsroom, desk, post) <= 14
