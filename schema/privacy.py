"""GraphQL types and root fields of privacy: exports of personal data, and the erasure of users."""

from datetime import datetime

import strawberry
from strawberry import ID

import resolvers.administration.erasures
import resolvers.exports
from resolvers.write_limits import WriteLimit
from schema.binding import field, mutation
from schema.identity import User
from storage.privacy.erasures import ErasureState
from storage.privacy.exports import ExportFailure, ExportState

strawberry.enum(
    ErasureState,
    description="State of an erasure. PENDING: requested; the user's access has ended. RUNNING: some steps are done. "
    "COMPLETED: nothing about the user is left but a record without personal data.",
)

strawberry.enum(
    ExportState,
    description="State of an export. PENDING: requested. RUNNING: a worker writes the archive. COMPLETED: the archive "
    "can be downloaded. FAILED: there is no archive; `failure` says why.",
)
strawberry.enum(ExportFailure, description="Why an export failed. TOO_LARGE: the archive has more than 256 MiB.")


@strawberry.type(description="An export of the viewer's data as a ZIP archive. It is deleted 7 days after its request.")
class DataExport:
    id: ID = strawberry.field(description="Unique identifier. Treat as an opaque string.")
    state: ExportState = strawberry.field(description="State of the export.")
    requested_at: datetime = strawberry.field(description="When the export was requested.")
    expires_at: datetime = strawberry.field(description="When the export and its archive are deleted.")
    files_done: int = strawberry.field(description="Number of files in the archive so far.")
    files: int = field(resolvers.exports.files, "Number of files of a complete archive, without its README.")
    size_bytes: int = strawberry.field(description="Size of the archive so far, in bytes.")
    failure: ExportFailure | None = strawberry.field(description="Why the export failed; null unless it did.")
    download_url: str | None = field(
        resolvers.exports.download_url,
        "Address of the archive, which works for 10 minutes without a token. Null unless the state is COMPLETED. Query "
        "it again for a new address, and don't pass it on.",
    )


@strawberry.type(description="The erasure of a user. It is deleted two years after it was completed.")
class UserErasure:
    user_id: ID = strawberry.field(description="Id of the user.")
    user: User = field(
        resolvers.administration.erasures.user,
        "Record that is left of the user: once the erasure is completed, with the name `Deleted user`.",
        batch_resolver=resolvers.administration.erasures.users,
    )
    state: ErasureState = strawberry.field(description="State of the erasure.")
    requested_at: datetime = strawberry.field(description="When the erasure was requested. It begins 30 seconds later.")
    requested_by_id: ID = strawberry.field(description="Id of the user who requested the erasure.")
    steps_done: int = strawberry.field(description="Number of completed steps.")
    steps: int = field(resolvers.administration.erasures.steps, "Number of all steps.")
    changed_objects: int = strawberry.field(
        description="Number of objects that were deleted, emptied or changed so far. After an interruption, objects "
        "may be counted again."
    )
    completed_at: datetime | None = strawberry.field(description="When the erasure was completed; null until then.")


@strawberry.type
class PrivacyQuery:
    my_data_export: DataExport | None = field(
        resolvers.exports.my_data_export, "The viewer's latest export; null if there is none. Needs no role."
    )
    erasures: list[UserErasure] = field(
        resolvers.administration.erasures.erasures,
        "Erasures of users of the organization, the newest first. Needs the role ADMIN.",
    )


@strawberry.type
class PrivacyMutation:
    export_my_data: DataExport = mutation(
        resolvers.exports.export_my_data,
        "Writes everything that the organization stores about the viewer into an archive: one NDJSON file for each "
        "kind of object. `myDataExport` and `jobEvents` show the progress. While an export runs, and for an hour after "
        "its request, the same one is returned; a new one replaces it. Needs no role.",
        limit=WriteLimit.OPERATIONS,
    )
    erase_user: UserErasure = mutation(
        resolvers.administration.erasures.erase_user,
        "Erases a user: the viewer, or for an ADMIN another user. The user's access ends within 10 seconds, for good. "
        "Texts, posts, reactions, follows and all other data of the user are then removed; `erasures` shows the "
        "progress. This can't be undone. Nobody gets the handle for a year. An ADMIN is erased by another ADMIN. "
        "Idempotent.",
        limit=WriteLimit.OPERATIONS,
    )
