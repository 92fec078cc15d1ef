"""GET /images on real servers: signatures, image types, stored copies, caching and shared fetches."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from ipaddress import ip_network

import httpx2
import pytest
import uvicorn
from hypothesis import given
from hypothesis import strategies as st
from starlette.applications import Starlette

from jobs.providers.egress import Egress
from jobs.providers.images import MAX_IMAGE_BYTES
from server.http.images import ImageCache, images_routes
from storage.files.content_types import raster_type
from storage.files.pictures import DecodedPicture, EncodedPicture
from storage.files.preview_pictures import preview_picture_id
from storage.secrets.image_urls import ImageUrls
from storage.stores import Stores
from tests.jobs.providers.stub_server import StubResponse, StubServer, head, redirect, respond, silent, stub_server
from tests.waiting import until

PNG = b"\x89PNG\r\n\x1a\n" + bytes(100)
AVIF = b"\0\0\0\x1cftypavif\0\0\0\0avifmif1miaf" + bytes(20)
AVIF_AS_COMPATIBLE_BRAND = b"\0\0\0\x1cftypmif1\0\0\0\0miafavifmif1" + bytes(20)
HEIC = b"\0\0\0\x18ftypheic\0\0\0\0mif1heic" + b"avif" + bytes(20)
SVG = b'<?xml version="1.0"?><svg xmlns="http://www.w3.org/2000/svg"><script>alert(1)</script></svg>'
RASTERS = [
    (PNG, "image/png"),
    (b"\xff\xd8\xff\xe0" + bytes(20), "image/jpeg"),
    (b"GIF87a" + bytes(20), "image/gif"),
    (b"GIF89a" + bytes(20), "image/gif"),
    (b"RIFF\x10\0\0\0WEBPVP8 " + bytes(20), "image/webp"),
    (AVIF, "image/avif"),
    (AVIF_AS_COMPATIBLE_BRAND, "image/avif"),
]
NON_RASTERS = [SVG, HEIC, b"", b"<html>", b"RIFF\x10\0\0\0WAVE", b"BM" + bytes(50), b"\0\0\0\x14ftypmp42" + bytes(20)]
IMAGES = ImageUrls("", b"a secret of the tests")


class ImageSite:
    """The image route served by uvicorn, with its cache, a client, and the remote server that holds the images."""

    def __init__(self, client: httpx2.AsyncClient, remote: StubServer, cache: ImageCache) -> None:
        self.client = client
        self.remote = remote
        self.cache = cache

    async def get(self, path: str, method: str = "GET", **headers: str) -> httpx2.Response:
        """Requests the signed URL of an image on the remote server."""
        request_headers = {name.replace("_", "-"): value for name, value in headers.items()}
        return await self.client.request(method, IMAGES.sign(self.remote.url(path)), headers=request_headers)


@asynccontextmanager
async def image_site(
    stores: Stores, max_bytes: int = 64 * 1024 * 1024, max_fetches: int = 8
) -> AsyncIterator[ImageSite]:
    cache = ImageCache(Egress((ip_network("127.0.0.1/32"),)), max_bytes, max_fetches)
    app = Starlette(routes=images_routes(IMAGES, cache, stores))
    server = uvicorn.Server(uvicorn.Config(app, port=0, lifespan="off", log_level="warning"))
    serving = asyncio.create_task(server.serve())
    while not server.started:
        await asyncio.sleep(0.01)
    port = server.servers[0].sockets[0].getsockname()[1]
    async with stub_server() as remote, httpx2.AsyncClient(base_url=f"http://127.0.0.1:{port}", timeout=60) as client:
        yield ImageSite(client, remote, cache)
        server.should_exit = True
    await serving


@pytest.fixture
async def site(stores: Stores) -> AsyncIterator[ImageSite]:
    async with image_site(stores) as served_site:
        yield served_site


@pytest.mark.parametrize(("body", "media_type"), RASTERS)
def test_raster_type_is_found_by_bytes(body: bytes, media_type: str) -> None:
    assert raster_type(body) == media_type


@pytest.mark.parametrize("body", NON_RASTERS)
def test_other_bytes_have_no_raster_type(body: bytes) -> None:
    assert raster_type(body) is None


@given(st.binary(max_size=40), st.integers(0, 12))
def test_raster_type_of_random_bytes_does_not_raise(body: bytes, length: int) -> None:
    raster_type(body)
    raster_type(AVIF[:length] + body)


@pytest.mark.anyio
async def test_image_has_type_of_its_bytes_and_safe_headers(site: ImageSite) -> None:
    site.remote.answers["/a.html"] = respond(PNG, content_type="text/html")
    answer = await site.get("/a.html")
    assert (answer.status_code, answer.content) == (200, PNG)
    expected = {
        "content-type": "image/png",
        "content-length": str(len(PNG)),
        "x-content-type-options": "nosniff",
        "content-security-policy": "default-src 'none'; sandbox",
        "cache-control": "public, max-age=86400, immutable",
    }
    assert expected.items() <= dict(answer.headers).items()
    assert answer.headers["etag"].startswith('"')


@pytest.mark.anyio
async def test_matching_etag_returns_304(site: ImageSite) -> None:
    site.remote.answers["/"] = respond(PNG)
    tag = (await site.get("/")).headers["etag"]
    for etags in (tag, f"W/{tag}", f'"other", {tag}', "*"):
        answer = await site.get("/", if_none_match=etags)
        assert (answer.status_code, answer.content, answer.headers["etag"]) == (304, b"", tag)
    assert (await site.get("/", if_none_match='"other"')).status_code == 200
    assert site.remote.connections == 1


@pytest.mark.anyio
async def test_head_returns_headers_without_body(site: ImageSite) -> None:
    site.remote.answers["/"] = respond(PNG)
    head_answer = await site.get("/", "HEAD")
    get_answer = await site.get("/")
    assert (head_answer.status_code, head_answer.content) == (200, b"")
    for name in ("content-type", "content-length", "etag", "cache-control", "content-security-policy"):
        assert head_answer.headers[name] == get_answer.headers[name]
    assert (await site.get("/", "POST")).status_code == 405


@pytest.mark.anyio
async def test_unsigned_url_is_404_without_fetch(site: ImageSite) -> None:
    signed = IMAGES.sign(site.remote.url("/"))
    _, _, signature, encoded = signed.split("/")
    other_encoded = IMAGES.sign(site.remote.url("/other")).split("/")[3]
    for path in (
        f"/images/{'A' * 22}/{encoded}",
        f"/images/{signature}/{other_encoded}",
        f"/images/%E3%81%82/{encoded}",
    ):
        answer = await site.client.get(path)
        assert (answer.status_code, answer.headers["cache-control"]) == (404, "no-store")
    assert site.remote.connections == 0


@pytest.mark.anyio
@pytest.mark.parametrize("body", NON_RASTERS)
async def test_non_raster_body_is_415_despite_content_type(site: ImageSite, body: bytes) -> None:
    site.remote.answers["/a.png"] = respond(body, content_type="image/png")
    answer = await site.get("/a.png")
    assert (answer.status_code, answer.content, answer.headers["x-content-type-options"]) == (415, b"", "nosniff")
    assert answer.headers["cache-control"] == "no-store"


@pytest.mark.anyio
async def test_image_above_5_mb_is_413(site: ImageSite) -> None:
    site.remote.answers["/largest"] = respond(PNG.ljust(MAX_IMAGE_BYTES, b"\0"))
    site.remote.answers["/too-large"] = respond(PNG.ljust(MAX_IMAGE_BYTES + 1, b"\0"))
    assert (await site.get("/largest")).status_code == 200
    assert (await site.get("/too-large")).status_code == 413


@pytest.mark.anyio
async def test_failed_fetch_is_502_and_cached(site: ImageSite) -> None:
    assert (await site.get("/missing")).status_code == 502
    site.remote.answers["/missing"] = respond(PNG)
    answer = await site.get("/missing")
    assert (answer.status_code, answer.headers["cache-control"]) == (502, "no-store")
    assert site.remote.connections == 1


@pytest.mark.anyio
async def test_failure_is_retried_after_its_ttl(site: ImageSite, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("server.http.images.FAILURE_TTL_S", 0.05)
    assert (await site.get("/late")).status_code == 502
    site.remote.answers["/late"] = respond(PNG)
    deadline = asyncio.get_running_loop().time() + 30
    while (await site.get("/late")).status_code != 200:
        assert asyncio.get_running_loop().time() < deadline
        await asyncio.sleep(0.01)
    assert site.remote.connections == 2


@pytest.mark.anyio
async def test_refused_address_is_never_connected_to(site: ImageSite) -> None:
    async with stub_server("127.0.0.2") as private:
        private.answers["/"] = respond(PNG)
        site.remote.answers["/"] = redirect(private.url("/"))
        assert (await site.get("/")).status_code == 502
        assert (await site.client.get(IMAGES.sign(private.url("/")))).status_code == 502
        assert (site.remote.connections, private.connections) == (1, 0)


@pytest.mark.anyio
async def test_concurrent_requests_share_one_fetch(site: ImageSite) -> None:
    release = asyncio.Event()
    site.remote.answers["/"] = respond_after(release)
    requests = [asyncio.create_task(site.get("/")) for _ in range(20)]
    await until(lambda: site.remote.connections == 1)
    release.set()
    assert {answer.status_code for answer in await asyncio.gather(*requests)} == {200}
    assert (await site.get("/")).content == PNG
    assert site.remote.connections == 1


@pytest.mark.anyio
async def test_cancelled_request_keeps_fetch_of_other_clients(site: ImageSite) -> None:
    release = asyncio.Event()
    site.remote.answers["/"] = respond_after(release)
    url = site.remote.url("/")
    first, second = (asyncio.create_task(site.cache.get(url)) for _ in range(2))
    await until(lambda: site.remote.connections == 1)
    first.cancel()
    await asyncio.gather(first, return_exceptions=True)
    release.set()
    assert getattr(await second, "body", None) == PNG
    assert site.remote.connections == 1


@pytest.mark.anyio
async def test_concurrent_fetches_are_limited(stores: Stores) -> None:
    release = asyncio.Event()
    async with image_site(stores, max_fetches=3) as site:
        site.remote.answers |= {f"/{n}": respond_after(release) for n in range(10)}
        requests = [asyncio.create_task(site.get(f"/{n}")) for n in range(10)]
        await until(lambda: len(site.cache._fetches) == 10 and site.remote.connections >= 3)
        release.set()
        assert {answer.status_code for answer in await asyncio.gather(*requests)} == {200}
        assert (site.remote.connections, site.remote.max_open) == (10, 3)


@pytest.mark.anyio
async def test_full_cache_evicts_least_recently_used_image(stores: Stores) -> None:
    async with image_site(stores, max_bytes=3 * 100_000) as site:
        site.remote.answers |= {f"/{n}": respond(PNG.ljust(90_000, b"\0")) for n in range(4)}
        for path in ("/0", "/1", "/2", "/0", "/3"):
            await site.get(path)
        assert site.remote.paths() == ["/0", "/1", "/2", "/3"]
        for path in ("/0", "/2", "/3"):
            await site.get(path)
        assert site.remote.paths() == ["/0", "/1", "/2", "/3"]
        await site.get("/1")
        assert site.remote.paths() == ["/0", "/1", "/2", "/3", "/1"]


@pytest.mark.anyio
async def test_cache_is_bounded_with_large_images_and_failures(stores: Stores) -> None:
    async with image_site(stores, max_bytes=5_000) as site:
        site.remote.answers["/"] = respond(PNG.ljust(10_000, b"\0"))
        assert (await site.get("/")).status_code == 200
        for n in range(30):
            assert (await site.get(f"/missing/{n}")).status_code == 502
        assert len(site.cache._outcomes) < 10


@pytest.mark.anyio
async def test_endless_response_is_502(site: ImageSite, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("jobs.providers.images.FETCH_TIMEOUT_S", 0.2)
    site.remote.answers["/"] = silent(head(200, "image/png") + PNG)
    assert (await site.get("/")).status_code == 502


COPY = DecodedPicture(EncodedPicture("image/webp", 40, 30, b"RIFF\x10\0\0\0WEBPVP8 copy"), (), "a-hash")


def signed_with_copy(site: ImageSite, organization_id: str = "acme") -> str:
    """Returns the URL of the remote image "/", with the id of the organization's copy."""
    url = site.remote.url("/")
    return IMAGES.sign(url, preview_picture_id(organization_id, url))


@pytest.mark.anyio
async def test_stored_copy_is_served_without_fetch(site: ImageSite, stores: Stores) -> None:
    await stores.preview_pictures.store("acme", site.remote.url("/"), COPY)
    answer = await site.client.get(signed_with_copy(site))
    assert (answer.status_code, answer.content) == (200, COPY.picture.data)
    assert answer.headers["content-type"] == "image/webp"
    assert answer.headers["content-security-policy"] == "default-src 'none'; sandbox"
    again = await site.client.get(signed_with_copy(site), headers={"if-none-match": answer.headers["etag"]})
    assert (again.status_code, site.remote.connections) == (304, 0)


@pytest.mark.anyio
async def test_image_without_copy_is_fetched(site: ImageSite, stores: Stores) -> None:
    site.remote.answers["/"] = respond(PNG)
    await stores.preview_pictures.store("acme", site.remote.url("/"), COPY)
    assert (await site.client.get(signed_with_copy(site, "zenith"))).content == PNG
    assert (await site.get("/")).content == PNG


@pytest.mark.anyio
async def test_image_whose_copy_was_lost_is_fetched(site: ImageSite, stores: Stores) -> None:
    site.remote.answers["/"] = respond(PNG)
    url = site.remote.url("/")
    await stores.preview_pictures.store("acme", url, COPY)
    await stores.file_objects.delete_all(preview_picture_id("acme", url))
    assert (await site.client.get(signed_with_copy(site))).content == PNG


@pytest.mark.anyio
async def test_copy_of_another_signature_is_404(site: ImageSite, stores: Stores) -> None:
    await stores.preview_pictures.store("zenith", site.remote.url("/"), COPY)
    signed, other = signed_with_copy(site), signed_with_copy(site, "zenith").rpartition("/")[2]
    for path in (f"{signed.rpartition('/')[0]}/{other}", signed.rpartition("/")[0], f"{IMAGES.sign('x')}/{other}"):
        assert (await site.client.get(path)).status_code == 404
    assert site.remote.connections == 0


def respond_after(release: asyncio.Event) -> StubResponse:
    """Responds with PNG once `release` is set."""

    async def answer(writer: asyncio.StreamWriter) -> None:
        await release.wait()
        await respond(PNG)(writer)

    return answer
