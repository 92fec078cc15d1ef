"""Use cases of files: people create uploads, and follow them until the files are ready."""

import unicodedata
from typing import Annotated

import strawberry
from strawberry import ID

from resolvers.access import require_member
from resolvers.arguments import checked_text
from resolvers.context import Info
from storage.errors import BadUserInput
from storage.files.records import StoredFile, UploadPurpose

MAX_NAME_CHARS = 255

CONTROLS = frozenset(("Cc", "Cs", "Zl", "Zp"))
"""Unicode categories of control characters, surrogates, and separators of lines and paragraphs."""

DIRECTIONS = frozenset(("LRE", "RLE", "LRO", "RLO", "PDF", "LRI", "RLI", "FSI", "PDI"))
"""Unicode bidirectional classes of characters that change the direction of a text, which can disguise a suffix."""


strawberry.enum(
    UploadPurpose,
    description="What a file is uploaded for. ATTACHMENT: messages and posts. AVATAR: `setAvatar` and "
    "`setCommunityPicture`; the middle of the picture is cut to a square of at most 512 pixels. BANNER: `setBanner` "
    "and `setCommunityBanner`; the middle is cut to 3:1, at most 1500 by 500 pixels. STAMP: `addStamp`; the picture is "
    "reduced to at most 320 pixels.",
)


@strawberry.input(description="A file to upload.")
class CreateUploadInput:
    file_name: str = strawberry.field(
        description="Name of the file, 1 to 255 characters, without a path. People see it, and downloads have it."
    )
    size: int = strawberry.field(description="Size of the file in bytes, at least 1.")
    content_type: str | None = strawberry.field(
        default=strawberry.UNSET,
        description="Content type that the client assumes. It is ignored: the bytes of the file decide.",
    )
    purpose: UploadPurpose = strawberry.field(
        default=UploadPurpose.ATTACHMENT, description="What the file is uploaded for."
    )


async def create_upload(
    info: Info, input: Annotated[CreateUploadInput, strawberry.argument(description="Name and size of the file.")]
) -> StoredFile:
    """Creates an upload of the viewer."""
    viewer = require_member(info)
    name = checked_text("fileName", input.file_name, 1, MAX_NAME_CHARS)
    if not name.strip(".") or not all(map(_is_allowed, name)):
        raise BadUserInput("fileName", "a name without a path and without control characters")
    if input.size < 1:
        raise BadUserInput("size", "a number of bytes from 1")
    return await info.context.stores.uploads.create(viewer.key, name, input.size, input.purpose)


async def upload(
    info: Info, id: Annotated[ID, strawberry.argument(description="Id of an upload of the viewer.")]
) -> StoredFile:
    """Returns an upload of the viewer. Raises: NotFound, also for an upload of another user."""
    return await info.context.stores.uploads.get(require_member(info).key, id)


def _is_allowed(character: str) -> bool:
    """Returns whether a file's name may contain the character. All spaces and the joiner of emojis are allowed."""
    is_control = unicodedata.category(character) in CONTROLS
    return not is_control and unicodedata.bidirectional(character) not in DIRECTIONS and character not in "/\\"
