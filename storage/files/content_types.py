"""Content types by the first bytes of a file. Neither its name nor what a client says about it counts.

A file may be valid in two formats at once. That harms nobody: only a decoded picture is shown by a browser, in the
bytes that the decoder wrote, and everything else is only downloaded.
"""

import codecs

HEAD_BYTES = 4096
"""Number of first bytes that decide the type."""

UNKNOWN = "application/octet-stream"

PICTURES = frozenset({"image/png", "image/jpeg", "image/gif", "image/webp", "image/avif", "image/heic"})
"""Types that a decoder may read. An SVG is a document with links and scripts, and no such picture."""

_SIGNATURES = (
    (0, b"\x89PNG\r\n\x1a\n", "image/png"),
    (0, b"\xff\xd8\xff", "image/jpeg"),
    (0, b"GIF87a", "image/gif"),
    (0, b"GIF89a", "image/gif"),
    (8, b"WEBP", "image/webp"),
    (0, b"%PDF-", "application/pdf"),
    (0, b"PK\x03\x04", "application/zip"),
    (0, b"PK\x05\x06", "application/zip"),
    (0, b"\x1f\x8b\x08", "application/gzip"),
    (0, b"7z\xbc\xaf\x27\x1c", "application/x-7z-compressed"),
    (0, b"\x1aE\xdf\xa3", "video/webm"),
    (0, b"OggS", "application/ogg"),
    (0, b"fLaC", "audio/flac"),
    (8, b"WAVE", "audio/wav"),
    (0, b"ID3", "audio/mpeg"),
    (0, b"\xff\xfb", "audio/mpeg"),
    (0, b"\xff\xf3", "audio/mpeg"),
)

_BRANDS = {
    b"avif": "image/avif",
    b"avis": "image/avif",
    b"heic": "image/heic",
    b"heix": "image/heic",
    b"mif1": "image/heic",
    b"qt  ": "video/quicktime",
    b"M4A ": "audio/mp4",
}
"""Types of ISO media files by brand, the most specific first. Files of other brands are videos."""

_CONTROL_CHARACTERS = frozenset(range(32)) - frozenset(b"\t\n\r\f\x1b")


def content_type(head: bytes) -> str:
    """Returns the type of a file by its first 4096 bytes; `application/octet-stream` for an unknown one."""
    for at, signature, found in _SIGNATURES:
        is_riff = at == 0 or head.startswith(b"RIFF")
        if is_riff and head.startswith(signature, at):
            return found
    if head[4:8] == b"ftyp":
        return _iso_media_type(head)
    return "text/plain" if _is_text(head) else UNKNOWN


def raster_type(body: bytes) -> str | None:
    """Returns the type of a PNG, JPEG, GIF, WebP or AVIF, which browsers show; None for any other file."""
    found = content_type(body[:HEAD_BYTES])
    return found if found in PICTURES - {"image/heic"} else None


def _iso_media_type(head: bytes) -> str:
    # The first box of an ISO media file names the major brand, a version, and the compatible brands.
    end = min(int.from_bytes(head[:4]), 256)
    brands = {head[8:12], *(head[at : at + 4] for at in range(16, end, 4))}
    return next((found for brand, found in _BRANDS.items() if brand in brands), "video/mp4")


def _is_text(head: bytes) -> bool:
    """Returns whether the bytes are UTF-8 without control characters. The last character may be cut off."""
    try:
        codecs.getincrementaldecoder("utf-8")().decode(head[:HEAD_BYTES])
    except UnicodeDecodeError:
        return False
    return bool(head) and _CONTROL_CHARACTERS.isdisjoint(head[:HEAD_BYTES])
