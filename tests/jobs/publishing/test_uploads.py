"""Media go up ten minutes ahead, once; what is missing or stale at the due moment goes up then."""

import asyncio
from collections.abc import AsyncIterator
from datetime import timedelta

import pytest

from jobs.publishing.publisher import PostPublisher
from jobs.publishing.uploads import MAX_UPLOADS
from storage.publishing.networks import MediaKind, Network
from storage.publishing.records import MediaState, PublicationState, ScheduledMedia
from storage.publishing.scheduling import ScheduledPostEdit
from tests.jobs.providers.upstream import Upstream, respond, upstream
from tests.jobs.publishing.runs import connected, settled, uploaded, worked
from tests.storage.places import soon
from tests.storage.publishing.scenario import IMAGE, PublishingScenario, account_target
from tests.twins.instagram import InstagramTwin
from tests.twins.mastodon import MastodonTwin

pytestmark = pytest.mark.anyio


@pytest.fixture
async def media() -> AsyncIterator[Upstream]:
    async with upstream() as served:
        served.answers["/a.png"] = respond(b"png", content_type="image/png")
        yield served


def image(media: Upstream) -> ScheduledMedia:
    return ScheduledMedia(media.url("/a.png"), "A hill", MediaKind.IMAGE)


async def test_media_go_up_ten_minutes_ahead_and_are_used(
    scenario: PublishingScenario, publisher: PostPublisher, media: Upstream
) -> None:
    async with connected(scenario, Network.MASTODON) as (twin, account):
        assert isinstance(twin, MastodonTwin)
        post = await scenario.schedule(account_target(account), in_s=660, media=[image(media)])
        assert await uploaded(publisher) == 0
        await scenario.pass_time(61)
        assert await uploaded(publisher) == 1
        ready = await scenario.only(post)
        assert ready.media_state is MediaState.READY
        assert ready.upload is not None
        assert ready.upload.expires_at is not None
        assert ready.upload.expires_at - ready.due_at > timedelta(hours=23)
        await scenario.pass_time(600)
        assert (await worked(publisher, scenario, post)).state is PublicationState.PUBLISHED
        assert await uploaded(publisher) == 0
        assert len(twin.media) == 1


async def test_media_that_are_missing_at_the_due_moment_go_up_then(
    scenario: PublishingScenario, publisher: PostPublisher, media: Upstream
) -> None:
    async with connected(scenario, Network.MASTODON) as (twin, account):
        post = await scenario.schedule(account_target(account), in_s=-1, media=[image(media)])
        done = await worked(publisher, scenario, post)
        assert (done.state, done.media_state) == (PublicationState.PUBLISHED, MediaState.READY)
        assert len(twin.ledger) == 1


async def test_what_was_changed_is_uploaded_anew(scenario: PublishingScenario, publisher: PostPublisher) -> None:
    async with connected(scenario, Network.INSTAGRAM) as (twin, account):
        assert isinstance(twin, InstagramTwin)
        post = await scenario.schedule(account_target(account), in_s=300, media=[IMAGE])
        await uploaded(publisher)
        await scenario.stores.scheduled_posts.update(
            scenario.organization_id, post.id, ScheduledPostEdit(text="edited")
        )
        assert (await scenario.only(post)).media_state is MediaState.STALE
        await uploaded(publisher)
        await scenario.pass_time(300)
        await worked(publisher, scenario, post)
        assert [effect.text for effect in twin.ledger] == ["edited"]


async def test_an_upload_that_fails_is_tried_again_and_decided_when_it_is_due(
    scenario: PublishingScenario, publisher: PostPublisher, media: Upstream
) -> None:
    async with connected(scenario, Network.MASTODON) as (twin, account):
        media.answers["/a.png"] = respond(b"no", 404)
        post = await scenario.schedule(account_target(account), in_s=300, media=[image(media)])
        await uploaded(publisher)
        assert (await scenario.only(post)).media_state is MediaState.FAILED
        media.answers["/a.png"] = respond(b"png", content_type="image/png")
        await scenario.pass_time(301)
        assert (await worked(publisher, scenario, post)).state is PublicationState.PUBLISHED
        media.answers["/a.png"] = respond(b"no", 404)
        lost = await settled(
            publisher, scenario, await scenario.schedule(account_target(account), in_s=-1, media=[image(media)])
        )
        assert lost.error is not None
        assert (lost.state, lost.error.code) == (PublicationState.FAILED, "MEDIA_UNAVAILABLE")
        assert len(twin.ledger) == 1


async def test_a_server_that_can_not_be_reached_is_asked_again(
    scenario: PublishingScenario, publisher: PostPublisher, media: Upstream
) -> None:
    dead = await scenario.account(Network.MASTODON, "token", "http://127.0.0.1:1")
    post = await scenario.schedule(account_target(dead), in_s=300, media=[image(media)])
    await uploaded(publisher)
    failed = await scenario.only(post)
    assert failed.media_state is MediaState.FAILED
    assert [each.outcome for each in failed.attempts] == ["UPLOAD_FAILED"]
    await scenario.pass_time(61)
    assert await uploaded(publisher) == 1


async def test_media_lead_nowhere_but_to_public_addresses(
    scenario: PublishingScenario, publisher: PostPublisher
) -> None:
    async with connected(scenario, Network.MASTODON) as (twin, account):
        inside = ScheduledMedia("http://10.0.0.1/a.png", "", MediaKind.IMAGE)
        post = await scenario.schedule(account_target(account), in_s=-1, media=[inside])
        failed = await settled(publisher, scenario, post)
        assert failed.error is not None
        assert failed.error.code == "MEDIA_UNAVAILABLE"
        assert twin.ledger == []


async def test_slow_uploads_hold_up_nobody_elses(
    scenario: PublishingScenario, publisher: PostPublisher, media: Upstream
) -> None:
    async with (
        connected(scenario, Network.MASTODON) as (_, account),
        connected(scenario, Network.INSTAGRAM) as (
            _,
            other,
        ),
    ):
        release = asyncio.Event()

        async def slow(_: asyncio.StreamWriter) -> None:
            await release.wait()

        media.answers["/a.png"] = slow
        for _ in range(MAX_UPLOADS - 1):
            await scenario.schedule(account_target(account), in_s=300, media=[image(media)])
        assert await publisher.uploads.run() == MAX_UPLOADS - 1
        assert await publisher.uploads.run() == 0
        posts = [await scenario.schedule(account_target(other), in_s=300, media=[IMAGE]) for _ in range(2)]

        async def ready() -> bool:
            await publisher.uploads.run()
            found = [await scenario.only(post) for post in posts]
            return all(each.media_state is MediaState.READY for each in found)

        assert await soon(ready)
        release.set()
