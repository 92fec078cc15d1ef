"""GET /images/{signature}/{encoded URL}/{id of a copy}: images of link previews and media.

Serves the stored copy of a preview's image. Without one, the image is fetched through the address guard and cached.
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

from jobs.providers.egress import Egress, EgressFailed, EgressRefused, EgressTooLarge
from jobs.providers.images import NotAnImage, fetch_image
from server.http.openapi import Answer, DescribedRoute, Operation, Tag
from storage.errors import Unavailable
from storage.files.content_types import raster_type
from storage.files.records import StoredFile
from storage.secrets.image_urls import ImageUrls
from storage.stores import Stores

WAIT_TIMEOUT_S = 15.0
"""Timeout of a fetch together with the wait for a free slot."""
MAX_AGE_S = 86_400
FAILURE_TTL_S = 30.0

# Estimated memory of a cached outcome without the image's bytes: URL, headers and objects.
_ENTRY_OVERHEAD_BYTES = 1024
_SECURITY_HEADERS = {"X-Content-Type-Options": "nosniff", "Content-Security-Policy": "default-src 'none'; sandbox"}


_ANSWERS = {
    200: Answer("The picture.", media_types=["image/*"]),
    304: Answer("The picture has the ETag of `If-None-Match`."),
    404: Answer("The signature is wrong."),
    413: Answer("The picture is too large."),
    415: Answer("The address has no raster image."),
    502: Answer("The picture can't be fetched."),
}
SHOW_IMAGE = Operation(
    id="showImage",
    tag=Tag.FILES,
    summary="Show the picture of an address that the API has signed",
    description="Errors have no body, since pages show these pictures.",
    answers=_ANSWERS,
)
SHOW_COPY = Operation(
    id="showImageCopy",
    tag=Tag.FILES,
    summary="Show the stored copy of a link preview's picture, or else the picture of its address",
    description="Errors have no body, since pages show these pictures.",
    answers=_ANSWERS,
)


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
        # A client that disconnects must not cancel the fetch that other clients wait for.
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
                body = await fetch_image(self._egress, url)
        except EgressTooLarge:
            return _failure(HTTPStatus.REQUEST_ENTITY_TOO_LARGE)
        except NotAnImage:
            return _failure(HTTPStatus.UNSUPPORTED_MEDIA_TYPE)
        except (EgressRefused, EgressFailed, TimeoutError):
            return _failure(HTTPStatus.BAD_GATEWAY)
        return Image(body, raster_type(body) or "", f'"{hashlib.sha256(body).hexdigest()[:32]}"')


def images_routes(image_urls: ImageUrls, cache: ImageCache, stores: Stores) -> list[DescribedRoute]:
    """Returns the routes of signed images, with and without a copy. Errors: 404 (not signed), 413, 415, 502."""

    async def image(request: Request) -> Response:
        path = request.path_params
        remote_url = image_urls.verify(path["signature"], path["encoded"], path.get("copy", ""))
        if remote_url is None:
            return _refusal(HTTPStatus.NOT_FOUND)
        stored = await _stored_image(stores, path["copy"]) if "copy" in path else None
        outcome = stored or await cache.get(remote_url)
        return _refusal(outcome.status) if isinstance(outcome, FetchFailure) else _answer(request, outcome)

    return [
        DescribedRoute("/images/{signature}/{encoded}", image, {"GET": SHOW_IMAGE}),
        DescribedRoute("/images/{signature}/{encoded}/{copy}", image, {"GET": SHOW_COPY}),
    ]


async def _stored_image(stores: Stores, id_: str) -> Image | None:
    """Returns the stored copy of an image. None without one, and while the store of files does not answer."""
    try:
        file = await stores.preview_pictures.find(id_)
        return None if file is None else await _read(stores, file)
    except Unavailable:
        return None


async def _read(stores: Stores, file: StoredFile) -> Image:
    body = await stores.file_objects.read_all(file.parts)
    # An object is never changed, so its key tells one copy from the next.
    return Image(body, file.content_type or "", f'"{file.parts[0].key.rpartition("/")[2]}"')


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
