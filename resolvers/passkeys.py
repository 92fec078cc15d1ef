"""The viewer's passkeys."""

from typing import Annotated

import strawberry
from strawberry import ID

from resolvers.access import require_signed_in
from resolvers.arguments import checked_text
from resolvers.context import Info
from storage.identity.passkeys.records import MAX_NAME_CHARS, Passkey

PasskeyId = Annotated[ID, strawberry.argument(description="Id of a passkey of the viewer.")]
PasskeyName = Annotated[
    str, strawberry.argument(description=f"New name, such as `Phone`: 1 to {MAX_NAME_CHARS} characters.")
]


async def my_passkeys(info: Info) -> list[Passkey]:
    """Lists the viewer's passkeys, the oldest first."""
    return await info.context.stores.passkeys.list_of(require_signed_in(info).key)


async def rename_passkey(info: Info, id: PasskeyId, name: PasskeyName) -> Passkey:
    """Gives a passkey of the viewer another name."""
    viewer = require_signed_in(info)
    new_name = checked_text("name", name.strip(), 1, MAX_NAME_CHARS)
    return await info.context.stores.passkeys.rename(viewer.key, id, new_name)


async def remove_passkey(info: Info, id: PasskeyId) -> Passkey:
    """Removes a passkey of the viewer, and ends the viewer's other sessions."""
    require_signed_in(info)
    return await info.context.stores.passkeys.remove(info.context.actor, id, info.context.session_id)
