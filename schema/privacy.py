"""GraphQL types and root fields of privacy: exports of personal data, erasures of users, and retention rules."""

from datetime import datetime

import strawberry
from strawberry import ID

import resolvers.administration.erasures
import resolvers.administration.retention_rules
import resolvers.exports
from resolvers.limits.writes import WriteLimit
from schema.binding import field, mutation
from schema.identity import User
from storage.privacy.erasures import ErasureState
from storage.privacy.exports import ExportFailure, ExportState
from storage.privacy.retention_rules import RetainedData

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
        resolver=resolvers.administration.erasures.changed_objects,
        description="Always 0. A number of objects would show how much the user wrote in conversations. `stepsDone` "
        "shows the progress.",
        deprecation_reason="It would show how much the user wrote in conversations. Use `stepsDone`.",
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
        "its request, a repetition returns the same export; a later export replaces it. Needs no role.",
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


strawberry.enum(
    RetainedData,
    description="Data whose lifetime an organization chooses. PHONE_NUMBERS and CALL_VARIABLES: the numbers and the "
    "variables of call jobs; the days count from the end of the job. MAIL_LEDGER: what delivery events say about an "
    "address; the days count from the aggregation into the address book, which keeps its counts. DIRECT_MESSAGES: the "
    "messages of conversations, of which tombstones stay; the days count from the message.",
)


@strawberry.type(description="How long the organization keeps one kind of data.")
class RetentionRule:
    data: RetainedData = strawberry.field(description="Which data.")
    days: int | None = strawberry.field(
        description="Days after which the data are removed, within about an hour. Null: they are kept for good."
    )
    default_days: int | None = field(
        resolvers.administration.retention_rules.default_days,
        "Value of `days` in an organization that has set none. Null: for good.",
    )
    min_days: int = field(resolvers.administration.retention_rules.min_days, "Smallest value of `days`.")
    max_days: int = field(resolvers.administration.retention_rules.max_days, "Greatest value of `days`.")
    set_at: datetime | None = strawberry.field(description="When `days` was set. Null for the default.")
    set_by: User | None = field(
        resolvers.administration.retention_rules.set_by,
        "Administrator who set `days`. Null for the default.",
        batch_resolver=resolvers.administration.retention_rules.set_by_each,
    )


@strawberry.type
class RetentionQuery:
    retention_rules: list[RetentionRule] = field(
        resolvers.administration.retention_rules.retention_rules,
        "How long the organization keeps data about people: one rule for each kind of data. Needs the role ADMIN.",
    )


@strawberry.type
class RetentionMutation:
    set_retention_rule: RetentionRule = mutation(
        resolvers.administration.retention_rules.set_retention_rule,
        "Sets how long the organization keeps a kind of data. A shorter time applies to stored data too: workers begin "
        "to remove them at once. What was removed can't be restored. Idempotent. Needs the role ADMIN.",
        limit=WriteLimit.OPERATIONS,
    )
