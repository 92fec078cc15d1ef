"""Fetches recordings of calls from the addresses that reports name, and stores them as files.

The addresses pass the address guard and get no credentials. What is no audio by its first bytes is not stored.
"""

import asyncio
from io import FileIO
from tempfile import TemporaryFile

import structlog

from jobs.context import JobContext
from jobs.providers.egress import EgressFailed, EgressRefused
from storage.calls.recordings import EXTENSIONS, MAX_TRIES, RecordingClaim
from storage.errors import QuotaExceeded
from storage.files.content_types import HEAD_BYTES, content_type
from storage.files.records import StoredObject
from storage.files.uploads import MIB, PART_BYTES

MAX_FETCHES = 4
"""Number of recordings that a worker fetches at a time."""

MAX_RECORDING_BYTES = 100 * MIB
FETCH_TIMEOUT_S = 120.0
_RETRYABLE = frozenset({404, 408, 425, 429})

log = structlog.get_logger(__name__)


class NotARecording(EgressRefused):
    """The bytes do not begin like audio. The header Content-Type does not count."""


async def fetch_recordings(jobs: JobContext) -> int:
    """Fetches all recordings that are due, a few at a time. Returns their number."""
    return sum(await asyncio.gather(*(_fetch_due(jobs) for _ in range(MAX_FETCHES))))


async def _fetch_due(jobs: JobContext) -> int:
    count = 0
    while (claim := await jobs.stores.call_recordings.claim()) is not None:
        count += 1
        try:
            await _fetch(jobs, claim)
        except Exception as error:
            # The recording is due again when its claim ends. Other recordings must not wait for it.
            log.exception("recording_failed", call_id=claim.call_id, error=type(error).__name__)
    return count


async def _fetch(jobs: JobContext, claim: RecordingClaim) -> None:
    recordings = jobs.stores.call_recordings
    try:
        if claim.tries > MAX_TRIES:
            raise EgressRefused("the workers that fetched the recording have died")
        with _temporary_file() as file:
            found = await _download(jobs, claim.url, file)
            await recordings.store(claim, await _parts(jobs, claim, file), found)
    except EgressFailed as error:
        log.info("recording_not_fetched", call_id=claim.call_id, error=type(error).__name__, tries=claim.tries)
        await recordings.retry_later(claim)
    except (EgressRefused, QuotaExceeded) as error:
        log.warning("recording_refused", call_id=claim.call_id, error=type(error).__name__)
        await recordings.give_up(claim)


def _temporary_file() -> FileIO:
    """Opens a file without a name, which is deleted when it is closed, also by a crash."""
    return TemporaryFile(buffering=0)


async def _download(jobs: JobContext, url: str, file: FileIO) -> str:
    """Writes the recording to the file, and returns its type. Raises: EgressRefused; EgressFailed."""
    fetched = await jobs.egress.download(url, file, max_bytes=MAX_RECORDING_BYTES, timeout_s=FETCH_TIMEOUT_S)
    if fetched.status in _RETRYABLE or fetched.status >= 500:
        raise EgressFailed(f"the server answers {fetched.status}")
    if not 200 <= fetched.status < 300:
        raise EgressRefused(f"the server answers {fetched.status}")
    found = content_type(await asyncio.to_thread(_read_at, file, 0, HEAD_BYTES))
    if found not in EXTENSIONS:
        raise NotARecording(f"the bytes are {found}")
    return found


async def _parts(jobs: JobContext, claim: RecordingClaim, file: FileIO) -> list[StoredObject]:
    """Stores the bytes of the file as objects, one after the other, and returns these."""
    parts: list[StoredObject] = []
    while data := await asyncio.to_thread(_read_at, file, len(parts) * PART_BYTES, PART_BYTES):
        parts.append(await jobs.stores.file_objects.put(claim.file_id, data))
    return parts


def _read_at(file: FileIO, position: int, size: int) -> bytes:
    file.seek(position)
    return file.read(size)
