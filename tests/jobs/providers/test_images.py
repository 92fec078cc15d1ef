"""Images of foreign servers: their bytes decide, and each failure is final or may be tried again."""

from ipaddress import ip_network

import pytest

from jobs.providers.egress import Egress, EgressFailed, EgressRefused, EgressTooLarge
from jobs.providers.images import MAX_IMAGE_BYTES, NotAnImage, fetch_image
from tests.jobs.providers.stub_server import StubServer, redirect, respond, stub_server

pytestmark = pytest.mark.anyio

PNG = b"\x89PNG\r\n\x1a\n" + bytes(100)
SVG = b'<svg xmlns="http://www.w3.org/2000/svg"><script>alert(1)</script></svg>'


async def failure(site: StubServer, path: str) -> type[Exception] | None:
    """Returns the class of the failure to fetch an image, or None."""
    try:
        await fetch_image(Egress((ip_network("127.0.0.1/32"),)), site.url(path))
    except (EgressRefused, EgressFailed) as error:
        return type(error)
    return None


async def test_bytes_of_an_image_decide_and_not_its_header() -> None:
    async with stub_server() as site:
        site.answers |= {
            "/a": respond(PNG, content_type="text/html"),
            "/svg": respond(SVG, content_type="image/png"),
            "/empty": respond(b"", content_type="image/png"),
            "/large": respond(PNG.ljust(MAX_IMAGE_BYTES + 1, b"\0")),
        }
        failures = [await failure(site, path) for path in ("/a", "/svg", "/empty", "/large")]
    assert failures == [None, NotAnImage, NotAnImage, EgressTooLarge]


async def test_status_says_whether_a_retry_may_help() -> None:
    async with stub_server() as site:
        site.answers |= {f"/{status}": respond(PNG, status=status) for status in (403, 404, 410, 429, 500, 503)}
        failures = {status: await failure(site, f"/{status}") for status in (403, 404, 410, 429, 500, 503)}
    assert {status for status, each in failures.items() if each is EgressFailed} == {429, 500, 503}
    assert {status for status, each in failures.items() if each is EgressRefused} == {403, 404, 410}


async def test_redirect_to_a_private_address_is_refused() -> None:
    async with stub_server() as site, stub_server("127.0.0.2") as private:
        private.answers["/"] = respond(PNG)
        site.answers["/"] = redirect(private.url("/"))
        assert await failure(site, "/") is EgressRefused
        assert private.connections == 0
