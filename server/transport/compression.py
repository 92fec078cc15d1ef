"""Content encodings: compresses answers as clients accept it, and decodes the bodies of requests up to a limit."""

import zlib
from collections.abc import Awaitable, Callable

import brotli
import zstandard
from starlette.types import ASGIApp, Receive, Scope, Send
from starlette_compress import CompressMiddleware, add_compress_type, remove_compress_type

from storage.errors import BadUserInput

GZIP = zlib.MAX_WBITS | 16
MAX_WINDOW_BYTES = 8 * 1024 * 1024
"""The largest window of zstd, which every decoder should accept (RFC 9659)."""

# Each compressed event stream would keep a compressor.
remove_compress_type("text/event-stream")
add_compress_type("application/graphql-response+json")


class Compression:
    """ASGI middleware that compresses answers of 500 bytes and more with zstd, Brotli or gzip."""

    def __init__(self, app: ASGIApp) -> None:
        self._app, self._compress = app, CompressMiddleware(app)

    def __call__(self, scope: Scope, receive: Receive, send: Send) -> Awaitable[None]:
        """Returns the awaitable of a request, or that of the next application for a socket."""
        return (self._compress if scope["type"] == "http" else self._app)(scope, receive, send)


def decode(body: bytes, encoding: str, max_bytes: int) -> bytes:
    """Returns the body without its Content-Encoding, or the first `max_bytes + 1` bytes if it is longer.

    Raises: BadUserInput for an unknown encoding, and for a body that is not one whole stream of the encoding.
    """
    if encoding == "identity":
        return body
    decoder = _DECODERS.get(encoding)
    if decoder is None:
        raise BadUserInput("Content-Encoding", f"{', '.join(_DECODERS)} or identity")
    try:
        decoded, is_whole = decoder(body, max_bytes + 1)
    except (zlib.error, brotli.error, zstandard.ZstdError):
        is_whole, decoded = False, b""
    if not is_whole and len(decoded) <= max_bytes:
        raise BadUserInput("body", f"a whole {encoding} stream, as Content-Encoding says")
    return decoded


def _gunzip(body: bytes, max_bytes: int) -> tuple[bytes, bool]:
    inflater = zlib.decompressobj(GZIP)
    decoded = inflater.decompress(body, max_bytes)
    return decoded, inflater.eof and not inflater.unused_data


def _decode_brotli(body: bytes, max_bytes: int) -> tuple[bytes, bool]:
    decompressor, decoded = brotli.Decompressor(), b""
    part = decompressor.process(body, output_buffer_limit=max_bytes)
    while part and len(decoded) < max_bytes:
        decoded += part
        part = b"" if decompressor.is_finished() else decompressor.process(b"", output_buffer_limit=max_bytes)
    return decoded, decompressor.is_finished()


def _decode_zstd(body: bytes, max_bytes: int) -> tuple[bytes, bool]:
    decompressor = zstandard.ZstdDecompressor(max_window_size=MAX_WINDOW_BYTES)
    decoded = decompressor.stream_reader(body, read_across_frames=False).read(max_bytes)
    if len(decoded) == max_bytes:
        return decoded, False
    # Readers do not tell a whole frame from one that is cut off. This decoder does, but it has no limit.
    frame = decompressor.decompressobj()
    frame.decompress(body)
    return decoded, frame.eof and not frame.unused_data


_DECODERS: dict[str, Callable[[bytes, int], tuple[bytes, bool]]] = {
    "gzip": _gunzip,
    "br": _decode_brotli,
    "zstd": _decode_zstd,
}
