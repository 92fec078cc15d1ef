"""Instagram against its twin: containers, carousels, reels, the quota, and status lookup after a lost response."""

from collections.abc import AsyncIterator

import pytest
from starlette.responses import Response

from jobs.providers.social.http import HttpClient
from jobs.providers.social.instagram import CONTAINER_LIFETIME_S, Instagram
from jobs.providers.social.network import (
    CredentialsRefused,
    NotPublished,
    OutcomeUncertain,
    PublishedPost,
    PublishingRefused,
    RetryableFailure,
    UploadExpired,
)
from storage.publishing.networks import MediaKind, ReconciliationMethod
from tests.jobs.providers.social.outgoing import DUE_AT, account, medium, outgoing
from tests.twins.instagram import InstagramTwin, expired_token, graph_error
from tests.twins.twin import NetworkFault, running_twin

pytestmark = pytest.mark.anyio

SECRET = "1784:token"
IMAGE = medium("https://example.org/a.jpg")
REEL = medium("https://example.org/r.mp4", MediaKind.REEL)
VIDEO = medium("https://example.org/v.mp4", MediaKind.VIDEO)


@pytest.fixture
async def twin() -> AsyncIterator[InstagramTwin]:
    async with running_twin(InstagramTwin()) as twin:
        assert isinstance(twin, InstagramTwin)
        yield twin


@pytest.fixture
def instagram(http: HttpClient) -> Instagram:
    return Instagram(http, poll_s=0.01)


async def upload_image(instagram: Instagram, twin: InstagramTwin) -> list[str]:
    """Uploads the image of a post. Returns a list with the id of the finished container."""
    return list((await instagram.upload(account(twin, SECRET), outgoing("hello", IMAGE))).references)


async def test_image_container_is_created_polled_and_published(instagram: Instagram, twin: InstagramTwin) -> None:
    twin.polls_until_ready = 3
    post = outgoing("hello", IMAGE)
    uploaded = await instagram.upload(account(twin, SECRET), post)
    assert uploaded.expires_in_s == CONTAINER_LIFETIME_S
    fields = twin.containers[uploaded.references[0]]["fields"]
    assert fields == {"image_url": IMAGE.url, "alt_text": "A hill", "caption": "hello"}
    published = await instagram.publish(account(twin, SECRET), post, "key", uploaded.references)
    id_ = twin.ledger[0].id
    assert published == PublishedPost(id_, f"https://www.instagram.com/p/{id_}/")


async def test_carousel_is_created_from_finished_children(instagram: Instagram, twin: InstagramTwin) -> None:
    uploaded = await instagram.upload(account(twin, SECRET), outgoing("hello", IMAGE, VIDEO, IMAGE))
    fields = twin.containers[uploaded.references[0]]["fields"]
    children = [twin.containers[each]["fields"] for each in fields["children"].split(",")]
    assert fields["media_type"] == "CAROUSEL"
    assert [each.get("media_type", "IMAGE") for each in children] == ["IMAGE", "VIDEO", "IMAGE"]
    assert {each["is_carousel_item"] for each in children} == {"true"}


async def test_video_is_published_as_reel(instagram: Instagram, twin: InstagramTwin) -> None:
    (container,) = (await instagram.upload(account(twin, SECRET), outgoing("hello", REEL))).references
    assert twin.containers[container]["fields"]["media_type"] == "REELS"


@pytest.mark.parametrize("fault", [NetworkFault.FAIL_AFTER, NetworkFault.CUT_AFTER])
async def test_lost_response_is_found_by_container(
    instagram: Instagram, twin: InstagramTwin, fault: NetworkFault
) -> None:
    container = await upload_image(instagram, twin)
    assert instagram.reconciliation_method(account(twin, SECRET)) is ReconciliationMethod.QUERY
    twin.faults.append(fault)
    with pytest.raises(OutcomeUncertain):
        await instagram.publish(account(twin, SECRET), outgoing(), "key", container)
    assert await instagram.look_up(account(twin, SECRET), container) == PublishedPost(None, None)
    with pytest.raises(PublishingRefused):
        await instagram.publish(account(twin, SECRET), outgoing(), "key", container)
    assert len(twin.ledger) == 1


async def test_unpublished_container_is_retryable(instagram: Instagram, twin: InstagramTwin) -> None:
    container = await upload_image(instagram, twin)
    twin.faults.append(NetworkFault.FAIL_BEFORE)
    with pytest.raises(OutcomeUncertain):
        await instagram.publish(account(twin, SECRET), outgoing(), "key", container)
    with pytest.raises(NotPublished):
        await instagram.look_up(account(twin, SECRET), container)
    await instagram.publish(account(twin, SECRET), outgoing(), "key", container)
    assert len(twin.ledger) == 1


@pytest.mark.parametrize("status", ["EXPIRED", "ERROR"])
async def test_failed_container_is_known_unpublished(instagram: Instagram, twin: InstagramTwin, status: str) -> None:
    (id_,) = container = await upload_image(instagram, twin)
    twin.containers[id_]["status"] = status
    assert await instagram.look_up(account(twin, SECRET), container) is None
    assert await instagram.look_up(account(twin, SECRET), ()) is None


async def test_container_in_progress_stays_uncertain(instagram: Instagram, twin: InstagramTwin) -> None:
    (id_,) = container = await upload_image(instagram, twin)
    twin.containers[id_] |= {"status": "IN_PROGRESS", "polls_left": 5}
    with pytest.raises(OutcomeUncertain):
        await instagram.look_up(account(twin, SECRET), container)


async def test_expired_container_is_reported_as_upload_expired(instagram: Instagram, twin: InstagramTwin) -> None:
    (id_,) = container = await upload_image(instagram, twin)
    twin.containers[id_]["status"] = "EXPIRED"
    with pytest.raises(UploadExpired):
        await instagram.publish(account(twin, SECRET), outgoing(), "key", container)


async def test_unready_container_is_retried(instagram: Instagram, twin: InstagramTwin) -> None:
    (id_,) = container = await upload_image(instagram, twin)
    twin.containers[id_]["status"] = "IN_PROGRESS"
    with pytest.raises(RetryableFailure):
        await instagram.publish(account(twin, SECRET), outgoing(), "key", container)
    assert twin.ledger == []


async def test_instagram_reached_quota_is_refused(instagram: Instagram, twin: InstagramTwin) -> None:
    twin.quota = 1
    await instagram.publish(account(twin, SECRET), outgoing(), "key", await upload_image(instagram, twin))
    with pytest.raises(PublishingRefused) as refusal:
        await instagram.publish(account(twin, SECRET), outgoing(), "key", await upload_image(instagram, twin))
    assert refusal.value.code == "QUOTA_REACHED"
    assert len([path for path in twin.request_counts if "publish" in path and "POST" in path]) == 1


@pytest.mark.parametrize(
    ("failure", "outcome"),
    [
        (graph_error(400, "Fatal", 4, 2207051), OutcomeUncertain),
        (graph_error(400, "limit", 9, 2207042), PublishingRefused),
        (graph_error(403, "rate", 4), RetryableFailure),
        (graph_error(403, "rate", 32), RetryableFailure),
        (graph_error(400, "spam", 100, 2207006), PublishingRefused),
        (graph_error(500, "oops", 2), OutcomeUncertain),
        (graph_error(400, "Instagram server error", -1, 2207001), OutcomeUncertain),
        (graph_error(400, "The media you are trying to access has expired", -2, 2207020), UploadExpired),
        (expired_token(), CredentialsRefused),
    ],
)
async def test_instagram_error_codes_map_to_outcomes(
    instagram: Instagram, twin: InstagramTwin, failure: object, outcome: type[Exception]
) -> None:
    container = await upload_image(instagram, twin)
    twin.failure = failure  # type: ignore[assignment]
    with pytest.raises(outcome):
        await instagram.publish(account(twin, SECRET), outgoing(), "key", container)


@pytest.mark.parametrize(
    ("failure", "outcome"),
    [
        (graph_error(400, "Create media fail, please try to re-create media", -1, 2207032), RetryableFailure),
        (graph_error(400, "It takes too long to download the media.", -2, 2207003), RetryableFailure),
        (graph_error(403, "Application request limit reached", 4), RetryableFailure),
        (graph_error(400, "The image format is not supported", 36001, 2207005), PublishingRefused),
    ],
)
async def test_failed_container_is_created_again_if_instagram_failed(
    instagram: Instagram, twin: InstagramTwin, failure: Response, outcome: type[Exception]
) -> None:
    twin.creation_failure = failure
    with pytest.raises(outcome):
        await upload_image(instagram, twin)


async def test_invalid_media_and_tokens_are_refused(instagram: Instagram, twin: InstagramTwin) -> None:
    with pytest.raises(CredentialsRefused):
        await instagram.upload(account(twin, "1784:wrong"), outgoing("x", IMAGE))
    twin.fails_processing = True
    with pytest.raises(PublishingRefused) as refusal:
        await upload_image(instagram, twin)
    assert refusal.value.code == "MEDIA_REFUSED"
    assert instagram.new_key("pub1", DUE_AT) == "pub1"
