"""Stored documents of users and of the relations between them. Instants are aware UTC datetimes."""

from datetime import datetime
from typing import NotRequired, TypedDict


class UserDocumentId(TypedDict):
    """The `_id` of a user."""

    org: str
    """Organization id."""

    id: str
    """Unique within the organization: the `sub` of the user's tokens, or generated for local and service accounts."""


class FormerHandle(TypedDict):
    """A handle that a user had before."""

    handle: str
    at: datetime
    """When the user changed it, by the database's clock."""


class UserDocument(TypedDict):
    """A user, in `users`. Never deleted: an erasure leaves a record.

    Created by the first request with a token, by a sign-in at a provider, with a local account, or with a service key.
    """

    _id: UserDocumentId
    handle: str
    """Unique within the organization. Only its user changes it; no token does."""

    handle_changed_at: NotRequired[datetime]
    """When the user last changed the handle, by the database's clock; absent before the first change."""

    former_handles: NotRequired[list[FormerHandle]]
    """Handles of the last year, the oldest first, which are reserved for the user; absent before the first change."""

    name: str
    """Display name that the user chose. Before that, the name of the newest token that had one, or the name that the
    local account or the service key was created with."""

    name_chosen_at: NotRequired[datetime]
    """When the user last chose the name, by the database's clock. Absent before that; from then on, no token changes
    the name."""

    search: list[str]
    """Case-folded strings whose prefixes find the user: handle, name, and the words of the name; at most 8."""

    roles: list[str]
    """Values of `Role`: those that were granted, or those of the newest token if none were ever granted."""

    service: NotRequired[bool]
    """True for the service account of a service key."""

    roles_granted: NotRequired[bool]
    """True once a login, an invitation or an administrator has set the roles. Tokens can't change them from then on.

    True from the start for local accounts and service accounts.
    """

    deactivated_at: NotRequired[datetime]
    """When an administrator deactivated the user, by the database's clock; absent while the user is active."""

    locked_at: NotRequired[datetime]
    """When the user last made a change that needs a role, by the database's clock. Writing it locks the document in the
    transaction of the change."""

    founded_at: NotRequired[datetime]
    """When the user last began to create a community, by the database's clock. Writing it locks the document in the
    transaction of the creation."""

    muted_at: NotRequired[datetime]
    """When the user last muted something, by the database's clock. Writing it locks the document in the transaction of
    the mute."""

    role_seen: NotRequired[dict[str, datetime]]
    """For each value of `Role`, when a token with this role was last seen, by the database's clock. Written once a day
    at most, so it may be a day too early. Absent in documents of earlier versions."""

    email: NotRequired[str]
    """Mail address of the local account, or from the newest token that had one; absent without either."""

    email_verified: NotRequired[bool]
    """True if the person proved the mail address here, or if the token says that it is verified. Absent otherwise, and
    False after a verified address was followed by another one."""

    erasing_at: NotRequired[datetime]
    """When the erasure of the user was requested, by the database's clock; absent otherwise. The user then stays
    deactivated, and tokens no longer change the document."""

    erased_at: NotRequired[datetime]
    """When the erasure was completed, by the database's clock. The document then holds ids, times and generated texts
    only."""

    avatar: NotRequired[str]
    """Id of the file of the avatar; absent without one."""

    banner: NotRequired[str]
    """Id of the file of the banner; absent without one."""

    bio: NotRequired[str]
    """Text about the user, as typed; absent without one."""

    presence_hidden: NotRequired[bool]
    """True if nobody sees whether the user is online or typing; absent by default."""

    followers: int
    """Number of users that follow this user."""

    following: int
    """Number of users that this user follows."""

    at: datetime
    """When the user was created, by the clock of the host."""


class OrganizationSettingsDocument(TypedDict):
    """The settings of an organization that differ from the defaults, in `organization_settings`. Never deleted."""

    _id: str
    """Organization id."""

    presence_off: bool
    """Whether nobody sees who is online or typing."""

    by: str
    """Id of the administrator who changed a setting last."""

    at: datetime
    """When a setting was changed last, by the database's clock."""


class BlockDocument(TypedDict):
    """A block, in `blocks`. Deleted when the block ends. Its `_id` is generated and never used."""

    org: str
    """Organization id."""

    user: str
    """Id of the user who blocked."""

    blocked: str
    """Id of the user who is blocked."""

    at: datetime
    """When the user blocked the other user, by the clock of the host."""


class MuteDocumentId(TypedDict):
    """The `_id` of a mute. The owner's list of mutes is in the order of these ids."""

    o: str
    """Organization id."""

    u: str
    """Id of the user who muted."""

    k: str
    """Value of `MuteSubject`."""

    s: str
    """Id of the muted user, topic or community, or of the first post of the muted conversation."""


class MuteDocument(TypedDict):
    """A mute, in `mutes`. Deleted when the user ends it, or with the muted post. Expires at `until`."""

    _id: MuteDocumentId
    at: datetime
    """When the user muted the subject, or last changed the end, by the database's clock."""

    until: NotRequired[datetime]
    """When the mute ends; absent if only the user ends it."""


class FollowDocumentId(TypedDict):
    """The `_id` of a follow and of its change."""

    o: str
    """Organization id."""

    f: str
    """Id of the follower."""

    e: str
    """Id of the followee."""


class FollowDocument(TypedDict):
    """A follow, in `follows`. Deleted when the follow ends."""

    _id: FollowDocumentId
    org: str
    """Organization id. This and the two user ids are copied from `_id` for indexes."""

    follower: str
    """Id of the user who follows."""

    followee: str
    """Id of the user who is followed."""

    at: datetime
    """When the follow began, by the database's clock."""


class FollowChangeDocument(TypedDict):
    """A change of a follow, in `follow_changes`. Deleted when the change is applied to the follower's home feed."""

    _id: FollowDocumentId
    at: datetime
    """When the follow last changed, by the database's clock."""


class AuditEntryDocument(TypedDict):
    """An entry, in `audit`. Expires two years after `at`."""

    _id: str
    """Generated by the process that made the change."""

    org: str
    """Organization id."""

    at: datetime
    """When the change was made, by the database's clock."""

    actor: str
    """Id of the user who made the change; the value of `COMMAND_LINE` for a change by the command `noroshi`."""

    action: str
    """Value of `AuditAction`."""

    kind: str
    """Value of `TargetKind`."""

    target: str
    """Id of the object that was changed."""

    details: dict[str, str]
    """Values that describe the change, such as the roles before and after it."""

    address: str | None
    """IP address of the actor's client; None for the command line and for jobs."""

    agent: str | None
    """The client's header User-Agent; None if there was none."""


class AccessChangeDocument(TypedDict):
    """A user whose access was changed, in `access_changes`. Expires an hour after `at`."""

    _id: str
    """Generated by the process that made the change."""

    org: str
    """Organization id."""

    user: str
    """User id."""

    at: datetime
    """When the change was made, by the database's clock."""


class ProviderSessionDocument(TypedDict):
    """The session at the identity provider from which a session came."""

    issuer: str
    sub: str
    """The provider's id of the person."""

    sid: NotRequired[str]
    """The provider's id of its session; absent if the provider named none."""


class SessionDocument(TypedDict):
    """A signed-in browser, in `sessions`. Deleted when the session ends, and expires at `until`."""

    _id: str
    """SHA-256 of the cookie's token, in hexadecimal digits. The token itself is not stored."""

    org: str
    """Organization id."""

    user: str
    """User id."""

    method: str
    """Value of `SignInMethod`."""

    roles: list[str]
    """Values of `Role` that the sign-in had. They count until roles are granted to the user."""

    at: datetime
    """When the session began, by the database's clock."""

    used_at: datetime
    """When the session was last used, by the database's clock; written every few minutes at most."""

    until: datetime
    """When the session ends unless it is used before, by the database's clock; never after `ends_at`."""

    ends_at: datetime
    """When the session ends in any case, by the database's clock."""

    address: str | None
    """IP address of the browser at the sign-in."""

    agent: str | None
    """The browser's header User-Agent at the sign-in; None if there was none."""

    provider: NotRequired[ProviderSessionDocument]
    """Present for sessions that began at an identity provider."""


class ProviderLogoutDocument(TypedDict):
    """A logout token of an identity provider that was processed, in `provider_logouts`. Expires an hour after `at`."""

    _id: str
    """SHA-256 of the issuer and the id of the logout token, in hexadecimal digits."""

    at: datetime
    """When the sessions were ended, by the database's clock."""


class ReservedHandleDocument(TypedDict):
    """A handle that nobody gets, in `reserved_handles`. Expires a year after `at`."""

    _id: bytes
    """Keyed hash of the organization id and the handle."""

    at: datetime
    """When its user changed it, or when the user's erasure was requested, by the database's clock."""


class StoredSecret(TypedDict):
    """A secret of a service key."""

    digest: str
    """SHA-256 of the whole key, in hexadecimal digits."""

    until: NotRequired[datetime]
    """When the secret ends, by the database's clock; absent until a rotation replaces the secret."""

    by: NotRequired[str]
    """Id of the administrator to whom a rotation showed the secret; absent for the first secret, which the creator saw,
    and for rotations by earlier releases."""


class ServiceKeyDocument(TypedDict):
    """A service key, in `service_keys`. Expires 90 days after `ends_at`."""

    _id: str
    """Generated. The middle part of the key, and the id of its service account in `users`."""

    org: str
    """Organization id."""

    name: str
    """Name that an administrator gave the key and its service account."""

    scopes: list[str]
    """Keys of `ROLE_OF_SCOPE`, sorted. They never change."""

    secrets: list[StoredSecret]
    """The newest first. Earlier ones may have ended."""

    created_at: datetime
    """When the key was created, by the database's clock."""

    created_by: str
    """Id of the administrator who created the key."""

    expires_at: NotRequired[datetime]
    """When the key expires, as its creator chose; absent for a key that does not expire."""

    revoked_at: NotRequired[datetime]
    """When an administrator revoked the key, by the database's clock; absent for other keys."""

    ends_at: NotRequired[datetime]
    """The earlier one of `expires_at` and `revoked_at`; absent for a key without an end."""

    used_at: NotRequired[datetime]
    """When the key was last used, by the database's clock, to about a minute; absent before the first use."""
