"""Bluesky against its twin: sessions, blobs, and records whose keys the product chooses."""

from collections.abc import AsyncIterator
from datetime import datetime, timedelta

import pytest

from jobs.providers.social.bluesky import Bluesky, tid
from jobs.providers.social.bluesky_video import VideoService
from jobs.providers.social.http import HttpClient
from jobs.providers.social.network import OutcomeUncertain, PublishingRefused, RetryableFailure, UploadExpired
from storage.publishing.networks import MediaKind, ReconciliationMethod
from storage.publishing.records import ScheduledMedia
from tests.jobs.providers.social.outgoing import DUE_AT, account, medium, outgoing
from tests.jobs.providers.stub_server import StubServer
from tests.twins.bluesky import TID, BlueskyTwin, xrpc_error
from tests.twins.twin import NetworkFault, running_twin

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


async def test_bluesky_record_holds_images_links_and_text(
    bluesky: Bluesky, twin: BlueskyTwin, media: StubServer
) -> None:
    post = outgoing("狼煙 https://example.org/x.", medium(media.url("/a.png")))
    uploaded = await bluesky.upload(account(twin, SECRET), post)
    key = bluesky.new_key("pub1", DUE_AT)
    published = await bluesky.publish(account(twin, SECRET), post, key, uploaded.references)
    (record,) = twin.bodies
    created_at = datetime.fromisoformat(record["createdAt"])
    assert timedelta(0) <= created_at - DUE_AT.replace(microsecond=0) < timedelta(seconds=1)
    (facet,) = record["facets"]
    start, end = facet["index"]["byteStart"], facet["index"]["byteEnd"]
    assert record["text"].encode()[start:end] == b"https://example.org/x"
    (image,) = record["embed"]["images"]
    assert (image["alt"], image["image"]["mimeType"]) == ("A hill", "image/png")
    assert published.external_id == f"at://did:plc:twin/app.bsky.feed.post/{key}"
    assert published.url == f"https://bsky.app/profile/did:plc:twin/post/{key}"


async def test_bluesky_repeated_key_publishes_once(bluesky: Bluesky, twin: BlueskyTwin) -> None:
    assert bluesky.reconciliation_method(account(twin, SECRET)) is ReconciliationMethod.REPEAT
    key = bluesky.new_key("pub1", DUE_AT)
    twin.faults.extend([NetworkFault.FAIL_AFTER, NetworkFault.CUT_AFTER, NetworkFault.CUT_BEFORE])
    for _ in range(3):
        with pytest.raises(OutcomeUncertain):
            await bluesky.publish(account(twin, SECRET), outgoing(), key, ())
    await bluesky.publish(account(twin, SECRET), outgoing(), key, ())
    assert [post.id for post in twin.ledger] == [key]


async def test_bluesky_record_keys_are_timestamp_identifiers() -> None:
    keys = {Bluesky(None).new_key("pub1", DUE_AT) for _ in range(100)}  # type: ignore[arg-type]
    assert len(keys) == 100
    assert all(TID.fullmatch(key) for key in keys)
    assert tid(0, 0) == "2222222222222"
    assert tid(1, 0) > tid(0, 1023)


async def test_bluesky_session_is_reused_until_it_expires(bluesky: Bluesky, twin: BlueskyTwin) -> None:
    for number in range(3):
        await bluesky.publish(account(twin, SECRET), outgoing(str(number)), bluesky.new_key("p", DUE_AT), ())
    assert twin.jwt_count == 1
    twin.jwt_count = 5
    with pytest.raises(RetryableFailure) as expired:
        await bluesky.publish(account(twin, SECRET), outgoing(), bluesky.new_key("p", DUE_AT), ())
    assert expired.value.after_s == 0
    await bluesky.publish(account(twin, SECRET), outgoing(), bluesky.new_key("p", DUE_AT), ())
    assert len(twin.ledger) == 4


async def test_bluesky_wrong_password_is_refused(bluesky: Bluesky, twin: BlueskyTwin) -> None:
    with pytest.raises(PublishingRefused) as refusal:
        await bluesky.publish(account(twin, "ann.example:wrong"), outgoing(), tid(1, 1), ())
    assert refusal.value.code == "UNAUTHORIZED"


async def test_missing_blob_is_reported_as_upload_expired(
    bluesky: Bluesky, twin: BlueskyTwin, media: StubServer
) -> None:
    post = outgoing("x", medium(media.url("/a.png")))
    uploaded = await bluesky.upload(account(twin, SECRET), post)
    twin.blobs.clear()
    with pytest.raises(UploadExpired):
        await bluesky.publish(account(twin, SECRET), post, tid(1, 1), uploaded.references)


async def test_blob_of_wrong_form_is_refused(bluesky: Bluesky, twin: BlueskyTwin) -> None:
    """Quoted in github.com/yamada-sexta/touitomamout-next/issues/80. Another upload would be refused again."""
    message = "Invalid app.bsky.feed.post record: Expected blob value type (got {}) at $.record.embed"
    twin.refusal = xrpc_error(400, "InvalidRequest", message)
    with pytest.raises(PublishingRefused, match="Expected blob value type"):
        await bluesky.publish(account(twin, SECRET), outgoing(), tid(1, 1), ())


async def test_session_expired_before_upload_is_renewed(bluesky: Bluesky, twin: BlueskyTwin, media: StubServer) -> None:
    for post in (outgoing("x", medium(media.url("/a.png"))), outgoing("x", video(media))):
        await bluesky.upload(account(twin, SECRET), post)
        twin.jwt_count += 5
        with pytest.raises(RetryableFailure) as expired:
            await bluesky.upload(account(twin, SECRET), post)
        assert expired.value.after_s == 0
        await bluesky.upload(account(twin, SECRET), post)


async def test_invalid_record_is_refused_and_busy_server_retried(bluesky: Bluesky, twin: BlueskyTwin) -> None:
    with pytest.raises(PublishingRefused):
        await bluesky.publish(account(twin, SECRET), outgoing("x" * 301), tid(1, 1), ())
    twin.faults.append(NetworkFault.BUSY)
    with pytest.raises(RetryableFailure) as busy:
        await bluesky.publish(account(twin, SECRET), outgoing(), tid(1, 1), ())
    assert busy.value.after_s is not None
    assert 0 < busy.value.after_s <= 1
    assert twin.ledger == []


async def test_too_large_image_is_refused(bluesky: Bluesky, twin: BlueskyTwin, media: StubServer) -> None:
    with pytest.raises(PublishingRefused):
        await bluesky.upload(account(twin, SECRET), outgoing("x", medium(media.url("/b.mp4"))))


async def test_bluesky_has_no_status_lookup(bluesky: Bluesky, twin: BlueskyTwin) -> None:
    with pytest.raises(OutcomeUncertain):
        await bluesky.look_up(account(twin, SECRET), ())
