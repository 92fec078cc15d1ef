"""The archive of an export: a ZIP file with one NDJSON file for each collection, created piece by piece."""

import io
import zipfile
from collections.abc import AsyncIterator, Mapping, Sequence

import orjson

from storage.identity.privacy_rules import Export, Person, batches
from storage.mongo import Mongo
from storage.privacy.registry import PERSONAL_DATA

README = """This archive holds the data that the organization stores about you in Noroshi.

Each file has one JSON object a line (NDJSON, in UTF-8). The names of the values are those of the GraphQL API. Times are
in UTC. Timestamps such as "1795252800.000000" are seconds since 1970 and name an object in its list.

Texts of other people are not included, also if they mention you.
"""

FILE_NAMES: Mapping[str, str] = {"audit": "auditLog", "users": "user"}
"""Names of files that differ from the name of the collection in camel case."""

EXPORTED: Sequence[tuple[str, Sequence[Export]]] = [
    (entry.collection, entry.exports) for entry in PERSONAL_DATA.values() if entry.exports
]


class _Sink(io.RawIOBase):
    """Receives the bytes of an archive, which can't be read again."""

    def __init__(self) -> None:
        super().__init__()
        self.received = bytearray()

    def writable(self) -> bool:
        """Returns True."""
        return True

    def write(self, data: object) -> int:
        """Receives bytes."""
        view = memoryview(data)  # type: ignore[arg-type]
        self.received += view
        return view.nbytes

    def take(self) -> bytes:
        """Returns the bytes since the last call."""
        taken = bytes(self.received)
        self.received.clear()
        return taken


async def archive(mongo: Mongo, person: Person) -> AsyncIterator[tuple[bytes, bool]]:
    """Yields the bytes of a person's archive, and whether they end a file. The last bytes end no file."""
    sink = _Sink()
    with zipfile.ZipFile(sink, "w", zipfile.ZIP_DEFLATED) as file:
        file.writestr("README.txt", README)
        for collection, exports in EXPORTED:
            with file.open(f"{_file_name(collection)}.ndjson", "w", force_zip64=True) as lines:
                for export in exports:
                    async for documents in batches(mongo, collection, export.documents, person):
                        lines.write(b"".join(orjson.dumps(export.write(each)) + b"\n" for each in documents))
                        yield sink.take(), False
            yield sink.take(), True
    yield sink.take(), False


def _file_name(collection: str) -> str:
    first, *others = FILE_NAMES.get(collection, collection).split("_")
    return first + "".join(word.capitalize() for word in others)
