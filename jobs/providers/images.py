"""Images of foreign servers, fetched through the address guard."""

from jobs.providers.egress import Egress, EgressFailed, EgressRefused
from storage.files.content_types import raster_type

MAX_IMAGE_BYTES = 5 * 1024 * 1024
FETCH_TIMEOUT_S = 5.0

_ACCEPT = ("image/avif", "image/webp", "image/png", "image/jpeg", "image/gif", "*/*")
_RETRYABLE = frozenset({408, 425, 429})


class NotAnImage(EgressRefused):
    """The bytes do not begin like a raster image. The header Content-Type does not count."""


async def fetch_image(egress: Egress, url: str) -> bytes:
    """Returns the bytes of a raster image of at most 5 MiB, fetched within 5 s.

    Raises: EgressRefused, EgressTooLarge, NotAnImage (final); EgressFailed (a retry may succeed).
    """
    fetched = await egress.get(url, accept=_ACCEPT, max_bytes=MAX_IMAGE_BYTES, timeout_s=FETCH_TIMEOUT_S)
    if fetched.status in _RETRYABLE or fetched.status >= 500:
        raise EgressFailed(f"the server answers {fetched.status}")
    if not 200 <= fetched.status < 300:
        raise EgressRefused(f"the server answers {fetched.status}")
    if raster_type(fetched.body) is None:
        raise NotAnImage("the bytes are no raster image")
    return fetched.body
