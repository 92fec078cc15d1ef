"""Media are uploaded once, ten minutes before the due moment, or at the due moment if they are missing or stale."""

import asyncio
from collections.abc import AsyncIterator
from datetime import timedelta

import pytest

from jobs.publishing.publisher import PostPublisher
from jobs.publishing.uploads import MAX_UPLOADS
from storage.publishing.editing import ScheduledPostEdit
from storage.publishing.networks import MediaKind, Network
from storage.publishing.records import MediaState, PublicationState, ScheduledMedia
from tests.jobs.providers.stub_server import StubServer, respond, stub_server
from tests.jobs.publishing.runs import connected_twin, run_once, run_until_finished, run_uploads
from tests.storage.publishing.scenario import IMAGE, PublishingScenario, account_target
from tests.twins.instagram import InstagramTwin
from tests.twins.mastodon import MastodonTwin
from tests.waiting import poll_until_true

pytestmark = pytest.mark.anyio


@pytest.fixture
async def media() -> AsyncIterator[StubServer]:
    async with stub_server() as server:
        server.answers["/a.png"] = respond(b"png", content_type="image/png")
        yield server


def image(media: StubServer) -> ScheduledMedia:
    return ScheduledMedia(media.url("/a.png"), "A hill", MediaKind.IMAGE)


async def test_media_are_uploaded_ten_minutes_ahead(
    scenario: PublishingScenario, publisher: PostPublisher, media: StubServer
) -> None:
    async with connected_twin(scenario, Network.MASTODON) as (twin, account):
        assert isinstance(twin, MastodonTwin)
        post = await scenario.schedule(account_target(account), in_s=660, media=[image(media)])
        assert await run_uploads(publisher) == 0
        await scenario.pass_time(61)
        assert await run_uploads(publisher) == 1
        uploaded = await scenario.publication(post)
        assert uploaded.media_state is MediaState.READY
        assert uploaded.upload is not None
        assert uploaded.upload.expires_at is not None
        assert uploaded.upload.expires_at - uploaded.due_at > timedelta(hours=23)
        await scenario.pass_time(600)
        assert (await run_once(publisher, scenario, post)).state is PublicationState.PUBLISHED
        assert await run_uploads(publisher) == 0
        assert len(twin.media) == 1


async def test_missing_media_are_uploaded_at_due_moment(
    scenario: PublishingScenario, publisher: PostPublisher, media: StubServer
) -> None:
    async with connected_twin(scenario, Network.MASTODON) as (twin, account):
        post = await scenario.schedule(account_target(account), in_s=-1, media=[image(media)])
        finished = await run_once(publisher, scenario, post)
        assert (finished.state, finished.media_state) == (PublicationState.PUBLISHED, MediaState.READY)
        assert len(twin.ledger) == 1


async def test_media_of_edited_post_are_uploaded_again(scenario: PublishingScenario, publisher: PostPublisher) -> None:
    async with connected_twin(scenario, Network.INSTAGRAM) as (twin, account):
        assert isinstance(twin, InstagramTwin)
        post = await scenario.schedule(account_target(account), in_s=300, media=[IMAGE])
        await run_uploads(publisher)
        await scenario.stores.scheduled_posts.update(
            scenario.organization_id, post.id, ScheduledPostEdit(text="edited")
        )
        assert (await scenario.publication(post)).media_state is MediaState.STALE
        await run_uploads(publisher)
        await scenario.pass_time(300)
        await run_once(publisher, scenario, post)
        assert [entry.text for entry in twin.ledger] == ["edited"]


async def test_failed_upload_is_repeated_at_due_moment(
    scenario: PublishingScenario, publisher: PostPublisher, media: StubServer
) -> None:
    async with connected_twin(scenario, Network.MASTODON) as (twin, account):
        media.answers["/a.png"] = respond(b"no", 404)
        post = await scenario.schedule(account_target(account), in_s=300, media=[image(media)])
        await run_uploads(publisher)
        assert (await scenario.publication(post)).media_state is MediaState.FAILED
        media.answers["/a.png"] = respond(b"png", content_type="image/png")
        await scenario.pass_time(301)
        assert (await run_once(publisher, scenario, post)).state is PublicationState.PUBLISHED
        media.answers["/a.png"] = respond(b"no", 404)
        failed = await run_until_finished(
            publisher, scenario, await scenario.schedule(account_target(account), in_s=-1, media=[image(media)])
        )
        assert failed.error is not None
        assert (failed.state, failed.error.code) == (PublicationState.FAILED, "MEDIA_UNAVAILABLE")
        assert len(twin.ledger) == 1


async def test_upload_to_unreachable_server_is_retried(
    scenario: PublishingScenario, publisher: PostPublisher, media: StubServer
) -> None:
    unreachable = await scenario.connect_account(Network.MASTODON, "token", "http://127.0.0.1:1")
    post = await scenario.schedule(account_target(unreachable), in_s=300, media=[image(media)])
    await run_uploads(publisher)
    failed = await scenario.publication(post)
    assert failed.media_state is MediaState.FAILED
    assert [each.outcome for each in failed.attempts] == ["UPLOAD_FAILED"]
    await scenario.pass_time(61)
    assert await run_uploads(publisher) == 1


async def test_media_at_private_address_are_refused(scenario: PublishingScenario, publisher: PostPublisher) -> None:
    async with connected_twin(scenario, Network.MASTODON) as (twin, account):
        private = ScheduledMedia("http://10.0.0.1/a.png", "", MediaKind.IMAGE)
        post = await scenario.schedule(account_target(account), in_s=-1, media=[private])
        failed = await run_until_finished(publisher, scenario, post)
        assert failed.error is not None
        assert failed.error.code == "MEDIA_UNAVAILABLE"
        assert twin.ledger == []


async def test_slow_uploads_do_not_block_uploads_to_other_network(
    scenario: PublishingScenario, publisher: PostPublisher, media: StubServer
) -> None:
    async with (
        connected_twin(scenario, Network.MASTODON) as (_, account),
        connected_twin(scenario, Network.INSTAGRAM) as (
            _,
            other_account,
        ),
    ):
        may_finish = asyncio.Event()

        async def respond_late(_: asyncio.StreamWriter) -> None:
            await may_finish.wait()

        media.answers["/a.png"] = respond_late
        for _ in range(MAX_UPLOADS - 1):
            await scenario.schedule(account_target(account), in_s=300, media=[image(media)])
        assert await publisher.uploads.start_due_uploads() == MAX_UPLOADS - 1
        assert await publisher.uploads.start_due_uploads() == 0
        posts = [await scenario.schedule(account_target(other_account), in_s=300, media=[IMAGE]) for _ in range(2)]

        async def are_ready() -> bool:
            await publisher.uploads.start_due_uploads()
            publications = [await scenario.publication(post) for post in posts]
            return all(each.media_state is MediaState.READY for each in publications)

        assert await poll_until_true(are_ready)
        may_finish.set()
