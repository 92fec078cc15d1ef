"""The outcome of a call that follows from an HTTP status or failure, and size limits of responses and media."""

import asyncio
import time

import pytest

from jobs.providers.egress import Egress
from jobs.providers.social.http import (
    MAX_CONCURRENT_VIDEOS,
    MAX_RESPONSE_BYTES,
    RESET_HEADERS,
    HttpClient,
    NetworkResponse,
    require_success,
)
from jobs.providers.social.media import MediaFile
from jobs.providers.social.network import CredentialsRefused, OutcomeUncertain, PublishingRefused, RetryableFailure
from storage.publishing.network_files import MAX_VIDEO_BYTES
from tests.jobs.providers.social.outgoing import medium
from tests.jobs.providers.stub_server import StubServer, endless, redirect, respond, silent
from tests.waiting import poll_until_true

pytestmark = pytest.mark.anyio


async def get(http: HttpClient, media: StubServer, path: str) -> NetworkResponse:
    return await http.send("GET", media.url(path))


async def fetch(http: HttpClient, url: str, max_bytes: int) -> MediaFile:
    async with http.load_medium(medium(url), max_bytes) as response:
        return response


@pytest.mark.parametrize(
    ("status", "outcome"),
    [
        *((status, PublishingRefused) for status in (301, 400, 401, 403, 422)),
        (429, RetryableFailure),
        *((status, OutcomeUncertain) for status in (500, 502, 503)),
    ],
)
async def test_http_status_maps_to_outcome(
    http: HttpClient, media: StubServer, status: int, outcome: type[Exception]
) -> None:
    media.answers["/x"] = respond(b"no", status)
    with pytest.raises(outcome):
        require_success(await get(http, media, "/x"))
    with pytest.raises(RetryableFailure if outcome is OutcomeUncertain else outcome):
        await http.send_retryable("GET", media.url("/x"))


SCOPE = b'{"error":"This action is outside the authorized scopes"}'
X_PROBLEM = b'{"title":"Forbidden","status":403,"detail":"no","type":"https://api.twitter.com/2/problems/%s"}'
EXPIRED = (
    b'{"error":{"message":"Error validating access token","type":"OAuthException","code":190,"error_subcode":463}}'
)


@pytest.mark.parametrize(
    ("status", "body", "headers", "code", "is_about_credentials"),
    [
        (401, b"no", {}, "UNAUTHORIZED", True),
        (403, SCOPE, {}, "UNAUTHORIZED", True),
        (403, b'{"error":"Your login is currently disabled"}', {}, "UNAUTHORIZED", True),
        (403, b"no", {"WWW_Authenticate": 'Bearer error="insufficient_scope"'}, "UNAUTHORIZED", True),
        (403, X_PROBLEM % b"oauth1-permissions", {}, "UNAUTHORIZED", True),
        (403, X_PROBLEM % b"client-forbidden", {}, "UNAUTHORIZED", True),
        (403, b'{"error":"This action is not allowed"}', {}, "UNAUTHORIZED", False),
        (403, X_PROBLEM % b"not-authorized-for-resource", {}, "UNAUTHORIZED", False),
        (400, EXPIRED, {}, "UNAUTHORIZED", True),
        (400, EXPIRED.replace(b"190", b"102"), {}, "UNAUTHORIZED", True),
        (400, EXPIRED.replace(b"190", b"100"), {}, "REFUSED", False),
        (400, b'{"error":"190"}', {}, "REFUSED", False),
        (404, SCOPE, {}, "REFUSED", False),
    ],
)
async def test_refused_credentials_are_a_separate_failure(
    http: HttpClient,
    media: StubServer,
    status: int,
    body: bytes,
    headers: dict[str, str],
    code: str,
    is_about_credentials: bool,
) -> None:
    media.answers["/x"] = respond(body, status, **headers)
    with pytest.raises(PublishingRefused) as refusal:
        require_success(await get(http, media, "/x"))
    assert refusal.value.code == code
    assert isinstance(refusal.value, CredentialsRefused) is is_about_credentials


async def test_retry_after_header_is_read(http: HttpClient, media: StubServer) -> None:
    media.answers["/x"] = respond(b"no", 429, Retry_After="7")
    with pytest.raises(RetryableFailure) as busy:
        require_success(await get(http, media, "/x"))
    assert busy.value.after_s == 7
    media.answers["/x"] = respond(b"no", 429, Retry_After="Fri, 31 Dec 1999 23:59:59 GMT")
    with pytest.raises(RetryableFailure) as ready:
        require_success(await get(http, media, "/x"))
    assert ready.value.after_s == 0


@pytest.mark.parametrize("name", RESET_HEADERS)
async def test_end_of_rate_limit_is_read(http: HttpClient, media: StubServer, name: str) -> None:
    media.answers["/x"] = respond(b"no", 429, **{name: str(round(time.time()) + 100)})
    with pytest.raises(RetryableFailure) as busy:
        require_success(await get(http, media, "/x"))
    assert busy.value.after_s is not None
    assert 30 < busy.value.after_s <= 101
    media.answers["/x"] = respond(b"no", 429, **{name: "soon"})
    with pytest.raises(RetryableFailure) as unclear:
        require_success(await get(http, media, "/x"))
    assert unclear.value.after_s is None


async def test_lost_response_is_uncertain(http: HttpClient, media: StubServer) -> None:
    media.answers["/x"] = silent()
    media.answers["/y"] = silent(b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n")
    calls = (http.send("GET", media.url(path), timeout_s=3) for path in ("/x", "/y"))
    outcomes = await asyncio.gather(*calls, return_exceptions=True)
    assert [type(each) for each in outcomes] == [OutcomeUncertain, OutcomeUncertain]


async def test_disconnect_before_response_is_uncertain(http: HttpClient, media: StubServer) -> None:
    async def hang_up(writer: asyncio.StreamWriter) -> None:
        writer.close()

    media.answers["/x"] = hang_up
    with pytest.raises(OutcomeUncertain):
        await get(http, media, "/x")


async def test_failed_connection_and_lookup_have_no_effect(http: HttpClient) -> None:
    for url in ("http://127.0.0.1:1/", "http://nowhere.invalid/"):
        with pytest.raises(RetryableFailure):
            await http.send("POST", url)


async def test_private_address_is_refused_before_sending(media: StubServer) -> None:
    egress = Egress()
    with pytest.raises(PublishingRefused) as refusal:
        await HttpClient(egress).send("POST", media.url("/x"))
    await egress.aclose()
    assert refusal.value.code == "BAD_ADDRESS"
    assert media.connections == 0


async def test_redirects_are_not_followed_and_bodies_are_limited(http: HttpClient, media: StubServer) -> None:
    media.answers["/x"] = redirect("/y")
    assert (await get(http, media, "/x")).status == 302
    assert media.paths() == ["/x"]
    written: list[int] = []
    media.answers["/z"] = endless(b"x" * 65536, written)
    assert len((await get(http, media, "/z")).body) <= MAX_RESPONSE_BYTES + 65536


async def test_media_are_fetched_through_egress_guard(http: HttpClient, media: StubServer) -> None:
    assert (await fetch(http, media.url("/a.png"), 5000)).content_type == "image/png"
    for url, max_bytes in ((media.url("/a.png"), 10), (media.url("/none"), 5000), ("file:///etc/passwd", 5000)):
        with pytest.raises(PublishingRefused) as refusal:
            await fetch(http, url, max_bytes)
        assert refusal.value.code == "MEDIA_UNAVAILABLE"
    with pytest.raises(RetryableFailure):
        await fetch(http, "http://127.0.0.1:1/a.png", 5000)


async def test_response_of_unexpected_shape_is_detected(http: HttpClient, media: StubServer) -> None:
    for body in (b"<html>", b"[1]", b'{"id": null}', b'{"id": {}}'):
        media.answers["/x"] = respond(body)
        with pytest.raises(ValueError, match="no id"):
            (await get(http, media, "/x")).text("id")


async def test_videos_on_disk_are_limited_apart_from_images(http: HttpClient, media: StubServer) -> None:
    videos_on_disk, max_videos_on_disk = 0, 0
    may_finish = asyncio.Event()

    async def upload() -> None:
        nonlocal videos_on_disk, max_videos_on_disk
        async with http.load_medium(medium(media.url("/b.mp4")), MAX_VIDEO_BYTES):
            videos_on_disk += 1
            max_videos_on_disk = max(max_videos_on_disk, videos_on_disk)
            await may_finish.wait()
            videos_on_disk -= 1

    tasks = [asyncio.create_task(upload()) for _ in range(MAX_CONCURRENT_VIDEOS + 2)]

    async def is_limit_reached() -> bool:
        return videos_on_disk == MAX_CONCURRENT_VIDEOS

    assert await poll_until_true(is_limit_reached)
    assert (await fetch(http, media.url("/a.png"), 5000)).content_type == "image/png"
    may_finish.set()
    await asyncio.gather(*tasks)
    assert max_videos_on_disk == MAX_CONCURRENT_VIDEOS
