"""Rights to download files: of the uploader before a file is attached, then of everybody who sees its subject."""

from collections.abc import Awaitable, Callable, Collection
from dataclasses import dataclass

from storage.calls.recordings import RECORDING_PLACE
from storage.errors import NotFound
from storage.files.community_pictures import COMMUNITY_PLACE
from storage.files.library import LIBRARY_PLACE
from storage.files.profile_pictures import PROFILE_PICTURES
from storage.files.records import FileState, StoredFile
from storage.files.stamp_files import STAMP_PLACE
from storage.identity.records import User
from storage.identity.roles import Role
from storage.ids import message_key, post_key
from storage.publishing.scheduling import publication_place
from storage.stores import Stores


@dataclass(frozen=True, slots=True)
class Download:
    """A file of the viewer's organization, and the viewer who asks for it, with the roles of the request."""

    stores: Stores
    viewer: User
    roles: Collection[Role]
    file: StoredFile


async def visible_file(
    stores: Stores, viewer: User, id_: str, roles: Collection[Role] = frozenset((Role.MEMBER,))
) -> StoredFile:
    """Returns a file that the viewer may see with the roles of the request. Raises: NotFound."""
    file = await stores.uploads.find_any(viewer.organization_id, id_)
    if file is None or file.state is not FileState.READY:
        raise NotFound("file", id_)
    download = Download(stores, viewer, roles, file)
    # A file that is attached nowhere is for its uploader, as a file of a library is.
    for place in file.places or (LIBRARY_PLACE,):
        kind, _, subject_id = place.partition(":")
        if await PLACES[kind](download, subject_id):
            return file
    raise NotFound("file", id_)


async def published_file(stores: Stores, publication_id: str, id_: str) -> StoredFile:
    """Returns a file that a publication has, for the network that gets it. Raises: NotFound."""
    for file in await stores.uploads.find_in_place(publication_place(publication_id), [id_]):
        return file
    raise NotFound("file", id_)


def is_recording(file: StoredFile) -> bool:
    """Returns whether the file is the recording of a call."""
    return any(place.partition(":")[0] == RECORDING_PLACE for place in file.places)


async def _is_own(download: Download, id_: str) -> bool:
    """Returns whether the viewer has uploaded the file."""
    return download.file.owner == download.viewer.key


async def _is_operator(download: Download, id_: str) -> bool:
    """Returns whether the request has the role OPERATOR."""
    return Role.OPERATOR in download.roles


async def _is_shown_to_all(download: Download, id_: str) -> bool:
    """Returns True: everybody of the organization sees such a file."""
    return True


async def _sees_message(download: Download, id_: str) -> bool:
    """Returns whether the viewer has joined the message's topic, and has not blocked its author."""
    stores, viewer, key = download.stores, download.viewer, message_key(id_)
    topic = await stores.topics.find(viewer.organization_id, key.topic_id)
    if topic is None or not await stores.communities.members_among(topic.community_id, frozenset((viewer.id,))):
        return False
    message = await stores.messages.find(key)
    if message is None or message.deleted_at is not None:
        return False
    blocked = await stores.relations.blocked_users_of(viewer.organization_id, viewer.id)
    return message.author_id not in blocked


async def _sees_post(download: Download, id_: str) -> bool:
    """Returns whether the post exists in the viewer's organization, and the viewer has not blocked its author."""
    stores, viewer = download.stores, download.viewer
    post = await stores.posts.find(post_key(viewer.organization_id, id_))
    if post is None:
        return False
    blocked = await stores.relations.blocked_users_of(viewer.organization_id, viewer.id)
    return post.author_id not in blocked


async def _sees_publication(download: Download, id_: str) -> bool:
    """Returns whether the viewer is the author of the publication's scheduled post."""
    try:
        publication = await download.stores.scheduled_posts.publication(download.viewer.organization_id, id_)
    except NotFound:
        return False
    return publication.author_id == download.viewer.id


async def _sees_community(download: Download, id_: str) -> bool:
    """Returns whether the viewer may see the community."""
    return id_ in await download.stores.communities.visible_among(download.viewer.key, [id_])


PLACES: dict[str, Callable[[Download, str], Awaitable[bool]]] = {
    "message": _sees_message,
    "post": _sees_post,
    "publication": _sees_publication,
    COMMUNITY_PLACE: _sees_community,
    LIBRARY_PLACE: _is_own,
    RECORDING_PLACE: _is_operator,
    STAMP_PLACE: _is_shown_to_all,
    **dict.fromkeys(PROFILE_PICTURES.values(), _is_shown_to_all),
}
"""Checks whether a viewer sees a place where a file is attached, by the kind of the place."""
