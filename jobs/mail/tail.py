"""Following a mail log without losing or doubling a line: through rotation by name or by copy, truncation and restarts.

A file is known by its first line, whatever it is called by now. What was read is saved only after its events are
durable, so a crash reads some lines again, whose events are known by then.
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

from jobs.mail.postfix import PostfixLogReader
from storage.mail.records import DeliveryEvent, RecordDeliveriesResult
from storage.mongo import Document, Mongo

POLL_S = 0.2
BATCH_LINES = 1000
RETRY_S = 0.5
MAX_RETRY_S = 30.0
RETIRE_S = 60.0
"""A file that was rotated away is read on for so long: its writer may not have noticed yet."""

CHUNK_BYTES = 1 << 18
PACKED = {".gz", ".bz2", ".xz", ".zst"}
Result = TypeVar("Result")
Record = Callable[[list[DeliveryEvent]], Awaitable[RecordDeliveriesResult]]

log = structlog.get_logger(__name__)


@dataclass(slots=True)
class FollowedFile:
    """A file that is read: its first line's digest, how far it is read, and since when it is not the newest."""

    head: str
    offset: int
    stream: FileIO
    retired_at: float | None = None

    @property
    def was_emptied(self) -> bool:
        """Whether other lines stand in it than those that were read."""
        return _head(self.stream) != self.head or os.fstat(self.stream.fileno()).st_size < self.offset

    def lines(self, most: int) -> Iterator[bytes]:
        """The next whole lines. What a writer has not finished stays for later."""
        # Read past any buffer: the file may have been emptied and written anew.
        chunk = os.pread(self.stream.fileno(), CHUNK_BYTES, self.offset)
        ends_at = chunk.rfind(b"\n") + 1
        if not ends_at and len(chunk) == CHUNK_BYTES:
            ends_at = CHUNK_BYTES  # no line is so long; it is skipped
        for line in _split(chunk[:ends_at])[:most]:
            self.offset += len(line)
            yield line


@dataclass(slots=True)
class Tail:
    """One log's reader. `state` is the file in which it remembers how far it came."""

    path: Path
    state: Path
    record: Record
    mongo: Mongo
    log: PostfixLogReader = field(default_factory=PostfixLogReader)
    lines: int = 0
    events: int = 0
    _files: list[FollowedFile] = field(default_factory=list)
    _past: set[str] = field(default_factory=set)

    async def run(self) -> None:
        """Reads for ever."""
        self.restore()
        try:
            while True:
                if not await self.step():
                    await asyncio.sleep(POLL_S)
        finally:
            self.close()

    @property
    def behind_bytes(self) -> int:
        """How much stands in the files that was not read yet."""
        return sum(max(os.fstat(each.stream.fileno()).st_size - each.offset, 0) for each in self._files)

    def told(self) -> Document:
        """For people who look: lines read and new events since it runs, and what is left to read."""
        return {"file": str(self.path), "lines": self.lines, "events": self.events, "behind_bytes": self.behind_bytes}

    def close(self) -> None:
        """Reads no more."""
        for each in self._files:
            each.stream.close()

    async def step(self) -> int:
        """Takes in what came since the last step, at most 1000 lines of each file. Returns how many lines."""
        self._look()
        count = 0
        for each in list(self._files):
            lines = list(each.lines(BATCH_LINES))
            count += len(lines)
            if lines:
                await self._take(lines)
                self._save()
                self.lines += len(lines)
            elif each.retired_at is not None and time.monotonic() - each.retired_at > RETIRE_S:
                each.stream.close()
                self._files.remove(each)
                self._past = {each.head, *self._past.intersection(self._heads())}
        return count

    async def _take(self, lines: list[bytes]) -> None:
        now = await _retry(self.mongo.now)
        # Read once: the log remembers who waits, so a line that is read again may say something else.
        events = [event for line in lines for event in self.log.read(line, now)]
        for start in range(0, len(events), BATCH_LINES):
            result = await _retry(partial(self.record, events[start : start + BATCH_LINES]))
            self.events += result.accepted
            log.info("mail_log", taken=result.accepted, known=result.duplicates, refused=len(result.rejected))

    def _look(self) -> None:
        """Finds out which file has the name by now."""
        newest = next((each for each in self._files if each.retired_at is None), None)
        if newest is not None and newest.was_emptied:
            self._go_on_in_copy(newest)
            newest = None
        stream = _opened(self.path)
        head = _head(stream) if stream is not None else None
        if stream is None or head is None or (newest is not None and newest.head == head):
            if stream is not None:
                stream.close()
            return
        if newest is not None:
            newest.retired_at = time.monotonic()
        self._files.append(FollowedFile(head, 0, stream))
        self._follow_missed()

    def _go_on_in_copy(self, file: FollowedFile) -> None:
        """Reads what was copied and emptied instead of renamed to its end in the copy, if there is one."""
        file.stream.close()
        self._files.remove(file)
        copy = self._find(file.head, self._rotated())
        if copy is not None:
            self._files.insert(0, FollowedFile(file.head, file.offset, copy, time.monotonic()))

    def _follow_missed(self) -> None:
        """Reads what came and was rotated away since the last look, or while nobody looked."""
        known = self._past | {each.head for each in self._files}
        for path in self._rotated():
            stream = _opened(path)
            head = _head(stream) if stream is not None else None
            if stream is not None and head is not None and head not in known:
                self._files.insert(0, FollowedFile(head, 0, stream, time.monotonic()))
            elif stream is not None:
                stream.close()

    def _rotated(self) -> list[Path]:
        """The files beside it that bear its name and more; compressed ones can't be read on."""
        return [path for path in sorted(self.path.parent.glob(f"{self.path.name}?*")) if path.suffix not in PACKED]

    def _find(self, head: str, among: Iterable[Path]) -> FileIO | None:
        """The file with that first line, whatever it is called."""
        for path in among:
            stream = _opened(path)
            if stream is not None and _head(stream) == head:
                return stream
            if stream is not None:
                stream.close()
        return None

    def restore(self) -> None:
        """Goes on where the state file says. Without one, what was rotated away by now is past."""
        try:
            state = orjson.loads(self.state.read_bytes())
        except FileNotFoundError:
            self._past = set(self._heads())
            self._save()
            return
        self.log.waiting, self._past = state["waiting"], set(state["past"])
        for known in state["files"]:
            stream = self._find(known["head"], (self.path, *self._rotated()))
            if stream is None:
                log.warning("mail_log_gone", offset=known["offset"])
                continue
            self._files.append(FollowedFile(known["head"], known["offset"], stream))
        for older in self._files[:-1]:
            older.retired_at = time.monotonic()

    def _heads(self) -> Iterator[str]:
        """The first lines of the files that were rotated away."""
        for path in self._rotated():
            stream = _opened(path)
            if stream is not None:
                with stream:
                    head = _head(stream)
                if head is not None:
                    yield head

    def _save(self) -> None:
        # Renamed into place, and for its owner only: addresses that wait stand in it.
        files = [{"head": each.head, "offset": each.offset} for each in self._files]
        fresh = self.state.with_name(f"{self.state.name}.new")
        with os.fdopen(os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "wb") as file:
            file.write(orjson.dumps({"files": files, "waiting": self.log.waiting, "past": list(self._past)}))
            file.flush()
            os.fsync(file.fileno())
        fresh.replace(self.state)


async def _retry(work: Callable[[], Awaitable[Result]]) -> Result:
    """Does it again, ever more slowly, until the database does it. Events are known by their ids: none counts twice."""
    retry_s = RETRY_S
    while True:
        try:
            return await work()
        except PyMongoError as error:
            log.warning("mail_log_waits", error=type(error).__name__, retry_s=retry_s)
        await asyncio.sleep(retry_s)
        retry_s = min(retry_s * 2, MAX_RETRY_S)


def _split(chunk: bytes) -> list[bytes]:
    """Lines with their ends. Only a line feed ends one."""
    if not chunk.endswith(b"\n"):
        return [chunk] if chunk else []
    return [line + b"\n" for line in chunk.split(b"\n")[:-1]]


def _opened(path: Path) -> FileIO | None:
    try:
        return path.open("rb", buffering=0)
    except OSError:
        return None


def _head(stream: FileIO) -> str | None:
    """The digest of the first line; None as long as there is no whole one."""
    line, end, _ = os.pread(stream.fileno(), CHUNK_BYTES, 0).partition(b"\n")
    return sha256(line).hexdigest() if end else None
