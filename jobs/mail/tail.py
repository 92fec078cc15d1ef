"""Follows a mail log through rotation by rename or copy, truncation and restarts. No line is lost or counted twice.

A file is identified by its first line, not its name. The position is saved after the events are durable. After a
crash some lines are read again; their events have the same ids and are rejected as duplicates.
"""

import asyncio
import os
import time
from collections.abc import Awaitable, Callable, Iterable, Iterator
from dataclasses import dataclass, field
from functools import partial
from hashlib import sha256
from io import FileIO
from pathlib import Path
from typing import TypeVar

import orjson
import structlog
from pymongo.errors import PyMongoError

from jobs.mail.postfix import PostfixLogParser
from storage.mail.records import DeliveryEvent, RecordDeliveriesResult, RejectedDelivery
from storage.mongo import Document, Mongo

POLL_S = 0.2
BATCH_LINES = 1000
RETRY_S = 0.5
MAX_RETRY_S = 30.0
RETIRE_S = 60.0
"""How long a rotated file is still read, in seconds, because its writer may not have noticed the rotation."""

LOGGED_QUEUE_IDS = 5
"""How many queue ids of rejected lines a warning names."""

CHUNK_BYTES = 1 << 18
COMPRESSED = {".gz", ".bz2", ".xz", ".zst"}
Result = TypeVar("Result")
RecordDeliveries = Callable[[list[DeliveryEvent]], Awaitable[RecordDeliveriesResult]]

log = structlog.get_logger(__name__)


@dataclass(slots=True)
class FollowedFile:
    """An open file: the digest of its first line, the read position, and when it was found rotated (monotonic seconds).

    `rotated_at_s` is None for the file that still has the log's name.
    """

    digest: str
    offset: int
    stream: FileIO
    rotated_at_s: float | None = None

    @property
    def was_truncated(self) -> bool:
        """Whether the file was truncated since it was last read. It may have new content."""
        return _first_line_digest(self.stream) != self.digest or os.fstat(self.stream.fileno()).st_size < self.offset

    def read_lines(self, max_lines: int) -> Iterator[bytes]:
        """Yields the next complete lines and moves the position. An incomplete line is left for the next call."""
        # Not read through a buffer, because the file may have been truncated and written again.
        chunk = os.pread(self.stream.fileno(), CHUNK_BYTES, self.offset)
        ends_at = chunk.rfind(b"\n") + 1
        if not ends_at and len(chunk) == CHUNK_BYTES:
            ends_at = CHUNK_BYTES  # Longer than any log line. The chunk is skipped, so that reading continues.
        for line in _split_lines(chunk[:ends_at])[:max_lines]:
            self.offset += len(line)
            yield line


@dataclass(slots=True)
class MailLogFollower:
    """Follows one log. `record` stores the events; `state` is the file that stores the position."""

    path: Path
    state: Path
    record: RecordDeliveries
    mongo: Mongo
    parser: PostfixLogParser = field(default_factory=PostfixLogParser)
    lines: int = 0
    events: int = 0
    rejected: int = 0
    _files: list[FollowedFile] = field(default_factory=list)
    _finished_digests: set[str] = field(default_factory=set)
    """First-line digests of rotated files that have been read completely."""

    async def run(self) -> None:
        """Reads until it is cancelled."""
        self.restore()
        try:
            while True:
                if not await self.read_new_lines():
                    await asyncio.sleep(POLL_S)
        finally:
            self.close()

    @property
    def behind_bytes(self) -> int:
        """Bytes in the files that are not read yet."""
        return sum(max(os.fstat(each.stream.fileno()).st_size - each.offset, 0) for each in self._files)

    def status(self) -> Document:
        """Returns the progress since the process started."""
        counts = {"lines": self.lines, "events": self.events, "rejected": self.rejected}
        return {"file": str(self.path), **counts, "behind_bytes": self.behind_bytes}

    def close(self) -> None:
        """Closes the files."""
        for each in self._files:
            each.stream.close()

    async def read_new_lines(self) -> int:
        """Records the events of new lines, at most 1,000 lines of each file. Returns how many lines it read."""
        self._open_newest()
        count = 0
        for each in list(self._files):
            lines = list(each.read_lines(BATCH_LINES))
            count += len(lines)
            if lines:
                await self._record(lines)
                self._save()
                self.lines += len(lines)
            elif each.rotated_at_s is not None and time.monotonic() - each.rotated_at_s > RETIRE_S:
                each.stream.close()
                self._files.remove(each)
                self._finished_digests = {each.digest, *self._finished_digests.intersection(self._rotated_digests())}
        return count

    async def _record(self, lines: list[bytes]) -> None:
        now = await _retry(self.mongo.now)
        # Parsed once, before the retries. The parser has state, so parsing again could give other events.
        events = [event for line in lines for event in self.parser.parse_line(line, now)]
        for start in range(0, len(events), BATCH_LINES):
            batch = events[start : start + BATCH_LINES]
            result = await _retry(partial(self.record, batch))
            self.events += result.accepted
            self.rejected += len(result.rejected)
            log.info(
                "mail_log_read", recorded=result.accepted, duplicates=result.duplicates, rejected=len(result.rejected)
            )
            self._log_rejected(batch, result.rejected)

    def _log_rejected(self, batch: list[DeliveryEvent], rejected: Iterable[RejectedDelivery]) -> None:
        """Logs each reason once, with queue ids and times by which the lines are found. Never logs an address."""
        by_reason: dict[str, list[DeliveryEvent]] = {}
        for each in rejected:
            # A reason may end with an example, which readers could take for the address of a line.
            by_reason.setdefault(each.message.partition(" such as ")[0], []).append(batch[each.index])
        for reason, events in by_reason.items():
            instants = [each.at for each in events]
            log.warning(
                "mail_log_line_rejected",
                file=str(self.path),
                reason=reason,
                rejected=len(events),
                queue_ids=list(dict.fromkeys(each.message_id for each in events))[:LOGGED_QUEUE_IDS],
                first_at=min(instants).isoformat(),
                last_at=max(instants).isoformat(),
            )

    def _open_newest(self) -> None:
        """Opens the file that has the log's name now, unless that file is open already."""
        newest = next((each for each in self._files if each.rotated_at_s is None), None)
        if newest is not None and newest.was_truncated:
            self._continue_in_copy(newest)
            newest = None
        stream = _open_or_none(self.path)
        digest = _first_line_digest(stream) if stream is not None else None
        if stream is None or digest is None or (newest is not None and newest.digest == digest):
            if stream is not None:
                stream.close()
            return
        if newest is not None:
            newest.rotated_at_s = time.monotonic()
        self._files.append(FollowedFile(digest, 0, stream))
        self._open_rotated()

    def _continue_in_copy(self, file: FollowedFile) -> None:
        """Continues to read a truncated file in the copy that was rotated, if there is one."""
        file.stream.close()
        self._files.remove(file)
        copy = self._find(file.digest, self._rotated())
        if copy is not None:
            self._files.insert(0, FollowedFile(file.digest, file.offset, copy, time.monotonic()))

    def _open_rotated(self) -> None:
        """Opens rotated files that have not been read yet: files that were created and rotated since the last call."""
        known_digests = self._finished_digests | {each.digest for each in self._files}
        for path in self._rotated():
            stream = _open_or_none(path)
            digest = _first_line_digest(stream) if stream is not None else None
            if stream is not None and digest is not None and digest not in known_digests:
                self._files.insert(0, FollowedFile(digest, 0, stream, time.monotonic()))
            elif stream is not None:
                stream.close()

    def _rotated(self) -> list[Path]:
        """Returns the rotated files next to the log, except compressed ones."""
        return [path for path in sorted(self.path.parent.glob(f"{self.path.name}?*")) if path.suffix not in COMPRESSED]

    def _find(self, digest: str, paths: Iterable[Path]) -> FileIO | None:
        """Returns the file whose first line has this digest, or None."""
        for path in paths:
            stream = _open_or_none(path)
            if stream is not None and _first_line_digest(stream) == digest:
                return stream
            if stream is not None:
                stream.close()
        return None

    def restore(self) -> None:
        """Continues at the saved position. Without a state file, skips files that are already rotated."""
        try:
            state = orjson.loads(self.state.read_bytes())
        except FileNotFoundError:
            self._finished_digests = set(self._rotated_digests())
            self._save()
            return
        self.parser.deferred, self._finished_digests = state["waiting"], set(state["past"])
        for saved in state["files"]:
            stream = self._find(saved["head"], (self.path, *self._rotated()))
            if stream is None:
                log.warning("mail_log_missing", offset=saved["offset"])
                continue
            self._files.append(FollowedFile(saved["head"], saved["offset"], stream))
        for rotated in self._files[:-1]:
            rotated.rotated_at_s = time.monotonic()

    def _rotated_digests(self) -> Iterator[str]:
        """Yields the first-line digests of the rotated files."""
        for path in self._rotated():
            stream = _open_or_none(path)
            if stream is not None:
                with stream:
                    digest = _first_line_digest(stream)
                if digest is not None:
                    yield digest

    def _save(self) -> None:
        # Renamed into place, and readable by its owner only, since it holds addresses of deferred recipients.
        files = [{"head": each.digest, "offset": each.offset} for each in self._files]
        temporary = self.state.with_name(f"{self.state.name}.new")
        with os.fdopen(os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "wb") as file:
            file.write(
                orjson.dumps({"files": files, "waiting": self.parser.deferred, "past": list(self._finished_digests)})
            )
            file.flush()
            os.fsync(file.fileno())
        temporary.replace(self.state)


async def _retry(work: Callable[[], Awaitable[Result]]) -> Result:
    """Repeats `work` with growing pauses until it succeeds. A repeated event counts once, by its id."""
    retry_s = RETRY_S
    while True:
        try:
            return await work()
        except PyMongoError as error:
            log.warning("mail_log_delayed", error=type(error).__name__, retry_s=retry_s)
        await asyncio.sleep(retry_s)
        retry_s = min(retry_s * 2, MAX_RETRY_S)


def _split_lines(chunk: bytes) -> list[bytes]:
    """Splits at line feeds only, and keeps the line feeds."""
    if not chunk.endswith(b"\n"):
        return [chunk] if chunk else []
    return [line + b"\n" for line in chunk.split(b"\n")[:-1]]


def _open_or_none(path: Path) -> FileIO | None:
    try:
        return path.open("rb", buffering=0)
    except OSError:
        return None


def _first_line_digest(stream: FileIO) -> str | None:
    """Returns the digest of the first line; None while it is incomplete."""
    line, end, _ = os.pread(stream.fileno(), CHUNK_BYTES, 0).partition(b"\n")
    return sha256(line).hexdigest() if end else None
