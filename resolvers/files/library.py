"""Use cases of media libraries: people keep files, find them, and remove them."""

from typing import Annotated

import strawberry
from strawberry import ID, UNSET

from resolvers.access import require_member
from resolvers.arguments import After, ListLimit, checked_limit, checked_text, text_or_none
from resolvers.context import Info
from resolvers.files.attachments import MAX_ALT_TEXT_CHARS
from storage.files.attachments import Attachment, NewAttachment


async def media_library(info: Info, after: After = UNSET, limit: ListLimit = 50) -> list[Attachment]:
    """Lists the files of the viewer's library."""
    owner, stores, last_id = require_member(info).key, info.context.stores, text_or_none(after)
    if last_id is not None:
        await stores.uploads.require(owner, [last_id])
    return await stores.media_library.list_files(owner, last_id, checked_limit(limit))


async def add_to_library(
    info: Info,
    upload_id: Annotated[ID, strawberry.argument(description="Id of an upload of the viewer that is READY.")],
    alt_text: Annotated[
        str,
        strawberry.argument(
            description="Text that describes the file, at most 1500 characters. Required for pictures."
        ),
    ] = "",
) -> Attachment:
    """Adds a file to the viewer's library."""
    new = NewAttachment(upload_id, checked_text("altText", alt_text, 0, MAX_ALT_TEXT_CHARS))
    return await info.context.stores.media_library.add(require_member(info).key, new)


async def remove_from_library(
    info: Info, upload_id: Annotated[ID, strawberry.argument(description="Id of a file of the viewer's library.")]
) -> bool:
    """Removes a file from the viewer's library. Returns True."""
    await info.context.stores.media_library.remove(require_member(info).key, upload_id)
    return True
