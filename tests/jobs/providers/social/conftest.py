"""An HTTP client that may reach loopback, and a server with media."""

from collections.abc import AsyncIterator
from ipaddress import ip_network

import pytest

from jobs.providers.egress import Egress
from jobs.providers.social.http import HttpClient
from tests.jobs.providers.stub_server import StubServer, respond, stub_server

PNG = b"\x89PNG" + b"x" * 1000
MP4 = b"mp4" * 3_000_000


@pytest.fixture
async def egress() -> AsyncIterator[Egress]:
    guard = Egress((ip_network("127.0.0.0/8"),))
    yield guard
    await guard.aclose()


@pytest.fixture
def http(egress: Egress) -> HttpClient:
    return HttpClient(egress, call_timeout_s=60)


@pytest.fixture
async def media() -> AsyncIterator[StubServer]:
    async with stub_server() as server:
        server.answers["/a.png"] = respond(PNG, content_type="image/png")
        server.answers["/b.mp4"] = respond(MP4, content_type="video/mp4")
        server.answers["/page"] = respond(b"<html>")
        yield server
