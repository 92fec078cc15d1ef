"""GraphQL types and root fields of files, and types of link previews."""

from datetime import datetime

import strawberry
from strawberry import ID

import resolvers.files.library
import resolvers.files.profile_pictures
import resolvers.files.uploads
from resolvers.limits.writes import WriteLimit
from schema.binding import field, mutation
from schema.identity import User
from schema.nodes import Node, own_id
from storage.files.pictures import FileRefusal
from storage.files.records import FileState

strawberry.enum(
    FileState,
    name="UploadState",
    description="State of an upload. RECEIVING: bytes are missing. CHECKING: all bytes are stored, and a worker "
    "determines the type and decodes pictures. READY: the file can be attached. REFUSED: the bytes were deleted; "
    "`refusal` says why.",
)
strawberry.enum(
    FileRefusal,
    description="Why a file was refused. UNREADABLE: it begins like a picture, and cannot be decoded. TOO_MANY_PIXELS: "
    "the picture is too large. TOO_SLOW: decoding the picture took too long.",
)


@strawberry.type(
    description="A file that the viewer uploads. It is deleted a day after its creation if it is neither attached nor "
    "in the viewer's library."
)
class Upload(Node):
    id: ID = own_id("Upload", "Unique identifier. Treat as an opaque string.")
    file_id: ID = strawberry.field(description="Id of the file; an `Attachment` of it has the same one.")
    name: str = strawberry.field(description="Name of the file as given.")
    size: int = strawberry.field(description="Size of the complete file in bytes.")
    offset: int = strawberry.field(
        description="Number of bytes that the server has stored; the upload continues there."
    )
    state: FileState = strawberry.field(description="State of the upload.")
    url: str = strawberry.field(
        description="Path that takes the bytes by PUT or tus 1.0, relative to the server's origin. Each request needs "
        "the viewer's credentials. docs/files.md has examples."
    )
    content_type: str | None = strawberry.field(
        description="Content type by the bytes of the file; null until the state is READY."
    )
    is_picture: bool = strawberry.field(
        description="Whether the file is a decoded picture. Pictures need an alternative text to be attached."
    )
    refusal: FileRefusal | None = strawberry.field(
        description="Why the file was refused; null unless the state is REFUSED."
    )
    expires_at: datetime | None = strawberry.field(description="When the file is deleted; null if it is attached.")


@strawberry.type(description="A file of a message or a post.")
class Attachment:
    id: ID = strawberry.field(description="Id of the file. Treat as an opaque string.")
    name: str = strawberry.field(description="Name of the file.")
    url: str = strawberry.field(
        description="Path of the file, relative to the server's origin. Each request needs the viewer's credentials: "
        "the cookie of a session, or the header Authorization. Only pictures are sent inline."
    )
    thumbnail_url: str | None = strawberry.field(
        description="Path of a version of a picture for lists, with the same proportions. Null for other files."
    )
    content_type: str = strawberry.field(description="Content type by the bytes of the file.")
    size: int = strawberry.field(description="Size of a download in bytes.")
    width: int | None = strawberry.field(description="Width of a picture in pixels; null for other files.")
    height: int | None = strawberry.field(description="Height of a picture in pixels; null for other files.")
    blurhash: str | None = strawberry.field(
        description="BlurHash of a picture, to show while it loads; null for other files."
    )
    alt_text: str = strawberry.field(
        description="Text that describes the file; never empty for pictures, may be empty for other files."
    )


@strawberry.type(
    description="The stored copy of the image of a linked page, without metadata, at most 640 pixels wide and high."
)
class LinkPreviewImage:
    url: str = strawberry.field(
        description="URL of the copy on this server, the same as `imageUrl`. It needs no credentials, and is signed."
    )
    width: int = strawberry.field(description="Width in pixels.")
    height: int = strawberry.field(description="Height in pixels.")
    blurhash: str = strawberry.field(description="BlurHash, to show while the image loads.")


@strawberry.type(description="Title, summary and image of a linked page.")
class LinkPreview:
    url: str = strawberry.field(description="URL of the linked page.")
    title: str = strawberry.field(description="Title of the page.")
    description: str | None = strawberry.field(description="Summary of the page; null if it has none.")
    image_url: str | None = strawberry.field(
        description="URL of the page's image on this server; null if the page has none, or if it was refused. For 30 "
        "days after the image was fetched it serves the stored copy. After that, or without a copy, it serves the "
        "image from the page's site."
    )
    image: LinkPreviewImage | None = strawberry.field(
        description="Stored copy of the page's image, with its size. Null if the page has no image, or if no copy was "
        "stored; in the second case use `imageUrl`."
    )
    site_name: str | None = strawberry.field(description="Name of the page's site; null if it has none.")


@strawberry.type
class FileQuery:
    upload: Upload | None = field(
        resolvers.files.uploads.upload, "Upload of the viewer with this id. NOT_FOUND if the viewer has none."
    )
    media_library: list[Attachment] = field(
        resolvers.files.library.media_library,
        "Files of the viewer's library, those that were uploaded last first. `altText` is the text for the library. "
        "NOT_FOUND if `after` is no upload of the viewer.",
    )


@strawberry.type
class FileMutation:
    create_upload: Upload = mutation(
        resolvers.files.uploads.create_upload,
        "Creates an upload. Its bytes go to `url`. QUOTA_EXCEEDED if the viewer or the organization has too many bytes "
        "of files, or the viewer too many files that are not attached.",
        limit=WriteLimit.UPLOADS,
    )
    add_to_library: Attachment = mutation(
        resolvers.files.library.add_to_library,
        "Keeps an upload in the viewer's library, so that it can be attached more than once, and is not deleted while "
        "it is attached nowhere. A file of the library gets another alternative text. CONFLICT for an upload that is "
        "not READY; QUOTA_EXCEEDED for more than 500 files.",
        limit=WriteLimit.UPLOADS,
    )
    remove_from_library: bool = mutation(
        resolvers.files.library.remove_from_library,
        "Removes a file from the viewer's library. What it is attached to keeps it; without that, it is deleted a day "
        "later. Returns true.",
        limit=WriteLimit.UPLOADS,
    )
    set_avatar: User = mutation(
        resolvers.files.profile_pictures.set_avatar,
        "Makes a picture that the viewer has uploaded the viewer's avatar, and deletes the earlier one. Members of the "
        "organization see it. BAD_USER_INPUT for an upload that is not READY or has another purpose.",
        limit=WriteLimit.UPLOADS,
    )
    remove_avatar: User = mutation(
        resolvers.files.profile_pictures.remove_avatar,
        "Removes and deletes the viewer's avatar.",
        limit=WriteLimit.UPLOADS,
    )
    set_banner: User = mutation(
        resolvers.files.profile_pictures.set_banner,
        "Makes a picture that the viewer has uploaded the viewer's banner, and deletes the earlier one. Members of the "
        "organization see it. BAD_USER_INPUT for an upload that is not READY or has another purpose.",
        limit=WriteLimit.UPLOADS,
    )
    remove_banner: User = mutation(
        resolvers.files.profile_pictures.remove_banner,
        "Removes and deletes the viewer's banner.",
        limit=WriteLimit.UPLOADS,
    )
