"""Mastodon against its twin: keys, media, limits, and every documented response."""

from collections.abc import AsyncIterator

import pytest

from jobs.providers.social.http import HttpClient
from jobs.providers.social.mastodon import UNATTACHED_MEDIUM_LIFETIME_S, Mastodon
from jobs.providers.social.network import OutcomeUncertain, PublishingRefused, RetryableFailure, UploadExpired
from storage.publishing.networks import MediaKind, ReconciliationMethod
from tests.jobs.providers.social.outgoing import DUE_AT, account, medium, outgoing
from tests.jobs.providers.stub_server import StubServer
from tests.twins.mastodon import MastodonTwin
from tests.twins.twin import NetworkFault, running_twin

pytestmark = pytest.mark.anyio


@pytest.fixture
async def twin() -> AsyncIterator[MastodonTwin]:
    async with running_twin(MastodonTwin()) as twin:
        assert isinstance(twin, MastodonTwin)
        yield twin


@pytest.fixture
def mastodon(http: HttpClient) -> Mastodon:
    return Mastodon(http, poll_s=0.01)


async def test_mastodon_media_are_uploaded_and_attached(
    mastodon: Mastodon, twin: MastodonTwin, media: StubServer
) -> None:
    twin.polls_until_ready = 3
    post = outgoing("hello", medium(media.url("/a.png")), medium(media.url("/a.png"), alt="Another"))
    uploaded = await mastodon.upload(account(twin), post)
    assert uploaded.expires_in_s == UNATTACHED_MEDIUM_LIFETIME_S
    assert [twin.media[id_]["description"] for id_ in uploaded.references] == ["A hill", "Another"]
    published = await mastodon.publish(account(twin), post, "key", uploaded.references)
    assert published.external_id == twin.ledger[0].id
    assert published.url == f"{twin.url}/@ann/{twin.ledger[0].id}"
    assert all(each["used"] for each in twin.media.values())


async def test_repeated_key_returns_first_status(mastodon: Mastodon, twin: MastodonTwin) -> None:
    assert mastodon.reconciliation_method(account(twin)) is ReconciliationMethod.REPEAT
    twin.faults.extend([NetworkFault.FAIL_AFTER, NetworkFault.CUT_AFTER])
    for _ in range(2):
        with pytest.raises(OutcomeUncertain):
            await mastodon.publish(account(twin), outgoing(), "key", ())
    repeated = await mastodon.publish(account(twin), outgoing(), "key", ())
    assert [post.id for post in twin.ledger] == [repeated.external_id]
    twin.retention_s = 0
    await mastodon.publish(account(twin), outgoing(), "key", ())
    assert len(twin.ledger) == 2, "A key past its retention publishes again."


async def test_media_in_processing_are_retryable(mastodon: Mastodon, twin: MastodonTwin, media: StubServer) -> None:
    uploaded = await mastodon.upload(account(twin), outgoing("x", medium(media.url("/a.png"))))
    twin.media[uploaded.references[0]]["polls_left"] = 1
    with pytest.raises(RetryableFailure):
        await mastodon.publish(account(twin), outgoing(), "key", uploaded.references)
    assert twin.ledger == []


async def test_missing_media_are_reported_as_upload_expired(mastodon: Mastodon, twin: MastodonTwin) -> None:
    with pytest.raises(UploadExpired):
        await mastodon.publish(account(twin), outgoing(), "key", ["m99"])


@pytest.mark.parametrize("is_english", [True, False])
async def test_refusal_is_understood_in_every_language(
    mastodon: Mastodon, twin: MastodonTwin, media: StubServer, is_english: bool
) -> None:
    twin.is_english = is_english
    post = outgoing("x" * 501, medium(media.url("/a.png")))
    (id_,) = references = (await mastodon.upload(account(twin), post)).references
    with pytest.raises(PublishingRefused):
        await mastodon.publish(account(twin), post, "key", references)
    twin.media[id_]["polls_left"] = 2
    with pytest.raises(RetryableFailure):
        await mastodon.publish(account(twin), post, "key", references)
    del twin.media[id_]
    with pytest.raises(UploadExpired):
        await mastodon.publish(account(twin), post, "key", references)


async def test_too_long_text_is_refused(mastodon: Mastodon, twin: MastodonTwin) -> None:
    with pytest.raises(PublishingRefused) as refusal:
        await mastodon.publish(account(twin), outgoing("x" * 501), "key", ())
    assert refusal.value.code == "REFUSED"
    assert "500" in str(refusal.value)


async def test_wrong_token_is_refused(mastodon: Mastodon, twin: MastodonTwin, media: StubServer) -> None:
    with pytest.raises(PublishingRefused) as refusal:
        await mastodon.publish(account(twin, "wrong"), outgoing(), "key", ())
    assert refusal.value.code == "UNAUTHORIZED"
    with pytest.raises(PublishingRefused):
        await mastodon.upload(account(twin, "wrong"), outgoing("x", medium(media.url("/a.png"))))


async def test_rate_limit_is_read_from_response(mastodon: Mastodon, twin: MastodonTwin) -> None:
    twin.faults.append(NetworkFault.BUSY)
    with pytest.raises(RetryableFailure) as busy:
        await mastodon.publish(account(twin), outgoing(), "key", ())
    assert busy.value.after_s is not None
    assert 0 < busy.value.after_s <= 1
    assert twin.ledger == []


async def test_invalid_medium_is_refused(mastodon: Mastodon, twin: MastodonTwin, media: StubServer) -> None:
    with pytest.raises(PublishingRefused):
        await mastodon.upload(account(twin), outgoing("x", medium(media.url("/page"))))
    with pytest.raises(PublishingRefused):
        await mastodon.upload(account(twin), outgoing("x", medium(media.url("/none"))))


async def test_mastodon_video_is_uploaded(mastodon: Mastodon, twin: MastodonTwin, media: StubServer) -> None:
    post = outgoing("x", medium(media.url("/b.mp4"), MediaKind.VIDEO))
    (id_,) = (await mastodon.upload(account(twin), post)).references
    assert twin.media[id_]["bytes"] == 9_000_000


async def test_mastodon_has_no_status_lookup(mastodon: Mastodon, twin: MastodonTwin) -> None:
    assert mastodon.new_key("pub1", DUE_AT) == "pub1"
    with pytest.raises(OutcomeUncertain):
        await mastodon.look_up(account(twin), ())
