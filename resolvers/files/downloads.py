"""Rights to download files: of the uploader before a file is attached, then of everybody who sees its subject."""

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


async def visible_file(
    stores: Stores, viewer: User, id_: str, roles: frozenset[Role] = frozenset((Role.MEMBER,))
) -> StoredFile:
    """Returns a file that the viewer may see with the roles of the request. Raises: NotFound."""
    file = await stores.uploads.find_any(viewer.organization_id, id_)
    if file is None or file.state is not FileState.READY:
        raise NotFound("file", id_)
    is_visible = Role.OPERATOR in roles if is_recording(file) else await _is_visible(stores, viewer, file)
    if not is_visible:
        raise NotFound("file", id_)
    return file


async def published_file(stores: Stores, publication_id: str, id_: str) -> StoredFile:
    """Returns a file that a publication has, for the network that gets it. Raises: NotFound."""
    for file in await stores.uploads.find_in_place(publication_place(publication_id), [id_]):
        return file
    raise NotFound("file", id_)


def is_recording(file: StoredFile) -> bool:
    """Returns whether the file is the recording of a call."""
    return any(place.partition(":")[0] == RECORDING_PLACE for place in file.places)


async def _is_visible(stores: Stores, viewer: User, file: StoredFile) -> bool:
    if not file.places:
        return file.owner == viewer.key
    for place in file.places:
        if place == LIBRARY_PLACE:
            if file.owner == viewer.key:
                return True
            continue
        kind, _, id_ = place.partition(":")
        if kind in SHOWN_TO_ALL:
            return True
        if await SUBJECTS[kind](stores, viewer, id_):
            return True
    return False


async def _sees_message(stores: Stores, viewer: User, id_: str) -> bool:
    """Returns whether the viewer has joined the message's topic, and has not blocked its author."""
    key = message_key(id_)
    topic = await stores.topics.find(viewer.organization_id, key.topic_id)
    if topic is None or not await stores.communities.members_among(topic.community_id, frozenset((viewer.id,))):
        return False
    message = await stores.messages.find(key)
    if message is None or message.deleted_at is not None:
        return False
    blocked = await stores.relations.blocked_users_of(viewer.organization_id, viewer.id)
    return message.author_id not in blocked


async def _sees_post(stores: Stores, viewer: User, id_: str) -> bool:
    """Returns whether the post exists in the viewer's organization, and the viewer has not blocked its author."""
    post = await stores.posts.find(post_key(viewer.organization_id, id_))
    if post is None:
        return False
    blocked = await stores.relations.blocked_users_of(viewer.organization_id, viewer.id)
    return post.author_id not in blocked


async def _sees_publication(stores: Stores, viewer: User, id_: str) -> bool:
    """Returns whether the viewer is the author of the publication's scheduled post."""
    try:
        publication = await stores.scheduled_posts.publication(viewer.organization_id, id_)
    except NotFound:
        return False
    return publication.author_id == viewer.id


async def _sees_community(stores: Stores, viewer: User, id_: str) -> bool:
    """Returns whether the viewer may see the community."""
    return id_ in await stores.communities.visible_among(viewer.key, [id_])


SHOWN_TO_ALL = {*PROFILE_PICTURES.values(), STAMP_PLACE}
"""Kinds of places that everybody of the organization sees: the avatars and banners of its people, and its stamps."""

SUBJECTS = {
    "message": _sees_message,
    "post": _sees_post,
    "publication": _sees_publication,
    COMMUNITY_PLACE: _sees_community,
}
"""Checks whether a viewer sees what a file is attached to, by the kind of place."""
