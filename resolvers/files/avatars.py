"""Use cases of avatars: people choose a picture that they have uploaded, and remove it."""

from typing import Annotated

import strawberry
from strawberry import ID

from resolvers.access import require_member
from resolvers.context import Info
from storage.identity.records import User


async def set_avatar(
    info: Info,
    upload_id: Annotated[
        ID,
        strawberry.argument(description="Id of an upload of the viewer with the purpose AVATAR that is READY."),
    ],
) -> User:
    """Makes a picture the viewer's avatar. Returns the viewer."""
    viewer = require_member(info)
    await info.context.stores.avatars.set(viewer.key, upload_id)
    return await info.context.stores.users.get(*viewer.key)


async def remove_avatar(info: Info) -> User:
    """Removes the viewer's avatar. Returns the viewer."""
    viewer = require_member(info)
    await info.context.stores.avatars.remove(viewer.key)
    return await info.context.stores.users.get(*viewer.key)
