"""A search for strings of one person in everything that is stored: documents, Redis keys, files and logs."""

import base64
import io
import zipfile
import zlib
from collections.abc import Iterator, Sequence
from pathlib import Path
from urllib.parse import quote

import bson
from redis.asyncio import Redis

from storage.mongo import Mongo

WORD = "zorblax"
ADDRESS = "203.0.113.77"
PHONE = "+819076543210"
"""A number that the person has called. It stays in the call job, and must not be in a log."""

LOGGED = "worker_ready"
"""A text that every worker logs. A search of the logs that does not find it is broken."""

STRINGS = (WORD, ADDRESS)
"""Strings that nobody else uses. Each text about the person contains the word."""


def encodings(text: str) -> Iterator[bytes]:
    """Yields the forms in which a text may be stored: as it is, escaped, and in the parts of its base64 form."""
    data = text.encode()
    yield from (data, data.hex().encode(), quote(text, safe="").encode(), data.decode().encode("utf-16-le"))
    for offset in range(3):
        # The characters that encode neighbouring bytes are cut off.
        encoded = base64.b64encode(b"\0" * offset + data)
        yield encoded[-(-offset * 4 // 3) : len(encoded) // 4 * 4 - 4]


NEEDLES = {text: [needle.lower() for needle in encodings(text)] for text in (*STRINGS, PHONE, LOGGED)}


def found_strings(data: bytes, strings: Sequence[str] = STRINGS) -> list[str]:
    """Returns the strings that the data hold in any encoding that the product uses, also compressed."""
    searched = b"\n".join(expanded(data)).lower()
    return [text for text in strings if any(needle in searched for needle in NEEDLES[text])]


def expanded(data: bytes) -> Iterator[bytes]:
    """Yields the data, and their decompressed contents if they are compressed."""
    yield data
    if data[:2] == b"\x1f\x8b":
        yield zlib.decompress(data, 31)
    if zipfile.is_zipfile(io.BytesIO(data)):
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            yield from (archive.read(name) for name in archive.namelist())


async def documents_with_strings(mongo: Mongo) -> dict[str, list[str]]:
    """Returns the documents that hold any of the strings, by collection."""
    found: dict[str, list[str]] = {}
    for name in await mongo.database.list_collection_names():
        async for document in mongo[name].find():
            if found_strings(bson.encode(document)):
                found.setdefault(name, []).append(repr(document))
    return found


def files_with_strings(folder: Path, strings: Sequence[str] = STRINGS) -> dict[str, list[str]]:
    """Returns the lines that hold any of the strings, by the path of the file."""
    lines = ((path, line) for path in folder.rglob("*") if path.is_file() for line in path.read_bytes().split(b"\n"))
    found: dict[str, list[str]] = {}
    for path, line in lines:
        if found_strings(line, strings):
            found.setdefault(str(path), []).append(repr(line))
    return found


async def keys_with_strings(redis: Redis, prefix: str) -> list[str]:
    """Returns the Redis keys of a database whose names or values hold any of the strings."""
    return [
        key.decode()
        async for key in redis.scan_iter(match=f"*{prefix}*", count=1000)
        if found_strings(key + (await redis.dump(key) or b""))
    ]
