"""Scheduling, changing, cancelling: places on the timeline, revisions, fences, and what an edit does to uploads."""

import asyncio
from dataclasses import replace
from datetime import timedelta

import pytest

from storage.errors import BadUserInput, Conflict, NotFound
from storage.idempotency import idempotency_key
from storage.publishing.networks import MediaKind, Network
from storage.publishing.progress import KeepUpload, Lost
from storage.publishing.records import MediaState, PublicationState, ScheduledMedia
from storage.publishing.scheduling import PostEdit, microseconds
from tests.storage.places import OpenStores, soon
from tests.storage.publishing.newsroom import IMAGE, Newsroom, account_target

pytestmark = pytest.mark.anyio


async def test_a_post_takes_the_first_free_microsecond_at_its_due_time(newsroom: Newsroom) -> None:
    due_at = await newsroom.now() + timedelta(hours=1)
    posts = await asyncio.gather(*(newsroom.schedule(due_at=due_at) for _ in range(120)))
    first = microseconds(due_at)
    assert sorted(post.timestamp for post in posts) == list(range(first, first + 120))
    moved = await newsroom.stores.scheduled_posts.update(
        newsroom.organization_id, posts[0].id, PostEdit(due_at=due_at + timedelta(hours=1))
    )
    assert moved.timestamp == microseconds(due_at + timedelta(hours=1))
    assert (await newsroom.schedule(due_at=due_at)).timestamp == posts[0].timestamp


async def test_processes_that_schedule_for_the_same_moment_never_meet(newsroom: Newsroom, another: OpenStores) -> None:
    due_at = await newsroom.now() + timedelta(hours=1)
    async with another() as stores:
        rooms = [newsroom, newsroom.through(stores)] * 20
        posts = await asyncio.gather(*(room.schedule(due_at=due_at) for room in rooms))
    assert len({post.timestamp for post in posts}) == 40


async def test_a_repeated_key_schedules_once(newsroom: Newsroom) -> None:
    new = await newsroom.new(newsroom.topic)
    key = idempotency_key(newsroom.organization_id, "ann", "schedulePost", "k", {"a": 1})
    schedule = newsroom.stores.scheduled_posts.schedule
    first, second = await asyncio.gather(schedule(new, key), schedule(new, key))
    assert first == second
    assert len(await newsroom.publications(first)) == 1


async def test_what_could_only_fail_is_refused(newsroom: Newsroom) -> None:
    with pytest.raises(BadUserInput):
        await newsroom.schedule(in_s=-20, max_lateness_s=10)
    post = await newsroom.schedule(in_s=-20, max_lateness_s=30)
    with pytest.raises(BadUserInput):
        await newsroom.stores.scheduled_posts.update(newsroom.organization_id, post.id, PostEdit(max_lateness_s=10))


async def test_every_change_is_told_to_the_jobs_stream(newsroom: Newsroom) -> None:
    post = await newsroom.schedule(newsroom.topic, newsroom.home)
    await newsroom.stores.scheduled_posts.update(newsroom.organization_id, post.id, PostEdit(text="other"))
    await newsroom.stores.scheduled_posts.cancel(newsroom.organization_id, post.id)
    ids = [each.id for each in await newsroom.publications(post)]
    assert await newsroom.events() == [("PublicationChanged", id_) for id_ in ids * 3]


async def test_an_update_needs_the_newest_revision_when_it_names_one(newsroom: Newsroom) -> None:
    post = await newsroom.schedule()
    update = newsroom.stores.scheduled_posts.update
    changed = await update(newsroom.organization_id, post.id, PostEdit(text="second", revision=1))
    assert (changed.text, changed.revision) == ("second", 2)
    with pytest.raises(Conflict):
        await update(newsroom.organization_id, post.id, PostEdit(text="third", revision=1))
    edits = [update(newsroom.organization_id, post.id, PostEdit(text=str(i), revision=2)) for i in range(5)]
    outcomes = await asyncio.gather(*edits, return_exceptions=True)
    assert sum(not isinstance(each, Conflict) for each in outcomes) == 1


async def test_targets_that_stay_keep_their_publications(newsroom: Newsroom) -> None:
    account = account_target(await newsroom.account())
    post = await newsroom.schedule(newsroom.topic, newsroom.home)
    before = await newsroom.publications(post)
    edit = PostEdit(targets=[account, newsroom.topic])
    await newsroom.stores.scheduled_posts.update(newsroom.organization_id, post.id, edit)
    after = await newsroom.publications(post)
    assert [each.target for each in after] == [account, newsroom.topic]
    assert after[1].id == before[0].id
    assert {each.state for each in after} == {PublicationState.SCHEDULED}


async def test_update_and_cancel_win_against_a_held_claim(newsroom: Newsroom) -> None:
    edited, cancelled = await newsroom.schedule(in_s=0.2), await newsroom.schedule(in_s=0.2)
    claims = await newsroom.stores.claims.claim(1000)
    by_post = {each.scheduled_post_id: each for each in claims}
    store = newsroom.stores.scheduled_posts
    await store.update(newsroom.organization_id, edited.id, PostEdit(text="other"))
    await store.cancel(newsroom.organization_id, cancelled.id)
    await asyncio.sleep(0.3)
    for post in (edited, cancelled):
        with pytest.raises(Lost):
            await store.publish_message(by_post[post.id], newsroom.place.new("hello"))
    assert await newsroom.messages() == []
    assert (await newsroom.only(edited)).state is PublicationState.SCHEDULED
    assert (await newsroom.only(cancelled)).state is PublicationState.CANCELLED


async def test_cancelling_cancels_the_rest_and_with_nothing_left_it_is_a_conflict(newsroom: Newsroom) -> None:
    post = await newsroom.schedule(newsroom.topic, newsroom.home, in_s=-1)
    claims = [each for each in await newsroom.stores.claims.claim(100) if each.scheduled_post_id == post.id]
    store = newsroom.stores.scheduled_posts
    (to_topic,) = [each for each in claims if each.target == newsroom.topic]
    await store.publish_message(to_topic, newsroom.place.new("hello"))
    with pytest.raises(Conflict):
        await store.update(newsroom.organization_id, post.id, PostEdit(text="too late"))
    await store.cancel(newsroom.organization_id, post.id)
    states = [each.state for each in await newsroom.publications(post)]
    assert states == [PublicationState.PUBLISHED, PublicationState.CANCELLED]
    with pytest.raises(Conflict):
        await store.cancel(newsroom.organization_id, post.id)


async def test_nothing_of_another_organization_is_changed(newsroom: Newsroom) -> None:
    post = await newsroom.schedule()
    with pytest.raises(NotFound):
        await newsroom.stores.scheduled_posts.cancel("elsewhere", post.id)
    with pytest.raises(NotFound):
        await newsroom.stores.scheduled_posts.update("elsewhere", post.id, PostEdit(text="x"))
    assert (await newsroom.only(post)).state is PublicationState.SCHEDULED


async def uploaded(newsroom: Newsroom, expires_in_s: float | None) -> str:
    """A post due in an hour, whose media are uploaded; its id."""
    account = account_target(await newsroom.account(Network.MASTODON, "token", "https://example.org"))
    post = await newsroom.schedule(account, media=[IMAGE], in_s=300)
    ((claimed, token),) = [
        each for each in await newsroom.stores.claims.claim_uploads(100) if each[0].scheduled_post_id == post.id
    ]
    assert claimed.media_state is MediaState.UPLOADING
    ready = await newsroom.stores.scheduled_posts.step(KeepUpload(claimed, token, ["m1"], expires_in_s))
    assert ready.media_state is MediaState.READY
    return post.id


@pytest.mark.parametrize(
    ("edit", "state"),
    [
        (PostEdit(text="other"), MediaState.STALE),
        (PostEdit(media=[replace(IMAGE, alt_text="other")]), MediaState.STALE),
        (PostEdit(media=[ScheduledMedia("https://example.org/b.mp4", "", MediaKind.VIDEO)]), MediaState.STALE),
        (PostEdit(media=[]), MediaState.NONE),
        (PostEdit(time_zone="Asia/Tokyo"), MediaState.READY),
        (PostEdit(max_lateness_s=60), MediaState.READY),
    ],
)
async def test_other_content_makes_an_upload_stale(newsroom: Newsroom, edit: PostEdit, state: MediaState) -> None:
    post_id = await uploaded(newsroom, 86_400)
    await newsroom.stores.scheduled_posts.update(newsroom.organization_id, post_id, edit)
    (publication,) = await newsroom.stores.scheduled_posts.publications_of(post_id)
    assert publication.media_state is state
    assert (publication.upload is not None) == (state is MediaState.READY)
    assert ("upload_at" in await newsroom.stored(publication)) == (state is MediaState.STALE)


@pytest.mark.parametrize(("later_s", "state"), [(3000, MediaState.READY), (4000, MediaState.STALE)])
async def test_a_due_time_past_the_expiry_makes_an_upload_stale(
    newsroom: Newsroom, later_s: float, state: MediaState
) -> None:
    post_id = await uploaded(newsroom, 3600)
    edit = PostEdit(due_at=await newsroom.now() + timedelta(seconds=later_s))
    await newsroom.stores.scheduled_posts.update(newsroom.organization_id, post_id, edit)
    (publication,) = await newsroom.stores.scheduled_posts.publications_of(post_id)
    assert publication.media_state is state


async def test_an_upload_of_what_was_changed_meanwhile_is_not_kept(newsroom: Newsroom) -> None:
    account = account_target(await newsroom.account(Network.MASTODON, "token", "https://example.org"))
    post = await newsroom.schedule(account, media=[IMAGE], in_s=300)
    ((claimed, token),) = await newsroom.stores.claims.claim_uploads(100)
    await newsroom.stores.scheduled_posts.update(newsroom.organization_id, post.id, PostEdit(text="other"))
    with pytest.raises(Lost):
        await newsroom.stores.scheduled_posts.step(KeepUpload(claimed, token, ["old"], 86_400))
    assert (await newsroom.only(post)).media_state is MediaState.STALE
    assert await soon(lambda: newsroom.stores.claims.claim_uploads(1))


@pytest.mark.parametrize(
    ("network", "kind", "lead_s"),
    [
        (Network.MASTODON, MediaKind.VIDEO, 600),
        (Network.BLUESKY, MediaKind.IMAGE, 60),
        (Network.BLUESKY, MediaKind.VIDEO, 240),
        (Network.WEBHOOK, MediaKind.VIDEO, None),
    ],
)
async def test_media_are_due_as_long_before_as_the_network_needs(
    newsroom: Newsroom, network: Network, kind: MediaKind, lead_s: float | None
) -> None:
    media = [ScheduledMedia("https://example.org/a", "", kind)]
    post = await newsroom.schedule(account_target(await newsroom.account(network)), in_s=3600, media=media)
    upload_at = (await newsroom.stored(await newsroom.only(post))).get("upload_at")
    assert (upload_at and (post.due_at - upload_at).total_seconds()) == lead_s
