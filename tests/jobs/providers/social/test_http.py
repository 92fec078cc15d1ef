"""Effects implied by HTTP failures, and limits on what is read of a response."""

import asyncio

import pytest

from jobs.providers.egress import Egress, Fetched
from jobs.providers.social.http import MAX_ANSWER_BYTES, MAX_VIDEO_BYTES, VIDEOS_AT_ONCE, Http, NetworkResponse, check
from jobs.providers.social.network import CallRefused, NoEffect, OutcomeUncertain
from tests.jobs.providers.social.outgoing import medium
from tests.jobs.providers.upstream import Upstream, endless, redirect, respond, silent
from tests.storage.topic_scenario import poll_until_true

pytestmark = pytest.mark.anyio


async def asked(http: Http, media: Upstream, path: str) -> NetworkResponse:
    return await http.send("GET", media.url(path))


async def fetched(http: Http, url: str, most_bytes: int) -> Fetched:
    async with http.medium(medium(url), most_bytes) as found:
        return found


@pytest.mark.parametrize(
    ("status", "outcome"),
    [
        *((status, CallRefused) for status in (301, 400, 401, 403, 422)),
        (429, NoEffect),
        *((status, OutcomeUncertain) for status in (500, 502, 503)),
    ],
)
async def test_http_status_maps_to_outcome(http: Http, media: Upstream, status: int, outcome: type[Exception]) -> None:
    media.answers["/x"] = respond(b"no", status)
    with pytest.raises(outcome):
        check(await asked(http, media, "/x"))
    with pytest.raises(NoEffect if outcome is OutcomeUncertain else outcome):
        await http.ask("GET", media.url("/x"))


async def test_unauthorized_is_a_separate_failure(http: Http, media: Upstream) -> None:
    media.answers["/x"] = respond(b"no", 401)
    with pytest.raises(CallRefused) as refused:
        check(await asked(http, media, "/x"))
    assert refused.value.code == "UNAUTHORIZED"


async def test_retry_after_header_is_read(http: Http, media: Upstream) -> None:
    media.answers["/x"] = respond(b"no", 429, Retry_After="7")
    with pytest.raises(NoEffect) as busy:
        check(await asked(http, media, "/x"))
    assert busy.value.after_s == 7


async def test_lost_response_is_uncertain(http: Http, media: Upstream) -> None:
    media.answers["/x"] = silent()
    media.answers["/y"] = silent(b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n")
    calls = (http.send("GET", media.url(path), timeout_s=3) for path in ("/x", "/y"))
    lost = await asyncio.gather(*calls, return_exceptions=True)
    assert [type(each) for each in lost] == [OutcomeUncertain, OutcomeUncertain]


async def test_disconnect_before_response_is_uncertain(http: Http, media: Upstream) -> None:
    async def hang_up(writer: asyncio.StreamWriter) -> None:
        writer.close()

    media.answers["/x"] = hang_up
    with pytest.raises(OutcomeUncertain):
        await asked(http, media, "/x")


async def test_failed_connection_and_lookup_have_no_effect(http: Http) -> None:
    for url in ("http://127.0.0.1:1/", "http://nowhere.invalid/"):
        with pytest.raises(NoEffect):
            await http.send("POST", url)


async def test_private_address_is_refused_before_sending(media: Upstream) -> None:
    egress = Egress()
    with pytest.raises(CallRefused) as refused:
        await Http(egress).send("POST", media.url("/x"))
    await egress.aclose()
    assert refused.value.code == "BAD_ADDRESS"
    assert media.connections == 0


async def test_redirects_are_not_followed_and_bodies_are_limited(http: Http, media: Upstream) -> None:
    media.answers["/x"] = redirect("/y")
    assert (await asked(http, media, "/x")).status == 302
    assert media.paths() == ["/x"]
    written: list[int] = []
    media.answers["/z"] = endless(b"x" * 65536, written)
    assert len((await asked(http, media, "/z")).body) <= MAX_ANSWER_BYTES + 65536


async def test_media_are_fetched_through_egress_guard(http: Http, media: Upstream) -> None:
    assert (await fetched(http, media.url("/a.png"), 5000)).content_type == "image/png"
    for url, most in ((media.url("/a.png"), 10), (media.url("/none"), 5000), ("file:///etc/passwd", 5000)):
        with pytest.raises(CallRefused) as refused:
            await fetched(http, url, most)
        assert refused.value.code == "MEDIA_UNAVAILABLE"
    with pytest.raises(NoEffect):
        await fetched(http, "http://127.0.0.1:1/a.png", 5000)


async def test_response_of_unexpected_shape_is_detected(http: Http, media: Upstream) -> None:
    for body in (b"<html>", b"[1]", b'{"id": null}', b'{"id": {}}'):
        media.answers["/x"] = respond(body)
        with pytest.raises(ValueError, match="no id"):
            (await asked(http, media, "/x")).text("id")


async def test_videos_in_memory_are_limited_apart_from_images(http: Http, media: Upstream) -> None:
    inside, most = 0, 0
    go_on = asyncio.Event()

    async def upload() -> None:
        nonlocal inside, most
        async with http.medium(medium(media.url("/b.mp4")), MAX_VIDEO_BYTES):
            inside += 1
            most = max(most, inside)
            await go_on.wait()
            inside -= 1

    tasks = [asyncio.create_task(upload()) for _ in range(VIDEOS_AT_ONCE + 2)]

    async def full() -> bool:
        return inside == VIDEOS_AT_ONCE

    assert await poll_until_true(full)
    assert (await fetched(http, media.url("/a.png"), 5000)).content_type == "image/png"
    go_on.set()
    await asyncio.gather(*tasks)
    assert most == VIDEOS_AT_ONCE
