"""Scheduling, updating and cancelling: timestamps, revisions, fences, and the effect of edits on uploads."""

import asyncio
from dataclasses import replace
from datetime import timedelta

import pytest

from storage.errors import BadUserInput, Conflict, NotFound
from storage.idempotency import idempotency_key
from storage.publishing.editing import ScheduledPostEdit
from storage.publishing.free_timestamps import microseconds
from storage.publishing.networks import MediaKind, Network
from storage.publishing.records import MediaState, PublicationState, ScheduledMedia
from storage.publishing.transitions import ClaimLost, StoreUploadResult
from tests.storage.publishing.scenario import IMAGE, PublishingScenario, account_target
from tests.storage.topic_scenario import OpenStores
from tests.waiting import poll_until_true

pytestmark = pytest.mark.anyio


async def test_timestamp_is_first_free_microsecond_at_due_time(scenario: PublishingScenario) -> None:
    due_at = await scenario.now() + timedelta(hours=1)
    posts = await asyncio.gather(*(scenario.schedule(due_at=due_at) for _ in range(120)))
    first = microseconds(due_at)
    assert sorted(post.timestamp for post in posts) == list(range(first, first + 120))
    moved = await scenario.stores.scheduled_posts.update(
        scenario.organization_id, posts[0].id, ScheduledPostEdit(due_at=due_at + timedelta(hours=1))
    )
    assert moved.timestamp == microseconds(due_at + timedelta(hours=1))
    assert (await scenario.schedule(due_at=due_at)).timestamp == posts[0].timestamp


async def test_concurrent_processes_get_distinct_timestamps(
    scenario: PublishingScenario, open_process: OpenStores
) -> None:
    due_at = await scenario.now() + timedelta(hours=1)
    async with open_process() as stores:
        processes = [scenario, scenario.with_stores(stores)] * 20
        posts = await asyncio.gather(*(process.schedule(due_at=due_at) for process in processes))
    assert len({post.timestamp for post in posts}) == 40


async def test_repeated_key_schedules_once(scenario: PublishingScenario) -> None:
    new = await scenario.new_post(scenario.topic)
    key = idempotency_key(scenario.organization_id, "ann", "schedulePost", "k", {"a": 1})
    schedule = scenario.stores.scheduled_posts.schedule
    first, second = await asyncio.gather(schedule(new, key), schedule(new, key))
    assert first == second
    assert len(await scenario.publications(first)) == 1


async def test_due_time_more_than_max_lateness_ago_is_refused(scenario: PublishingScenario) -> None:
    with pytest.raises(BadUserInput):
        await scenario.schedule(in_s=-20, max_lateness_s=10)
    post = await scenario.schedule(in_s=-20, max_lateness_s=30)
    with pytest.raises(BadUserInput):
        await scenario.stores.scheduled_posts.update(
            scenario.organization_id, post.id, ScheduledPostEdit(max_lateness_s=10)
        )


async def test_every_change_emits_publication_changed(scenario: PublishingScenario) -> None:
    post = await scenario.schedule(scenario.topic, scenario.home)
    await scenario.stores.scheduled_posts.update(scenario.organization_id, post.id, ScheduledPostEdit(text="other"))
    await scenario.stores.scheduled_posts.cancel(scenario.organization_id, post.id)
    ids = [each.id for each in await scenario.publications(post)]
    assert await scenario.events() == [("PublicationChanged", id_) for id_ in ids * 3]


async def test_update_from_old_revision_is_conflict(scenario: PublishingScenario) -> None:
    post = await scenario.schedule()
    update = scenario.stores.scheduled_posts.update
    changed = await update(scenario.organization_id, post.id, ScheduledPostEdit(text="second", revision=1))
    assert (changed.text, changed.revision) == ("second", 2)
    with pytest.raises(Conflict):
        await update(scenario.organization_id, post.id, ScheduledPostEdit(text="third", revision=1))
    edits = [update(scenario.organization_id, post.id, ScheduledPostEdit(text=str(i), revision=2)) for i in range(5)]
    outcomes = await asyncio.gather(*edits, return_exceptions=True)
    assert sum(not isinstance(each, Conflict) for each in outcomes) == 1


async def test_kept_target_keeps_its_publication(scenario: PublishingScenario) -> None:
    account = account_target(await scenario.connect_account())
    post = await scenario.schedule(scenario.topic, scenario.home)
    before = await scenario.publications(post)
    edit = ScheduledPostEdit(targets=[account, scenario.topic])
    await scenario.stores.scheduled_posts.update(scenario.organization_id, post.id, edit)
    after = await scenario.publications(post)
    assert [each.target for each in after] == [account, scenario.topic]
    assert after[1].id == before[0].id
    assert {each.state for each in after} == {PublicationState.SCHEDULED}


async def test_update_and_cancel_invalidate_claim(scenario: PublishingScenario) -> None:
    edited, cancelled = await scenario.schedule(in_s=0.2), await scenario.schedule(in_s=0.2)
    claims = await scenario.stores.claims.claim(1000)
    by_post = {each.scheduled_post_id: each for each in claims}
    store = scenario.stores.scheduled_posts
    await store.update(scenario.organization_id, edited.id, ScheduledPostEdit(text="other"))
    await store.cancel(scenario.organization_id, cancelled.id)
    await asyncio.sleep(0.3)
    for post in (edited, cancelled):
        with pytest.raises(ClaimLost):
            await store.publish_message(by_post[post.id], scenario.topic_scenario.new_message("hello"))
    assert await scenario.messages() == []
    assert (await scenario.publication(edited)).state is PublicationState.SCHEDULED
    assert (await scenario.publication(cancelled)).state is PublicationState.CANCELLED


async def test_cancel_skips_published_and_conflicts_if_repeated(scenario: PublishingScenario) -> None:
    post = await scenario.schedule(scenario.topic, scenario.home, in_s=-1)
    claims = [each for each in await scenario.stores.claims.claim(100) if each.scheduled_post_id == post.id]
    store = scenario.stores.scheduled_posts
    (to_topic,) = [each for each in claims if each.target == scenario.topic]
    await store.publish_message(to_topic, scenario.topic_scenario.new_message("hello"))
    with pytest.raises(Conflict):
        await store.update(scenario.organization_id, post.id, ScheduledPostEdit(text="too late"))
    await store.cancel(scenario.organization_id, post.id)
    states = [each.state for each in await scenario.publications(post)]
    assert states == [PublicationState.PUBLISHED, PublicationState.CANCELLED]
    with pytest.raises(Conflict):
        await store.cancel(scenario.organization_id, post.id)


async def test_post_of_other_organization_is_not_found(scenario: PublishingScenario) -> None:
    post = await scenario.schedule()
    with pytest.raises(NotFound):
        await scenario.stores.scheduled_posts.cancel("elsewhere", post.id)
    with pytest.raises(NotFound):
        await scenario.stores.scheduled_posts.update("elsewhere", post.id, ScheduledPostEdit(text="x"))
    assert (await scenario.publication(post)).state is PublicationState.SCHEDULED


async def post_with_upload(scenario: PublishingScenario, expires_in_s: float | None) -> str:
    """Schedules a post whose media are uploaded, and returns its id."""
    account = account_target(await scenario.connect_account(Network.MASTODON, "token", "https://example.org"))
    post = await scenario.schedule(account, media=[IMAGE], in_s=300)
    ((claimed, token),) = [
        each for each in await scenario.stores.claims.claim_uploads(100) if each[0].scheduled_post_id == post.id
    ]
    assert claimed.media_state is MediaState.UPLOADING
    ready = await scenario.stores.scheduled_posts.apply(StoreUploadResult(claimed, token, ["m1"], expires_in_s))
    assert ready.media_state is MediaState.READY
    return post.id


@pytest.mark.parametrize(
    ("edit", "state"),
    [
        (ScheduledPostEdit(text="other"), MediaState.STALE),
        (ScheduledPostEdit(media=[replace(IMAGE, alt_text="other")]), MediaState.STALE),
        (ScheduledPostEdit(media=[ScheduledMedia("https://example.org/b.mp4", "", MediaKind.VIDEO)]), MediaState.STALE),
        (ScheduledPostEdit(media=[]), MediaState.NONE),
        (ScheduledPostEdit(time_zone="Asia/Tokyo"), MediaState.READY),
        (ScheduledPostEdit(max_lateness_s=60), MediaState.READY),
    ],
)
async def test_edit_of_content_makes_upload_stale(
    scenario: PublishingScenario, edit: ScheduledPostEdit, state: MediaState
) -> None:
    post_id = await post_with_upload(scenario, 86_400)
    await scenario.stores.scheduled_posts.update(scenario.organization_id, post_id, edit)
    (publication,) = await scenario.stores.scheduled_posts.publications_of(post_id)
    assert publication.media_state is state
    assert (publication.upload is not None) == (state is MediaState.READY)
    assert ("upload_at" in await scenario.stored_document(publication)) == (state is MediaState.STALE)


@pytest.mark.parametrize(("due_in_s", "state"), [(3000, MediaState.READY), (4000, MediaState.STALE)])
async def test_due_time_past_expiry_makes_upload_stale(
    scenario: PublishingScenario, due_in_s: float, state: MediaState
) -> None:
    post_id = await post_with_upload(scenario, 3600)
    edit = ScheduledPostEdit(due_at=await scenario.now() + timedelta(seconds=due_in_s))
    await scenario.stores.scheduled_posts.update(scenario.organization_id, post_id, edit)
    (publication,) = await scenario.stores.scheduled_posts.publications_of(post_id)
    assert publication.media_state is state


async def test_upload_of_edited_post_is_not_stored(scenario: PublishingScenario) -> None:
    account = account_target(await scenario.connect_account(Network.MASTODON, "token", "https://example.org"))
    post = await scenario.schedule(account, media=[IMAGE], in_s=300)
    ((claimed, token),) = await scenario.stores.claims.claim_uploads(100)
    await scenario.stores.scheduled_posts.update(scenario.organization_id, post.id, ScheduledPostEdit(text="other"))
    with pytest.raises(ClaimLost):
        await scenario.stores.scheduled_posts.apply(StoreUploadResult(claimed, token, ["old"], 86_400))
    assert (await scenario.publication(post)).media_state is MediaState.STALE
    assert await poll_until_true(lambda: scenario.stores.claims.claim_uploads(1))


@pytest.mark.parametrize(
    ("network", "kind", "lead_s"),
    [
        (Network.MASTODON, MediaKind.VIDEO, 600),
        (Network.BLUESKY, MediaKind.IMAGE, 60),
        (Network.BLUESKY, MediaKind.VIDEO, 240),
        (Network.WEBHOOK, MediaKind.VIDEO, None),
    ],
)
async def test_upload_lead_follows_network_and_kind(
    scenario: PublishingScenario, network: Network, kind: MediaKind, lead_s: float | None
) -> None:
    media = [ScheduledMedia("https://example.org/a", "", kind)]
    post = await scenario.schedule(account_target(await scenario.connect_account(network)), in_s=3600, media=media)
    upload_at = (await scenario.stored_document(await scenario.publication(post))).get("upload_at")
    assert (upload_at and (post.due_at - upload_at).total_seconds()) == lead_s
