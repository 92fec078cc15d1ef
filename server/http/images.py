"""GET /images/{signature}/{encoded URL}: images of previews and media, fetched through the address guard and cached.

Serves only addresses that the API has signed, and only raster images by their own bytes, never by the sent header.
"""

import asyncio
import hashlib
from collections import OrderedDict
from dataclasses import dataclass
from http import HTTPStatus

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from jobs.providers.egress import Egress, EgressFailed, EgressRefused, EgressTooLarge
from storage.secrets.image_urls import ImageUrls

MAX_IMAGE_BYTES = 5 * 1024 * 1024
FETCH_TIMEOUT_S = 5.0
WAIT_TIMEOUT_S = 15.0
MAX_AGE_S = 86_400
FAILURE_TTL_S = 30.0

_ACCEPT = ("image/avif", "image/webp", "image/png", "image/jpeg", "image/gif", "*/*")
_ENTRY_OVERHEAD_BYTES = 512
_SAFE = {"X-Content-Type-Options": "nosniff", "Content-Security-Policy": "default-src 'none'; sandbox"}


@dataclass(frozen=True, slots=True)
class Image:
    """A raster image: its bytes, their type as the bytes themselves tell, and a strong ETag."""

    body: bytes
    media_type: str
    etag: str


@dataclass(frozen=True, slots=True)
class Failure:
    """Why there is no image, as an HTTP status, and until when (of the loop's clock) that is not tried again."""

    status: HTTPStatus
    until_s: float


class ImageCache:
    """Images by remote URL in this process: the least recently used leave first when `max_bytes` is reached.

    At most `max_fetches` fetches run at once, and one for a URL, which all who wait for it share.
    """

    def __init__(self, egress: Egress, max_bytes: int = 64 * 1024 * 1024, max_fetches: int = 8) -> None:
        self._egress = egress
        self._max_bytes = max_bytes
        self._slots = asyncio.Semaphore(max_fetches)
        self._kept: OrderedDict[str, Image | Failure] = OrderedDict()
        self._kept_bytes = 0
        self._fetches: dict[str, asyncio.Task[Image | Failure]] = {}

    async def get(self, url: str) -> Image | Failure:
        """The image at `url`, or why there is none; a failure is remembered for 30 s."""
        kept = self._kept.get(url)
        if isinstance(kept, Image) or (kept and kept.until_s > asyncio.get_running_loop().time()):
            self._kept.move_to_end(url)
            return kept
        if url not in self._fetches:
            self._fetches[url] = asyncio.create_task(self._fetch_and_keep(url))
        # Who hangs up must not end the fetch that others wait for.
        return await asyncio.shield(self._fetches[url])

    async def _fetch_and_keep(self, url: str) -> Image | Failure:
        try:
            outcome = await self._fetch(url)
            self._keep(url, outcome)
            return outcome
        finally:
            del self._fetches[url]

    async def _fetch(self, url: str) -> Image | Failure:
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

    def _keep(self, url: str, outcome: Image | Failure) -> None:
        if (replaced := self._kept.pop(url, None)) is not None:
            self._kept_bytes -= _size_bytes(url, replaced)
        self._kept[url] = outcome
        self._kept_bytes += _size_bytes(url, outcome)
        while self._kept_bytes > self._max_bytes:
            self._kept_bytes -= _size_bytes(*self._kept.popitem(last=False))


def images_route(image_urls: ImageUrls, cache: ImageCache) -> Route:
    """The route that serves what `image_urls` signed. Otherwise 404 (not signed), 413, 415 or 502."""

    async def image(request: Request) -> Response:
        remote_url = image_urls.verify(request.path_params["signature"], request.path_params["encoded"])
        if remote_url is None:
            return _refusal(HTTPStatus.NOT_FOUND)
        outcome = await cache.get(remote_url)
        return _refusal(outcome.status) if isinstance(outcome, Failure) else _answer(request, outcome)

    return Route("/images/{signature}/{encoded}", image, methods=["GET"], name="images")


def raster_type(body: bytes) -> str | None:
    """The media type of a PNG, JPEG, GIF, WebP or AVIF by its first bytes; None for anything else, SVG included."""
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
    # An ISO media file: its first box names the major brand, a version, and the brands it is compatible with.
    end = min(int.from_bytes(body[:4]), 256)
    brands = {body[8:12], *(body[at : at + 4] for at in range(16, end, 4))}
    return not brands.isdisjoint({b"avif", b"avis"})


def _answer(request: Request, image: Image) -> Response:
    headers = _SAFE | {"ETag": image.etag, "Cache-Control": f"public, max-age={MAX_AGE_S}, immutable"}
    known = [tag.strip().removeprefix("W/") for tag in request.headers.get("if-none-match", "").split(",")]
    if image.etag in known or "*" in known:
        return Response(status_code=HTTPStatus.NOT_MODIFIED, headers=headers)
    return Response(image.body, media_type=image.media_type, headers=headers)


def _refusal(status: HTTPStatus) -> Response:
    # Kept here only: a copy outside would live on after the 30 s.
    return Response(status_code=status, headers=_SAFE | {"Cache-Control": "no-store"})


def _failure(status: HTTPStatus) -> Failure:
    return Failure(status, asyncio.get_running_loop().time() + FAILURE_TTL_S)


def _size_bytes(url: str, outcome: Image | Failure) -> int:
    body_bytes = len(outcome.body) if isinstance(outcome, Image) else 0
    return body_bytes + len(url) + _ENTRY_OVERHEAD_BYTES
