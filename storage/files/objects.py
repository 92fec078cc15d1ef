"""The object store that holds the bytes of files: a folder, or a bucket at S3, Google Cloud or Azure.

The objects of a file have keys that begin with the file's id. An object is written once and never changed.
"""

import re
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import contextmanager
from datetime import timedelta
from pathlib import Path

import obstore
import structlog
from obstore.exceptions import BaseError, NotFoundError
from obstore.store import LocalStore, ObjectStore, from_url

from storage.errors import Unavailable
from storage.files.records import StoredObject
from storage.ids import new_id

MEMORY = "memory:///"
"""Keeps objects in this process only, for programs that store no files."""

CHUNK_BYTES = 1024 * 1024
"""Number of bytes that a download reads at once."""

CONNECT_TIMEOUT = timedelta(seconds=5)
REQUEST_TIMEOUT = timedelta(seconds=30)
"""How long one request to a bucket may take."""

MAX_RETRIES = 3
RETRY_TIMEOUT = timedelta(seconds=20)
"""How long a failed request to a bucket is tried again. The request of a person waits for the retries."""

# The codes of S3, Azure and Google Cloud, and the sentence of Azure's answer to a batch.
_BUCKET_MISSING = re.compile("NoSuchBucket|ContainerNotFound|(bucket|container) does not exist")
_CODE = re.compile(r"<Code>(\w+)</Code>")

log = structlog.get_logger(__name__)


class BucketMissing(Unavailable):
    """The bucket or container of the store does not exist."""

    def __init__(self) -> None:
        super().__init__("The bucket or container for files does not exist. An administrator has to create it.")


class ObjectMissing(Unavailable):
    """An object is not in the store: it was deleted meanwhile, or the store has lost it."""

    def __init__(self) -> None:
        super().__init__("The file is not in the storage.")


class FileObjects:
    """Writes, reads and deletes objects."""

    def __init__(self, store: ObjectStore) -> None:
        self._store = store

    async def put(self, file_id: str, data: bytes) -> StoredObject:
        """Stores bytes as a new object of a file. Raises: Unavailable."""
        key = f"{_prefix(file_id)}/{new_id()}"
        with _available():
            await obstore.put_async(self._store, key, data, use_multipart=False)
        return StoredObject(key, len(data))

    async def read(self, objects: Sequence[StoredObject], start: int, end: int) -> AsyncIterator[bytes]:
        """Yields the bytes from `start` to before `end` of the objects one after the other, 1 MiB at a time.

        Raises: Unavailable; ObjectMissing.
        """
        position = 0
        for each in objects:
            first, last = max(start - position, 0), min(end - position, each.size)
            for at in range(first, last, CHUNK_BYTES):
                with _available():
                    chunk = await obstore.get_range_async(
                        self._store, each.key, start=at, end=min(at + CHUNK_BYTES, last)
                    )
                yield bytes(chunk)
            position += each.size

    async def read_all(self, objects: Sequence[StoredObject]) -> bytes:
        """Returns all bytes of the objects. Raises: Unavailable; ObjectMissing."""
        size = sum(each.size for each in objects)
        return b"".join([chunk async for chunk in self.read(objects, 0, size)])

    async def delete(self, objects: Sequence[StoredObject]) -> None:
        """Deletes objects, if they exist. Raises: Unavailable."""
        await self._delete([each.key for each in objects])

    async def delete_all(self, file_id: str, kept: Sequence[StoredObject] = ()) -> None:
        """Deletes all objects of a file, except those to keep. Raises: Unavailable."""
        kept_keys = {each.key for each in kept}
        with _available():
            async for objects in obstore.list(self._store, f"{_prefix(file_id)}/"):
                await self._delete([each["path"] for each in objects if each["path"] not in kept_keys])

    async def _delete(self, keys: list[str]) -> None:
        for key in keys:
            try:
                with _available():
                    await obstore.delete_async(self._store, key)
            except ObjectMissing:
                continue


def open_objects(address: str) -> FileObjects:
    """Returns the objects at an address: `s3://bucket/path`, `gs://…`, `az://…`, or the path of a folder."""
    if "://" in address:
        return FileObjects(_bucket(address))
    return FileObjects(LocalStore(Path(address).absolute(), mkdir=True, automatic_cleanup=True))


def _bucket(address: str) -> ObjectStore:
    # HTTP without TLS is used only if the operator has set such an endpoint.
    return from_url(
        address,
        client_options={"allow_http": True, "connect_timeout": CONNECT_TIMEOUT, "timeout": REQUEST_TIMEOUT},
        retry_config={"max_retries": MAX_RETRIES, "retry_timeout": RETRY_TIMEOUT},
    )


def _prefix(file_id: str) -> str:
    """Returns the beginning of the keys of a file. Its last characters are random, so they spread the folders."""
    return f"{file_id[-2:]}/{file_id}"


@contextmanager
def _available() -> Iterator[None]:
    """Raises Unavailable for every failure of the store: BucketMissing, ObjectMissing, or another one."""
    try:
        yield
    except (BaseError, OSError) as error:
        raise _failure(error) from error


def _failure(error: Exception) -> Unavailable:
    text = str(error)
    if _BUCKET_MISSING.search(text):
        log.error("file_bucket_missing")
        return BucketMissing()
    if isinstance(error, NotFoundError | FileNotFoundError):
        return ObjectMissing()
    # The text may contain an address with a signature, so only the code of the answer is logged.
    code = _CODE.search(text)
    log.error("file_storage_failed", error=type(error).__name__, code=code and code[1])
    return Unavailable("The storage of files does not answer. Try again later.")
