"""GET /images/{signature}/{encoded URL}: images of previews and media, fetched through the address guard and cached.

Serves only addresses that the API has signed, and only raster images. The media type is determined from the bytes of
the image, not from the header Content-Type.
"""

import asyncio
import hashlib
from contextlib import suppress
from dataclasses import dataclass
from http import HTTPStatus

from cachetools import LRUCache
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from jobs.providers.egress import Egress, EgressFailed, EgressRefused, EgressTooLarge
from storage.secrets.image_urls import ImageUrls

MAX_IMAGE_BYTES = 5 * 1024 * 1024
FETCH_TIMEOUT_S = 5.0
WAIT_TIMEOUT_S = 15.0
"""Timeout of a fetch together with the wait for a free slot."""
MAX_AGE_S = 86_400
FAILURE_TTL_S = 30.0

_ACCEPT = ("image/avif", "image/webp", "image/png", "image/jpeg", "image/gif", "*/*")
# Estimated memory of a cached outcome without the image's bytes: URL, headers and objects.
_ENTRY_OVERHEAD_BYTES = 1024
_SECURITY_HEADERS = {"X-Content-Type-Options": "nosniff", "Content-Security-Policy": "default-src 'none'; sandbox"}


@dataclass(frozen=True, slots=True)
class Image:
    """A raster image with the media type of its bytes and a strong ETag."""

    body: bytes
    media_type: str
    etag: str


@dataclass(frozen=True, slots=True)
class FetchFailure:
    """A failed fetch: the status of the response, and the loop time until which it is not repeated."""

    status: HTTPStatus
    until_s: float


class ImageCache:
    """This process's cache of images by remote URL, which evicts the least recently used beyond `max_bytes`.

    At most `max_fetches` fetches run at once. Concurrent requests for a URL share one fetch.
    """

    def __init__(self, egress: Egress, max_bytes: int = 64 * 1024 * 1024, max_fetches: int = 8) -> None:
        self._egress = egress
        self._slots = asyncio.Semaphore(max_fetches)
        self._outcomes: LRUCache[str, Image | FetchFailure] = LRUCache(max_bytes, getsizeof=_size_bytes)
        self._fetches: dict[str, asyncio.Task[Image | FetchFailure]] = {}

    async def get(self, url: str) -> Image | FetchFailure:
        """Returns the image at `url`, or the failure to fetch it, which is cached for 30 s."""
        cached = self._outcomes.get(url)
        if isinstance(cached, Image) or (cached and cached.until_s > asyncio.get_running_loop().time()):
            return cached
        if url not in self._fetches:
            self._fetches[url] = asyncio.create_task(self._fetch_and_cache(url))
        # A client that disconnects must not cancel the fetch of others.
        return await asyncio.shield(self._fetches[url])

    async def _fetch_and_cache(self, url: str) -> Image | FetchFailure:
        try:
            outcome = await self._fetch(url)
            # An image larger than the whole cache is served without being cached.
            with suppress(ValueError):
                self._outcomes[url] = outcome
            return outcome
        finally:
            del self._fetches[url]

    async def _fetch(self, url: str) -> Image | FetchFailure:
        try:
            async with asyncio.timeout(WAIT_TIMEOUT_S), self._slots:
                fetched = await self._egress.get(
                    url, accept=_ACCEPT, max_bytes=MAX_IMAGE_BYTES, timeout_s=FETCH_TIMEOUT_S
                )
        except EgressTooLarge:
            return _failure(HTTPStatus.REQUEST_ENTITY_TOO_LARGE)
        except (EgressRefused, EgressFailed, TimeoutError):
            return _failure(HTTPStatus.BAD_GATEWAY)
        if not 200 <= fetched.status < 300:
            return _failure(HTTPStatus.BAD_GATEWAY)
        media_type = raster_type(fetched.body)
        if media_type is None:
            return _failure(HTTPStatus.UNSUPPORTED_MEDIA_TYPE)
        return Image(fetched.body, media_type, f'"{hashlib.sha256(fetched.body).hexdigest()[:32]}"')


def images_route(image_urls: ImageUrls, cache: ImageCache) -> Route:
    """Returns the route of signed images. Errors: 404 (not signed), 413, 415, 502."""

    async def image(request: Request) -> Response:
        remote_url = image_urls.verify(request.path_params["signature"], request.path_params["encoded"])
        if remote_url is None:
            return _refusal(HTTPStatus.NOT_FOUND)
        outcome = await cache.get(remote_url)
        return _refusal(outcome.status) if isinstance(outcome, FetchFailure) else _answer(request, outcome)

    return Route("/images/{signature}/{encoded}", image, methods=["GET"], name="images")


def raster_type(body: bytes) -> str | None:
    """Returns the media type of a PNG, JPEG, GIF, WebP or AVIF by its first bytes; None for others, including SVG."""
    if body.startswith(b"\x89PNG\r\n\x1a\n"):
        return "image/png"
    if body.startswith(b"\xff\xd8\xff"):
        return "image/jpeg"
    if body.startswith((b"GIF87a", b"GIF89a")):
        return "image/gif"
    if body.startswith(b"RIFF") and body[8:12] == b"WEBP":
        return "image/webp"
    return "image/avif" if _is_avif(body) else None


def _is_avif(body: bytes) -> bool:
    if body[4:8] != b"ftyp":
        return False
    # The first box of an ISO media file names the major brand, a version, and the compatible brands.
    end = min(int.from_bytes(body[:4]), 256)
    brands = {body[8:12], *(body[at : at + 4] for at in range(16, end, 4))}
    return not brands.isdisjoint({b"avif", b"avis"})


def _answer(request: Request, image: Image) -> Response:
    headers = _SECURITY_HEADERS | {"ETag": image.etag, "Cache-Control": f"public, max-age={MAX_AGE_S}, immutable"}
    etags = [tag.strip().removeprefix("W/") for tag in request.headers.get("if-none-match", "").split(",")]
    if image.etag in etags or "*" in etags:
        return Response(status_code=HTTPStatus.NOT_MODIFIED, headers=headers)
    return Response(image.body, media_type=image.media_type, headers=headers)


def _refusal(status: HTTPStatus) -> Response:
    # Caches of clients and proxies must not keep a failure for longer than the 30 s of this cache.
    return Response(status_code=status, headers=_SECURITY_HEADERS | {"Cache-Control": "no-store"})


def _failure(status: HTTPStatus) -> FetchFailure:
    return FetchFailure(status, asyncio.get_running_loop().time() + FAILURE_TTL_S)


def _size_bytes(outcome: Image | FetchFailure) -> int:
    return _ENTRY_OVERHEAD_BYTES + (len(outcome.body) if isinstance(outcome, Image) else 0)
