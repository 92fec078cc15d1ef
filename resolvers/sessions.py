"""The viewer's signed-in browsers."""

from typing import Annotated

import strawberry
from strawberry import ID, Parent

from resolvers.access import require_signed_in
from resolvers.context import Info
from storage.identity.session_records import UserSession


async def my_sessions(info: Info) -> list[UserSession]:
    """Lists the viewer's sessions, the last used first."""
    return await info.context.stores.sessions.list_of(require_signed_in(info).key)


async def end_session(
    info: Info, id: Annotated[ID, strawberry.argument(description="Id of a session of the viewer.")]
) -> UserSession:
    """Ends a session of the viewer."""
    return await info.context.stores.sessions.end(require_signed_in(info).key, id)


async def end_other_sessions(info: Info) -> int:
    """Ends all sessions of the viewer except the one that the request belongs to."""
    return await info.context.stores.sessions.end_all(require_signed_in(info).key, except_id=info.context.session_id)


async def is_current(root: Parent[UserSession], info: Info) -> bool:
    """Returns whether the request belongs to the session."""
    return root.id == info.context.session_id
