"""The archive of an export: a ZIP file with one NDJSON file for each collection, created piece by piece."""

import asyncio
import io
import zipfile
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from contextlib import suppress

import orjson

from storage.files.objects import FileObjects, ObjectMissing
from storage.files.records import FileState, StoredFile, file_record
from storage.files.uploads import FILES
from storage.identity.privacy_rules import BATCH, ExportedSelection, read_batches
from storage.ids import UserKey
from storage.mongo import Document, Mongo
from storage.privacy.registry import PERSONAL_DATA

README = """This archive holds the data that the organization stores about you in Noroshi.

Each file has one JSON object a line (NDJSON, in UTF-8). The names of the values are those of the GraphQL API. Times are
in UTC. Timestamps such as "1795252800.000000" are seconds since 1970 and name an object in its list.

The folder `files` holds the files that you uploaded, the latest first, up to 200 MiB together.
`files.ndjson` lists all of them. A file that the storage has lost is empty or cut off here.

Texts of other people are not included, also if they mention you.
"""

MAX_FILE_BYTES = 200 * 1024 * 1024
"""Size of the uploaded files that an archive holds, together. The archive itself has a greatest size too."""

PIECE_BYTES = 256 * 1024
"""Size from which lines are compressed, in a thread. One document may exceed it."""

FILE_NAMES: Mapping[str, str] = {"audit": "auditLog", "users": "user"}
"""Names of files that differ from the name of the collection in camel case."""

EXPORTED: Sequence[tuple[str, Sequence[ExportedSelection]]] = [
    (entry.collection, entry.exports) for entry in PERSONAL_DATA.values() if entry.exports
]


class _ArchiveBuffer(io.RawIOBase):
    """Collects the bytes of an archive until they are taken. It can't seek back to earlier bytes."""

    def __init__(self) -> None:
        super().__init__()
        self.received = bytearray()

    def writable(self) -> bool:
        """Returns True."""
        return True

    def write(self, data: object) -> int:
        """Adds bytes."""
        view = memoryview(data)  # type: ignore[arg-type]
        self.received += view
        return view.nbytes

    def take(self) -> bytes:
        """Returns and forgets the bytes that were written since the last call."""
        taken = bytes(self.received)
        self.received.clear()
        return taken


async def archive(mongo: Mongo, objects: FileObjects, person: UserKey) -> AsyncIterator[tuple[bytes, bool]]:
    """Yields the bytes of a person's archive, and whether they end a file. The last bytes are the ZIP directory."""
    buffer = _ArchiveBuffer()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as zip_file:
        zip_file.writestr("README.txt", README)
        for collection, exports in EXPORTED:
            with zip_file.open(f"{_file_name(collection)}.ndjson", "w", force_zip64=True) as lines:
                for export in exports:
                    async for documents in read_batches(mongo, collection, export.documents, person):
                        for piece in _pieces(export, documents):
                            # Compression would block the loop, which starts calls, for hundreds of milliseconds.
                            await asyncio.to_thread(lines.write, piece)
                            yield buffer.take(), False
            yield buffer.take(), True
        async for file in _uploaded_files(mongo, person):
            # Most files are compressed already.
            entry = zipfile.ZipInfo(f"files/{file.id}/{file.name}", file.created_at.timetuple()[:6])
            # A lost object must not keep the person from the rest of the data.
            with zip_file.open(entry, "w", force_zip64=True) as content, suppress(ObjectMissing):
                async for chunk in objects.read(file.parts, 0, file.stored_size):
                    content.write(chunk)
                    yield buffer.take(), False
    yield buffer.take(), False


def _pieces(export: ExportedSelection, documents: Sequence[Document]) -> Iterator[bytes]:
    """Yields the lines of the documents in pieces of about PIECE_BYTES."""
    piece = bytearray()
    for document in documents:
        piece += orjson.dumps(export.write(document)) + b"\n"
        if len(piece) >= PIECE_BYTES:
            yield bytes(piece)
            piece.clear()
    if piece:
        yield bytes(piece)


async def _uploaded_files(mongo: Mongo, person: UserKey) -> AsyncIterator[StoredFile]:
    """Yields the person's files that are ready, the latest first, while they have at most 200 MiB together."""
    size = 0
    query: Document = {"org": person.organization_id, "user": person.user_id}
    while documents := await mongo.find(FILES, query, None, [("_id", -1)], BATCH):
        for file in map(file_record, documents):
            size += file.stored_size
            if size > MAX_FILE_BYTES:
                return
            if file.state is FileState.READY:
                yield file
        query["_id"] = {"$lt": documents[-1]["_id"]}


def _file_name(collection: str) -> str:
    first, *others = FILE_NAMES.get(collection, collection).split("_")
    return first + "".join(word.capitalize() for word in others)
