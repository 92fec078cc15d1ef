"""Use cases of the pictures of communities: owners choose a picture that they have uploaded, and remove it."""

from typing import Annotated

import strawberry
from strawberry import ID

from resolvers.access import require_member, require_moderator
from resolvers.chat.communities import CommunityId
from resolvers.context import Info
from storage.chat.community_pictures import CommunityPicture
from storage.chat.records import Community
from storage.errors import NotFound
from storage.files.community_pictures import community_place


async def set_community_picture(
    info: Info,
    community_id: CommunityId,
    upload_id: Annotated[
        ID,
        strawberry.argument(description="Id of an upload of the viewer with the purpose AVATAR that is READY."),
    ],
) -> Community:
    """Makes an upload the picture of a community."""
    return await _set(info, community_id, CommunityPicture.PICTURE, upload_id)


async def remove_community_picture(info: Info, community_id: CommunityId) -> Community:
    """Removes the picture of a community."""
    return await _set(info, community_id, CommunityPicture.PICTURE, None)


async def set_community_banner(
    info: Info,
    community_id: CommunityId,
    upload_id: Annotated[
        ID,
        strawberry.argument(description="Id of an upload of the viewer with the purpose BANNER that is READY."),
    ],
) -> Community:
    """Makes an upload the banner of a community."""
    return await _set(info, community_id, CommunityPicture.BANNER, upload_id)


async def remove_community_banner(info: Info, community_id: CommunityId) -> Community:
    """Removes the banner of a community."""
    return await _set(info, community_id, CommunityPicture.BANNER, None)


async def _set(info: Info, community_id: str, picture: CommunityPicture, upload_id: str | None) -> Community:
    community, moderator = await require_moderator(info, community_id)
    if upload_id is not None:
        await _require_upload(info, community, upload_id)
    stores = info.context.stores
    await stores.community_pictures.set(community, moderator, picture, upload_id)
    return await stores.communities.get(community.organization_id, community.id)


async def _require_upload(info: Info, community: Community, id_: str) -> None:
    """Raises NotFound for a file that neither the viewer uploaded nor the community shows. The commit checks it too."""
    viewer = require_member(info)
    file = await info.context.stores.uploads.find_any(community.organization_id, id_)
    if file is None or (file.owner != viewer.key and community_place(community.id) not in file.places):
        raise NotFound("upload", id_)
