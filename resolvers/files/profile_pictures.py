"""Use cases of avatars and banners: people choose a picture that they have uploaded, and remove it."""

from typing import Annotated

import strawberry
from strawberry import ID

from resolvers.access import require_member
from resolvers.context import Info
from storage.files.records import UploadPurpose
from storage.identity.records import User


async def set_avatar(
    info: Info,
    upload_id: Annotated[
        ID,
        strawberry.argument(description="Id of an upload of the viewer with the purpose AVATAR that is READY."),
    ],
) -> User:
    """Makes a picture the viewer's avatar. Returns the viewer."""
    return await _set(info, UploadPurpose.AVATAR, upload_id)


async def remove_avatar(info: Info) -> User:
    """Removes the viewer's avatar. Returns the viewer."""
    return await _remove(info, UploadPurpose.AVATAR)


async def set_banner(
    info: Info,
    upload_id: Annotated[
        ID,
        strawberry.argument(description="Id of an upload of the viewer with the purpose BANNER that is READY."),
    ],
) -> User:
    """Makes a picture the viewer's banner. Returns the viewer."""
    return await _set(info, UploadPurpose.BANNER, upload_id)


async def remove_banner(info: Info) -> User:
    """Removes the viewer's banner. Returns the viewer."""
    return await _remove(info, UploadPurpose.BANNER)


async def _set(info: Info, purpose: UploadPurpose, upload_id: str) -> User:
    viewer = require_member(info)
    await info.context.stores.profile_pictures.set(viewer.key, purpose, upload_id)
    return await info.context.stores.users.get(*viewer.key)


async def _remove(info: Info, purpose: UploadPurpose) -> User:
    viewer = require_member(info)
    await info.context.stores.profile_pictures.remove(viewer.key, purpose)
    return await info.context.stores.users.get(*viewer.key)
