"""Stored documents of accounts. Instants are aware UTC datetimes, by the database's clock."""

from datetime import datetime
from typing import NotRequired, TypedDict

from storage.identity.documents import UserDocumentId


class LocalAccountDocument(TypedDict):
    """A user's mail address and password, in `local_accounts`. Created with the user, deleted by an erasure."""

    _id: UserDocumentId
    """The `_id` of the user."""

    address: str
    """Normalized mail address; unique within the organization."""

    hash: NotRequired[str]
    """Argon2id hash of the password, with its parameters and its salt; absent for an account without a password."""

    language: str
    """Value of `Language`, for mails."""

    password_at: NotRequired[datetime]
    """When the password was set; absent for an account without a password."""

    passkeys_at: NotRequired[datetime]
    """When the passkeys last changed; absent until then. Writing the field locks the document in the transaction of the
    change."""

    signed_in_at: NotRequired[datetime]
    """When the person last signed in; absent until then. Writing the field locks the document in the transaction of the
    sign-in."""

    at: datetime
    """When the account was created."""


class AccountTokenDocument(TypedDict):
    """The token of a link that may be used once, in `account_tokens`. Deleted by its use, or when it expires."""

    _id: str
    """Generated; for the first ADMIN of an organization a fixed id, so that there is one such token at most."""

    digest: str
    """SHA-256 of the token, in hexadecimal digits. The token itself is stored nowhere."""

    purpose: str
    """Value of `TokenPurpose`."""

    org: str
    """Organization id."""

    user: NotRequired[str]
    """User whose password the token resets; absent for other purposes."""

    address: NotRequired[str]
    """Mail address to which the token was sent; absent for the first ADMIN."""

    invitation: NotRequired[str]
    """Invitation that the person accepts with the registration; absent without one."""

    expires_at: datetime
    """When the token becomes invalid."""


class SignInLimitDocument(TypedDict):
    """Attempts that a limit has counted, in `sign_in_limits`. Expires at `free_at`, when it has no more effect."""

    _id: str
    """Name of the limit, and a digest of the account or the client."""

    free_at: datetime
    """When all counted attempts are forgotten."""

    attempt: str
    """Random id of the last attempt that was admitted."""

    wait_ms: int
    """How long the last attempt would have had to wait, in milliseconds; 0 or less if it was admitted."""


class AccountMailDocument(TypedDict):
    """A mail to be sent, in `account_mails`. Deleted when it was sent or can't be sent, or when it expires."""

    _id: str
    """Generated."""

    kind: str
    """Value of `AccountMailKind`."""

    org: str
    """Organization id."""

    address: str
    """Recipient."""

    language: str
    """Value of `Language`."""

    invitation: NotRequired[str]
    """Invitation that the mail is about."""

    due: datetime
    """When the mail is sent, or tried again."""

    expires_at: datetime
    """When no further attempt is made."""


class InvitationDocument(TypedDict):
    """An invitation, in `invitations`. Expires 30 days after `expires_at`."""

    _id: str
    """Generated."""

    org: str
    """Organization id."""

    digests: list[str]
    """SHA-256 of the token of the link, and of the tokens that were mailed; at most 10."""

    role: str
    """Value of the `Role` that accepting grants."""

    community: NotRequired[str]
    """Community that the person joins; absent for none."""

    address: NotRequired[str]
    """Mail address of the only person who may accept. Absent for a link that anyone may use, and after the erasure of
    that person, which revokes the invitation unless it was accepted."""

    max_uses: int
    """How many people may accept."""

    users: list[str]
    """Ids of the users who have accepted, at most `max_uses`."""

    creator: str
    """Id of the user who created the invitation."""

    at: datetime
    """When the invitation was created."""

    expires_at: datetime
    """When nobody can accept any more."""

    revoked_at: NotRequired[datetime]
    """When the invitation was revoked: by an administrator, with the creator's role or access, or by the erasure of the
    person whom it was for. Absent while it is valid."""
