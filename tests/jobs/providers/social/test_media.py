"""Videos are fetched to temporary files and streamed from there, with real sockets on both sides."""

import asyncio
import hashlib
import os
import tempfile
import tracemalloc
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path

import pytest

from jobs.providers.social.bluesky_video import VideoService
from jobs.providers.social.http import HttpClient
from jobs.providers.social.mastodon import Mastodon
from jobs.providers.social.network import PublishingAccount, PublishingRefused, RetryableFailure
from jobs.providers.social.x import CHUNK_BYTES, X
from storage.publishing.network_files import MAX_VIDEO_BYTES
from storage.publishing.networks import MediaKind
from tests.jobs.providers.social.outgoing import medium, outgoing
from tests.jobs.providers.stub_server import StubServer, head

pytestmark = pytest.mark.anyio

BLOCK = bytes(range(256)) * 256
BLOCKS = 800
VIDEO_BYTES = BLOCKS * len(BLOCK)
MAX_MEMORY_BYTES = 6 * CHUNK_BYTES
"""Enough for X, the network that needs most: each chunk is copied into a form, and again into the socket's buffer."""

ANSWER = (
    b'{"id": "1", "data": {"id": "1"}, "jobId": "1", "state": "JOB_STATE_COMPLETED", "blob": {"size": 1}, "url": "u"}'
)


class DiscardingServer:
    """A network that takes every upload, and keeps only the sizes and digests of the bodies."""

    def __init__(self) -> None:
        self.port = 0
        self.sizes: list[int] = []
        self.digests: list[str] = []

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        headers = (await reader.readuntil(b"\r\n\r\n")).decode().lower()
        size = int(headers.partition("content-length: ")[2].partition("\r\n")[0] or 0)
        digest, remaining = hashlib.sha256(), size
        while remaining:
            data = await reader.read(min(remaining, len(BLOCK)))
            digest.update(data)
            remaining -= len(data)
        self.sizes.append(size)
        self.digests.append(digest.hexdigest())
        writer.write(head(200, "application/json", Content_Length=str(len(ANSWER))) + ANSWER)
        await writer.drain()
        writer.close()


@pytest.fixture
async def network() -> AsyncIterator[DiscardingServer]:
    network = DiscardingServer()
    server = await asyncio.start_server(network.serve, "127.0.0.1", 0)
    network.port = server.sockets[0].getsockname()[1]
    yield network
    server.close()


@pytest.fixture
def video_url(media: StubServer) -> str:
    async def answer(writer: asyncio.StreamWriter) -> None:
        writer.write(head(200, "video/mp4", Content_Length=str(VIDEO_BYTES)))
        for _ in range(BLOCKS):
            writer.write(BLOCK)
            await writer.drain()

    media.answers["/long.mp4"] = answer
    return media.url("/long.mp4")


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder of temporary files."""
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    return tmp_path


def open_files(folder: Path) -> list[str]:
    """Returns the files of the folder that this process has open, including unnamed files."""
    links = [Path("/proc/self/fd") / each for each in os.listdir("/proc/self/fd")]
    return [os.readlink(link) for link in links if link.is_symlink() and os.readlink(link).startswith(str(folder))]


async def upload_to_mastodon(http: HttpClient, base_url: str, url: str) -> None:
    post = outgoing("x", medium(url, MediaKind.VIDEO))
    await Mastodon(http).upload(PublishingAccount("a", base_url, "secret"), post)


async def upload_to_x(http: HttpClient, base_url: str, url: str) -> None:
    await X(http).upload(PublishingAccount("a", base_url, "secret"), outgoing("x", medium(url, MediaKind.VIDEO)))


async def upload_to_bluesky(http: HttpClient, base_url: str, url: str) -> None:
    async with http.load_medium(medium(url), MAX_VIDEO_BYTES) as video:
        await VideoService(http, base_url).begin("token", "did", "name", video)


@pytest.mark.parametrize("upload", [upload_to_mastodon, upload_to_x, upload_to_bluesky])
async def test_upload_of_video_holds_little_memory(
    http: HttpClient,
    network: DiscardingServer,
    video_url: str,
    folder: Path,
    upload: Callable[[HttpClient, str, str], Awaitable[None]],
) -> None:
    tracemalloc.start()
    try:
        await upload(http, f"http://127.0.0.1:{network.port}", video_url)
        _, peak_bytes = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert sum(network.sizes) >= VIDEO_BYTES
    assert peak_bytes < MAX_MEMORY_BYTES
    assert (open_files(folder), list(folder.iterdir())) == ([], [])


async def test_streamed_video_arrives_unchanged(
    http: HttpClient, network: DiscardingServer, video_url: str, folder: Path
) -> None:
    await upload_to_bluesky(http, f"http://127.0.0.1:{network.port}", video_url)
    assert network.sizes == [VIDEO_BYTES]
    assert network.digests == [hashlib.sha256(BLOCK * BLOCKS).hexdigest()]


async def test_too_large_video_leaves_no_file(http: HttpClient, video_url: str, folder: Path) -> None:
    with pytest.raises(PublishingRefused):
        async with http.load_medium(medium(video_url), VIDEO_BYTES - 1):
            pass
    assert (open_files(folder), list(folder.iterdir())) == ([], [])


async def test_upload_without_folder_for_files_is_tried_again(
    http: HttpClient, video_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", "/nowhere")
    with pytest.raises(RetryableFailure, match="temporary file"):
        async with http.load_medium(medium(video_url), MAX_VIDEO_BYTES):
            pass
