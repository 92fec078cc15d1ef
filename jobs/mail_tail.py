"""Following a mail log without losing or doubling a line: through rotation by name or by copy, truncation and restarts.

A file is known by its first line, whatever it is called by now. What was read is saved only after its events are
durable, so a crash reads some lines again, whose events are known by then.
"""

import asyncio
import os
import time
from collections.abc import Awaitable, Callable, Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from hashlib import sha256
from io import BufferedReader
from pathlib import Path

import orjson
import structlog

from jobs.postfix import PostfixLog
from storage.mail.records import DeliveryEvent, RecordDeliveriesResult
from storage.mongo import Mongo

POLL_S = 0.2
BATCH_LINES = 1000
RETIRE_S = 60.0
"""A file that was rotated away is read on for so long: its writer may not have noticed yet."""

MAX_LINE_BYTES = 1_000_000
PACKED = {".gz", ".bz2", ".xz", ".zst"}
Record = Callable[[list[DeliveryEvent]], Awaitable[RecordDeliveriesResult]]

log = structlog.get_logger(__name__)


@dataclass(slots=True)
class Followed:
    """A file that is read: its first line's digest, how far it is read, and since when it is not the newest."""

    head: str
    offset: int
    stream: BufferedReader
    retired_at: float | None = None

    def lines(self, most: int) -> Iterator[bytes]:
        """The next whole lines. What a writer has not finished stays for later."""
        self.stream.seek(self.offset)
        for _ in range(most):
            line = self.stream.readline(MAX_LINE_BYTES)
            if not line.endswith(b"\n") and len(line) < MAX_LINE_BYTES:
                return
            self.offset += len(line)
            yield line


@dataclass(slots=True)
class Tail:
    """One log's reader. `state` is the file in which it remembers how far it came."""

    path: Path
    state: Path
    record: Record
    mongo: Mongo
    log: PostfixLog = field(default_factory=PostfixLog)
    _files: list[Followed] = field(default_factory=list)

    async def run(self) -> None:
        """Reads for ever."""
        self.restore()
        while True:
            if not await self.step():
                await asyncio.sleep(POLL_S)

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
            elif each.retired_at is not None and time.monotonic() - each.retired_at > RETIRE_S:
                each.stream.close()
                self._files.remove(each)
        return count

    async def _take(self, lines: list[bytes]) -> None:
        now = await self.mongo.now()
        events = [event for line in lines for event in self.log.read(line, now)]
        for start in range(0, len(events), BATCH_LINES):
            result = await self.record(events[start : start + BATCH_LINES])
            log.info("mail_log", taken=result.accepted, known=result.duplicates, refused=len(result.rejected))

    def _look(self) -> None:
        """Finds out which file has the name by now, and whether the one that is read was cut."""
        stream = _opened(self.path)
        if stream is None:
            return
        head = _head(stream)
        newest = next((each for each in self._files if each.retired_at is None), None)
        if head is None or (newest is not None and newest.head == head and not _was_cut(newest, stream)):
            stream.close()
            return
        if newest is not None:
            self._retire(newest, head)
        self._files.append(Followed(head, 0, stream))

    def _retire(self, file: Followed, newest_head: str) -> None:
        """Reads a file that was rotated away to its end, and before it what was rotated away after it, unseen."""
        file.retired_at = time.monotonic()
        changed_at = os.fstat(file.stream.fileno()).st_mtime
        if os.fstat(file.stream.fileno()).st_size < file.offset or _head(file.stream) != file.head:
            # It was copied and emptied instead of renamed: the copy has what was not read yet.
            file.stream.close()
            self._files.remove(file)
            found = self._find(file.head, self._rotated())
            if found is None:
                return
            changed_at = os.fstat(found.fileno()).st_mtime
            self._files.append(Followed(file.head, file.offset, found, file.retired_at))
        known = {newest_head, *(each.head for each in self._files)}
        for path in self._rotated():
            stream = _opened(path)
            head = _head(stream) if stream is not None else None
            if stream is None:
                continue
            if head is None or head in known or os.fstat(stream.fileno()).st_mtime <= changed_at:
                stream.close()
                continue
            self._files.append(Followed(head, 0, stream, file.retired_at))

    def _rotated(self) -> list[Path]:
        """The files beside it that bear its name and more; compressed ones can't be read on."""
        return [path for path in sorted(self.path.parent.glob(f"{self.path.name}?*")) if path.suffix not in PACKED]

    def _find(self, head: str, among: Iterable[Path]) -> BufferedReader | None:
        """The file with that first line, whatever it is called."""
        for path in among:
            stream = _opened(path)
            if stream is not None and _head(stream) == head:
                return stream
            if stream is not None:
                stream.close()
        return None

    def restore(self) -> None:
        """Goes on where the state file says; a file that is gone by now can't be read on."""
        with suppress(FileNotFoundError):
            state = orjson.loads(self.state.read_bytes())
            self.log.waiting = state["waiting"]
            for known in state["files"]:
                stream = self._find(known["head"], (self.path, *self._rotated()))
                if stream is None:
                    log.warning("mail_log_gone", offset=known["offset"])
                    continue
                self._files.append(Followed(known["head"], known["offset"], stream))
            for older in self._files[:-1]:
                older.retired_at = time.monotonic()

    def _save(self) -> None:
        # Renamed into place, and for its owner only: addresses that wait stand in it.
        files = [{"head": each.head, "offset": each.offset} for each in self._files]
        fresh = self.state.with_name(f"{self.state.name}.new")
        with os.fdopen(os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "wb") as file:
            file.write(orjson.dumps({"files": files, "waiting": self.log.waiting}))
            file.flush()
            os.fsync(file.fileno())
        fresh.replace(self.state)


def _opened(path: Path) -> BufferedReader | None:
    try:
        return path.open("rb")
    except OSError:
        return None


def _head(stream: BufferedReader) -> str | None:
    """The digest of the first line; None as long as there is no whole one."""
    stream.seek(0)
    line = stream.readline(MAX_LINE_BYTES)
    return sha256(line).hexdigest() if line.endswith(b"\n") else None


def _was_cut(followed: Followed, current: BufferedReader) -> bool:
    return os.fstat(current.fileno()).st_size < followed.offset
