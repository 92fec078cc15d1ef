"""Files of scheduled posts as media for networks: their bytes, and the signed URLs for networks that fetch them."""

from collections.abc import AsyncIterator, Callable
from datetime import timedelta
from functools import partial

from jobs.providers.social.network import PublishingRefused, RetryableFailure, UploadedMedium
from storage.errors import Unavailable
from storage.files.attachments import Attachment
from storage.files.objects import ObjectMissing
from storage.publishing.network_files import FILE_LIMITS, file_kinds
from storage.publishing.networks import MediaKind
from storage.publishing.records import AccountTarget, Publication, ScheduledPost
from storage.publishing.scheduling import publication_place
from storage.stores import Stores

SignMedia = Callable[[str, int], str]
"""Returns the URL of a publication's file until a Unix time, from `<publication id>/<file id>`."""

URL_LIFETIME = timedelta(days=2)
"""How long a URL is valid after the last moment at which publishing may begin."""

MEDIA_UNAVAILABLE = "MEDIA_UNAVAILABLE"


class AttachedMedia:
    """The files of claimed publications. `sign` is None if this server has no public address."""

    def __init__(self, stores: Stores, sign: SignMedia | None) -> None:
        self._stores = stores
        self._sign = sign

    def of(self, publication: Publication, post: ScheduledPost) -> list[UploadedMedium]:
        """Returns the files as media, which are the same on every attempt."""
        target, files = publication.target, post.attachments
        assert isinstance(target, AccountTarget)
        kinds = file_kinds(target.network, [each.content_type for each in files], len(post.media))
        return [self._medium(publication, each, kind) for each, kind in zip(files, kinds, strict=True)]

    def _medium(self, publication: Publication, file: Attachment, kind: MediaKind) -> UploadedMedium:
        read = partial(self._read, publication.id, file.file_id)
        expires_at_s = int((publication.late_at + URL_LIFETIME).timestamp())
        url = "" if self._sign is None else self._sign(f"{publication.id}/{file.file_id}", expires_at_s)
        return UploadedMedium(url, file.alt_text, kind, file.content_type, file.size, read)

    async def check(self, publication: Publication, post: ScheduledPost) -> None:
        """Checks that the network can get every file. Raises: PublishingRefused."""
        target, ids = publication.target, [each.file_id for each in post.attachments]
        assert isinstance(target, AccountTarget)
        if not ids:
            return
        if self._sign is None and FILE_LIMITS[target.network].is_fetched:
            message = "The network fetches files from this server, which has no public address any more."
            raise PublishingRefused(MEDIA_UNAVAILABLE, message)
        if len(await self._stores.uploads.find_in_place(publication_place(publication.id), ids)) < len(ids):
            raise _missing()

    async def _read(self, publication_id: str, file_id: str) -> AsyncIterator[bytes]:
        files = await self._stores.uploads.find_in_place(publication_place(publication_id), [file_id])
        if not files:
            raise _missing()
        try:
            async for piece in self._stores.file_objects.read(files[0].parts, 0, files[0].stored_size):
                yield piece
        except ObjectMissing:
            raise _missing() from None
        except Unavailable as error:
            raise RetryableFailure(error.message) from error


def _missing() -> PublishingRefused:
    return PublishingRefused(MEDIA_UNAVAILABLE, "A file of the post no longer exists.")
