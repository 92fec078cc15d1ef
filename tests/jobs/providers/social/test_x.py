"""X against its twin: chunked upload, the expiry that X states, and outcomes that only a person can determine."""

from collections.abc import AsyncIterator

import pytest

from jobs.providers.social.http import HttpClient
from jobs.providers.social.network import (
    OutcomeUncertain,
    PublishingAccount,
    PublishingRefused,
    RetryableFailure,
    UploadExpired,
)
from jobs.providers.social.x import CHUNK_BYTES, X
from storage.publishing.networks import MediaKind, ReconciliationMethod
from tests.jobs.providers.social.outgoing import DUE_AT, account, medium, outgoing
from tests.jobs.providers.stub_server import StubServer, respond
from tests.twins.twin import NetworkFault, running_twin
from tests.twins.x import XTwin

pytestmark = pytest.mark.anyio


@pytest.fixture
async def twin() -> AsyncIterator[XTwin]:
    async with running_twin(XTwin()) as twin:
        assert isinstance(twin, XTwin)
        yield twin


@pytest.fixture
def x(http: HttpClient) -> X:
    return X(http, max_poll_s=0.01)


async def test_video_is_uploaded_in_chunks_and_expires_as_stated(x: X, twin: XTwin, media: StubServer) -> None:
    twin.polls_until_ready, twin.expires_s = 3, 3599
    post = outgoing("hello", medium(media.url("/b.mp4"), MediaKind.VIDEO))
    uploaded = await x.upload(account(twin), post)
    (id_,) = uploaded.references
    assert len(twin.media[id_]["chunks"]) == -(-9_000_000 // CHUNK_BYTES)
    assert (uploaded.expires_in_s, twin.media[id_]["alt"]) == (3599, "A hill")
    published = await x.publish(account(twin), post, "key", uploaded.references)
    assert published.url == f"https://x.com/i/status/{twin.ledger[0].id}"


async def test_lost_response_needs_a_person(x: X, twin: XTwin) -> None:
    assert x.reconciliation_method(account(twin)) is ReconciliationMethod.MANUAL
    twin.faults.extend(
        [NetworkFault.FAIL_AFTER, NetworkFault.CUT_AFTER, NetworkFault.FAIL_BEFORE, NetworkFault.CUT_BEFORE]
    )
    for number in range(4):
        with pytest.raises(OutcomeUncertain):
            await x.publish(account(twin), outgoing(str(number)), "key", ())
    with pytest.raises(OutcomeUncertain):
        await x.look_up(account(twin), ())
    assert x.new_key("pub1", DUE_AT) == "pub1"


async def test_rate_limit_is_read_from_response(x: X, twin: XTwin) -> None:
    twin.faults.append(NetworkFault.BUSY)
    with pytest.raises(RetryableFailure) as busy:
        await x.publish(account(twin), outgoing(), "key", ())
    assert busy.value.after_s is not None
    assert 0 < busy.value.after_s <= 1


async def test_expired_medium_is_reported_as_upload_expired(x: X, twin: XTwin, media: StubServer) -> None:
    uploaded = await x.upload(account(twin), outgoing("x", medium(media.url("/a.png"))))
    twin.expires_s = -1
    with pytest.raises(UploadExpired):
        await x.publish(account(twin), outgoing(), "key", uploaded.references)


async def test_refusals_are_final(x: X, twin: XTwin, media: StubServer) -> None:
    await x.publish(account(twin), outgoing(), "key", ())
    with pytest.raises(PublishingRefused, match="duplicate") as duplicate:
        await x.publish(account(twin), outgoing(), "other", ())
    assert duplicate.value.code == "REFUSED"
    with pytest.raises(PublishingRefused) as unauthorized:
        await x.publish(account(twin, "wrong"), outgoing("y"), "key", ())
    assert unauthorized.value.code == "UNAUTHORIZED"
    twin.fails_processing = True
    with pytest.raises(PublishingRefused) as media_refused:
        await x.upload(account(twin), outgoing("x", medium(media.url("/b.mp4"), MediaKind.VIDEO)))
    assert media_refused.value.code == "MEDIA_REFUSED"


async def test_success_without_id_raises(x: X, twin: XTwin, http: HttpClient, media: StubServer) -> None:
    media.answers["/2/tweets"] = respond(b"<html>")
    with pytest.raises((ValueError, TypeError)):
        await x.publish(PublishingAccount("a", media.url("").rstrip("/"), "token"), outgoing(), "key", ())
