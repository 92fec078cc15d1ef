"""Videos through Bluesky's video service, against its twin."""

from collections.abc import AsyncIterator

import pytest

from jobs.providers.social.bluesky import Bluesky, tid
from jobs.providers.social.bluesky_video import VideoService
from jobs.providers.social.http import HttpClient
from jobs.providers.social.network import PublishingRefused, RetryableFailure
from storage.publishing.networks import MediaKind
from storage.publishing.records import ScheduledMedia
from tests.jobs.providers.social.outgoing import account, medium, outgoing
from tests.jobs.providers.stub_server import StubServer
from tests.twins.bluesky import BlueskyTwin
from tests.twins.twin import running_twin

pytestmark = pytest.mark.anyio

SECRET = "ann.example:app-pass"


@pytest.fixture
async def twin() -> AsyncIterator[BlueskyTwin]:
    async with running_twin(BlueskyTwin()) as twin:
        assert isinstance(twin, BlueskyTwin)
        yield twin


@pytest.fixture
def bluesky(http: HttpClient, twin: BlueskyTwin) -> Bluesky:
    return Bluesky(http, VideoService(http, twin.url, poll_s=0.01))


def video(media: StubServer) -> ScheduledMedia:
    return medium(media.url("/b.mp4"), MediaKind.VIDEO)


async def test_processed_video_is_in_the_record(bluesky: Bluesky, twin: BlueskyTwin, media: StubServer) -> None:
    post = outgoing("look", video(media))
    uploaded = await bluesky.upload(account(twin, SECRET), post)
    await bluesky.publish(account(twin, SECRET), post, tid(1, 1), uploaded.references)
    (record,) = twin.bodies
    assert record["embed"] == {"$type": "app.bsky.embed.video", "video": uploaded.references[0], "alt": "A hill"}
    assert twin.request_counts["GET /xrpc/app.bsky.video.getJobStatus"] == 2


async def test_already_uploaded_video_is_reused(bluesky: Bluesky, twin: BlueskyTwin, media: StubServer) -> None:
    post = outgoing("look", video(media))
    first = await bluesky.upload(account(twin, SECRET), post)
    assert (await bluesky.upload(account(twin, SECRET), post)).references == first.references


@pytest.mark.parametrize("code", ["validation_failure", "encoding_failure", "pds_upload_unsupported_blob_size"])
async def test_unprocessable_video_is_refused(
    bluesky: Bluesky, twin: BlueskyTwin, media: StubServer, code: str
) -> None:
    twin.video_result = {"state": "JOB_STATE_FAILED", "failureCode": code, "message": "too long"}
    with pytest.raises(PublishingRefused, match="too long") as refusal:
        await bluesky.upload(account(twin, SECRET), outgoing("x", video(media)))
    assert refusal.value.code == "MEDIA_REFUSED"


@pytest.mark.parametrize(
    "video_result",
    [
        {"state": "JOB_STATE_FAILED", "failureCode": "pds_upload_failure"},
        {"state": "JOB_STATE_FAILED", "failureCode": "generic_failure"},
        {"state": "JOB_STATE_FAILED", "error": "video processing error", "message": "Failed to process video"},
    ],
)
async def test_failed_video_processing_is_retryable(
    bluesky: Bluesky, twin: BlueskyTwin, media: StubServer, video_result: dict[str, str]
) -> None:
    post = outgoing("x", video(media))
    twin.video_result = video_result
    with pytest.raises(RetryableFailure):
        await bluesky.upload(account(twin, SECRET), post)
    twin.video_result = {"state": "JOB_STATE_COMPLETED"}
    assert (await bluesky.upload(account(twin, SECRET), post)).references


async def test_unfinished_video_processing_is_retryable(
    bluesky: Bluesky, twin: BlueskyTwin, media: StubServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("jobs.providers.social.bluesky_video.POLLS", 3)
    twin.polls_until_ready = 100
    with pytest.raises(RetryableFailure, match="still processing"):
        await bluesky.upload(account(twin, SECRET), outgoing("x", video(media)))


async def test_video_of_account_without_permission_is_refused(
    bluesky: Bluesky, twin: BlueskyTwin, media: StubServer
) -> None:
    twin.has_confirmed_email = False
    with pytest.raises(PublishingRefused, match="unconfirmed_email"):
        await bluesky.upload(account(twin, SECRET), outgoing("x", video(media)))


async def test_video_that_is_not_mp4_is_refused(bluesky: Bluesky, twin: BlueskyTwin, media: StubServer) -> None:
    with pytest.raises(PublishingRefused, match="video/mp4"):
        await bluesky.upload(account(twin, SECRET), outgoing("x", medium(media.url("/a.png"), MediaKind.VIDEO)))


async def test_unreachable_video_service_is_retried(http: HttpClient, twin: BlueskyTwin, media: StubServer) -> None:
    unreachable = Bluesky(http, VideoService(http, "http://127.0.0.1:1"))
    with pytest.raises(RetryableFailure):
        await unreachable.upload(account(twin, SECRET), outgoing("x", video(media)))
