"""Fetched media in temporary files, so that a worker's memory does not grow with the size of a video."""

import asyncio
from collections.abc import AsyncIterator
from dataclasses import dataclass
from io import FileIO

PIECE_BYTES = 256 * 1024
"""Size of the pieces in which a medium is read for an upload."""


@dataclass(frozen=True, slots=True)
class MediaFile:
    """A fetched medium. The file is deleted when the block that fetched it ends."""

    file: FileIO
    size: int
    content_type: str

    @property
    def media_type(self) -> str:
        """The content type without parameters."""
        return self.content_type.partition(";")[0].strip()

    async def read(self, start: int, size: int) -> bytes:
        """Returns at most `size` bytes from `start`. Reads in a thread, since a disk may be slow."""
        return await asyncio.to_thread(self._read, start, size)

    def _read(self, start: int, size: int) -> bytes:
        self.file.seek(start)
        return self.file.read(size)

    async def pieces(self) -> AsyncIterator[bytes]:
        """Yields the whole content."""
        for start in range(0, self.size, PIECE_BYTES):
            yield await self.read(start, PIECE_BYTES)
