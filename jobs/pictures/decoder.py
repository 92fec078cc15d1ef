"""Decodes pictures in a separate process each, one at a time, and kills the process when it takes too long."""

import asyncio
import contextlib
import signal
import sys
import tempfile
from collections.abc import AsyncIterable, AsyncIterator
from dataclasses import asdict
from pathlib import Path
from typing import IO, Any

import orjson
import structlog

from jobs.pictures.results import PictureRefusalReason, RefusedPicture, RenditionSettings
from storage.files.pictures import MAX_PICTURE_BYTES, DecodedPicture, EncodedPicture

MAX_WALL_S = 45.0
"""How long a picture may take, with the start of the process."""

MAX_HEADER_BYTES = 16_384

PROGRAM = Path(__file__).with_name("decoding_program.py")

MEDIA_TYPES = {"JPEG": "image/jpeg", "PNG": "image/png", "WEBP": "image/webp"}

ENVIRONMENT = {"MALLOC_ARENA_MAX": "1"}
"""The whole environment of the process: no setting and no secret. One arena keeps the address space small."""

log = structlog.get_logger(__name__)


class PictureDecoder:
    """Decodes one picture at a time, so that the memory of a worker and its decoder stays bounded."""

    def __init__(self, max_wall_s: float = MAX_WALL_S) -> None:
        self._max_wall_s = max_wall_s
        self._turn = asyncio.Semaphore(1)

    async def decode(
        self, source: bytes | AsyncIterable[bytes], settings: RenditionSettings
    ) -> DecodedPicture | RefusedPicture:
        """Returns the picture's renditions without metadata, or the reason why the file is refused.

        Pieces of a file are copied to the disk one by one, so that no large file is in memory. Raises what the source
        raises; nothing for any content of the file, and nothing if the decoder's process is killed.
        """
        async with self._turn:
            with tempfile.TemporaryFile() as picture, tempfile.TemporaryFile() as answer:
                if not await _copy(source, picture):
                    limit = MAX_PICTURE_BYTES // 1024 // 1024
                    return _refusal("TOO_MANY_BYTES", f"A picture has at most {limit} MiB.")
                code = await self._run(picture, answer, settings)
                return await asyncio.to_thread(_read_answer, answer, code)

    async def _run(self, picture: IO[bytes], answer: IO[bytes], settings: RenditionSettings) -> int | None:
        """Returns the exit code of the decoder's process, or None if it was killed because it took too long."""
        process = await asyncio.create_subprocess_exec(
            sys.executable,
            "-I",
            str(PROGRAM),
            orjson.dumps(asdict(settings)).decode(),
            stdin=picture,
            stdout=answer,
            stderr=asyncio.subprocess.DEVNULL,
            env=ENVIRONMENT,
        )
        try:
            async with asyncio.timeout(self._max_wall_s):
                return await process.wait()
        except TimeoutError:
            return None
        finally:
            if process.returncode is None:
                with contextlib.suppress(ProcessLookupError):
                    process.kill()
                await process.wait()


async def _copy(source: bytes | AsyncIterable[bytes], picture: IO[bytes]) -> bool:
    """Copies the source to a file without a name. Returns False if the source is too large."""
    size = 0
    async for piece in _pieces(source):
        size += len(piece)
        if size > MAX_PICTURE_BYTES:
            return False
        await asyncio.to_thread(picture.write, piece)
    picture.seek(0)
    return True


async def _pieces(source: bytes | AsyncIterable[bytes]) -> AsyncIterator[bytes]:
    if isinstance(source, bytes):
        yield source
        return
    async for piece in source:
        yield piece


def _refusal(reason: str, message: str) -> RefusedPicture:
    return RefusedPicture(PictureRefusalReason(reason), message)


def _read_answer(answer: IO[bytes], code: int | None) -> DecodedPicture | RefusedPicture:
    """Reads what the process wrote, and trusts nothing of it: a hostile picture may have taken the process over."""
    if code is None or code in (-signal.SIGXCPU, -signal.SIGALRM):
        return _refusal("TOOK_TOO_LONG", "The picture takes too long to decode. Send a smaller one.")
    if code != 0:
        log.warning("the picture decoder ended", exit_code=code)
        return _refusal("DECODER_ENDED", "The picture could not be decoded. Try again, or send another picture.")
    try:
        answer.seek(0)
        header = orjson.loads(answer.readline(MAX_HEADER_BYTES))
        if "reason" in header:
            return _refusal(header["reason"], str(header["message"]))
        return _decoded_picture(header, answer)
    except (KeyError, TypeError, ValueError) as error:
        log.warning("the picture decoder answered nonsense", error=repr(error))
        return _refusal("DECODER_ENDED", "The picture could not be decoded. Try again, or send another picture.")


def _decoded_picture(header: dict[str, Any], answer: IO[bytes]) -> DecodedPicture:
    picture, *thumbnails = [_rendition(rendition, answer) for rendition in header["renditions"]]
    return DecodedPicture(picture, thumbnails, str(header["blurhash"]), bool(header["is_animated"]))


def _rendition(header: dict[str, Any], answer: IO[bytes]) -> EncodedPicture:
    size = int(header["bytes"])
    content = answer.read(min(size, MAX_PICTURE_BYTES))
    if len(content) != size:
        raise ValueError(f"expected {size} bytes, found {len(content)}")
    return EncodedPicture(MEDIA_TYPES[header["format"]], int(header["width"]), int(header["height"]), content)
