"""Previews in one process: the image of a page is copied by the decoder, or left out when it is no picture."""

import asyncio
from collections.abc import AsyncIterator
from dataclasses import dataclass
from ipaddress import ip_network
from typing import Any

import pytest

from jobs.context import MAX_IMAGE_FETCHES, JobContext
from jobs.link_previews import preview_message_link, preview_post_link
from jobs.providers.egress import Egress
from storage.feed.changes import NewPost
from storage.files.content_types import raster_type
from storage.files.link_previews import LinkPreview
from storage.files.preview_pictures import preview_picture_id
from storage.stores import Stores
from tests.jobs.contexts import job_context
from tests.jobs.pictures.hostile_files import encoded, gps_exif, gradient, png_bomb
from tests.jobs.providers.stub_server import StubResponse, StubServer, redirect, respond, silent, stub_server
from tests.storage.topic_scenario import TopicScenario, create_topic_scenario

pytestmark = pytest.mark.anyio

PNG = b"\x89PNG\r\n\x1a\n"
SVG = b'<svg xmlns="http://www.w3.org/2000/svg" onload="alert(1)"><script>alert(1)</script></svg>'


@dataclass(frozen=True)
class LinkScenario:
    """A website to link to, a topic, and the context of a worker."""

    site: StubServer
    topic: TopicScenario
    jobs: JobContext

    async def preview(self, image: str = "/image", path: str = "/page") -> LinkPreview:
        """Posts a message with a link to a page that names the image. Returns the preview that the job stores."""
        self.site.answers[path] = respond(f'<title>Tides</title><meta property="og:image" content="{image}">'.encode())
        posted = await self.topic.post(f"see {self.site.url(path)}")
        await preview_message_link(self.worker, posted.topic_id, posted.timestamp)
        preview = (await self.topic.stores.messages.get(posted.key)).link_preview
        assert preview is not None
        assert preview.title == "Tides"
        return preview

    @property
    def worker(self) -> dict[str, Any]:
        return {"jobs": self.jobs, "job_try": 1}

    async def copy(self, path: str = "/image") -> bytes | None:
        """Returns the bytes of the stored copy of an image, or None."""
        stores = self.topic.stores
        id_ = preview_picture_id(self.topic.organization_id, self.site.url(path))
        file = await stores.preview_pictures.find(id_)
        return None if file is None else await stores.file_objects.read_all(file.parts)


@pytest.fixture
async def links(stores: Stores) -> AsyncIterator[LinkScenario]:
    scenario = await create_topic_scenario(stores)
    async with stub_server() as site:
        egress = Egress((ip_network("127.0.0.1/32"),))
        yield LinkScenario(site, scenario, job_context(scenario.stores, egress))
        await egress.aclose()


async def test_copy_has_only_pixels_and_a_size(links: LinkScenario) -> None:
    photo = encoded(gradient(1280, 960), "JPEG", exif=gps_exif(6)) + b"archive"
    links.site.answers["/image"] = respond(photo, content_type="text/html")
    preview = await links.preview()
    assert preview.image is not None
    assert (preview.image.url, preview.image.width, preview.image.height) == (links.site.url("/image"), 480, 640)
    stored = await links.copy()
    assert stored is not None
    assert raster_type(stored) == "image/webp"
    assert not any(each in stored for each in (b"Secret", b"Exif", b"archive"))


async def test_further_previews_use_the_copy(links: LinkScenario) -> None:
    links.site.answers["/image"] = respond(encoded(gradient(40, 30), "PNG"))
    assert await links.preview(path="/1") == await links.preview(path="/1")
    await links.preview(path="/2")
    assert links.site.paths().count("/image") == 1


async def test_post_has_the_copy_too(links: LinkScenario) -> None:
    links.site.answers |= {
        "/image": respond(encoded(gradient(40, 30), "PNG")),
        "/page": respond(b'<title>Tides</title><meta property="og:image" content="/image">'),
    }
    organization_id, posts = links.topic.organization_id, links.topic.stores.posts
    post = await posts.create(NewPost(organization_id, "ann", links.site.url("/page"), (), (), (), None), None)
    await preview_post_link(links.worker, organization_id, post.timestamp)
    preview = (await posts.get(post.key)).link_preview
    assert preview is not None
    assert preview.image is not None
    assert (preview.image.width, preview.image.height) == (40, 30)


@pytest.mark.parametrize(
    "body",
    [png_bomb(9000, 9000), SVG, PNG + b"damaged", b"<html>", PNG.ljust(5 * 1024 * 1024 + 1, b"\0")],
    ids=["bomb", "svg", "damaged", "page", "too large"],
)
async def test_refused_image_is_left_out(links: LinkScenario, body: bytes) -> None:
    links.site.answers["/image"] = respond(body, content_type="image/png")
    preview = await links.preview()
    assert (preview.image_url, preview.image, await links.copy()) == (None, None, None)


async def test_image_at_a_private_address_is_never_requested(links: LinkScenario) -> None:
    async with stub_server("127.0.0.2") as private:
        private.answers["/"] = respond(encoded(gradient(40, 30), "PNG"))
        links.site.answers["/image"] = redirect(private.url("/"))
        for image in (private.url("/"), "/image", "http://169.254.169.254/latest/meta-data/"):
            assert (await links.preview(image)).image_url is None
        assert private.connections == 0


async def test_image_that_is_late_stays_without_a_copy(links: LinkScenario, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("jobs.link_previews.IMAGE_TIMEOUT_S", 0.3)
    links.site.answers |= {"/image": silent(PNG), "/failing": respond(b"", status=503)}
    for path in ("/image", "/failing"):
        preview = await links.preview(path)
        assert (preview.image_url, preview.image) == (links.site.url(path), None)


async def test_two_images_are_fetched_at_a_time(links: LinkScenario) -> None:
    running: set[str] = set()
    most = 0

    def counted(path: str) -> StubResponse:
        async def answer(writer: asyncio.StreamWriter) -> None:
            nonlocal most
            running.add(path)
            most = max(most, len(running))
            await asyncio.sleep(0.05)
            running.discard(path)
            await respond(encoded(gradient(40, 30), "PNG"))(writer)

        return answer

    links.site.answers |= {f"/image/{n}": counted(f"/image/{n}") for n in range(6)}
    await asyncio.gather(*(links.preview(f"/image/{n}", f"/page/{n}") for n in range(6)))
    assert most == MAX_IMAGE_FETCHES
