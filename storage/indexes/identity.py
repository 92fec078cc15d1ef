"""Indexes of users, their accounts, sessions, keys and relations (storage/identity/documents.py)."""

from pymongo import ASCENDING as UP
from pymongo import DESCENDING as DOWN
from pymongo import IndexModel

from storage.indexes.lifetimes import (
    ACCESS_CHANGES_KEPT_S,
    AUDIT_KEPT_S,
    ENDED_KEYS_KEPT_S,
    HANDLES_KEPT_S,
    INVITATIONS_KEPT_S,
)

IDENTITY_INDEXES: dict[str, list[IndexModel]] = {
    # UserDocument
    "users": [
        IndexModel([("_id.org", UP), ("handle", UP)], unique=True),
        IndexModel([("_id.org", UP), ("search", UP)]),
        IndexModel([("_id.org", UP), ("roles", UP), ("handle", UP)]),
        IndexModel(
            [("_id.org", UP), ("deactivated_at", UP)], partialFilterExpression={"deactivated_at": {"$exists": True}}
        ),
    ],
    # AuditEntryDocument
    "audit": [
        IndexModel([("org", UP), ("at", DOWN), ("_id", DOWN)]),
        IndexModel([("org", UP), ("actor", UP), ("at", DOWN), ("_id", DOWN)]),
        IndexModel([("org", UP), ("target", UP), ("at", DOWN), ("_id", DOWN)]),
        IndexModel([("org", UP), ("action", UP), ("at", DOWN), ("_id", DOWN)]),
        IndexModel([("at", UP)], expireAfterSeconds=AUDIT_KEPT_S),
    ],
    # ServiceKeyDocument
    "service_keys": [
        IndexModel([("org", UP), ("_id", DOWN)]),
        IndexModel([("ends_at", UP)], expireAfterSeconds=ENDED_KEYS_KEPT_S),
    ],
    # AccessChangeDocument
    "access_changes": [IndexModel([("at", UP)], expireAfterSeconds=ACCESS_CHANGES_KEPT_S)],
    # SessionDocument
    "sessions": [
        IndexModel([("org", UP), ("user", UP), ("used_at", DOWN)]),
        IndexModel([("provider.sid", UP)], partialFilterExpression={"provider.sid": {"$exists": True}}),
        IndexModel([("provider.sub", UP)], partialFilterExpression={"provider.sub": {"$exists": True}}),
        IndexModel([("until", UP)], expireAfterSeconds=0),
    ],
    # storage/identity/accounts/documents.py
    # LocalAccountDocument
    "local_accounts": [IndexModel([("_id.org", UP), ("address", UP)], unique=True)],
    # PasskeyDocument
    "passkeys": [IndexModel([("org", UP), ("user", UP), ("at", UP)])],
    # PasskeyChallengeDocument
    "passkey_challenges": [IndexModel([("at", UP)], expireAfterSeconds=3600)],
    # AccountTokenDocument
    "account_tokens": [
        IndexModel([("digest", UP)], unique=True),
        IndexModel([("org", UP), ("address", UP)]),
        IndexModel([("expires_at", UP)], expireAfterSeconds=0),
    ],
    # AccountMailDocument
    "account_mails": [IndexModel([("due", UP)]), IndexModel([("expires_at", UP)], expireAfterSeconds=0)],
    # SignInLimitDocument
    "sign_in_limits": [IndexModel([("free_at", UP)], expireAfterSeconds=0)],
    # InvitationDocument
    "invitations": [
        IndexModel([("digests", UP)], unique=True),
        IndexModel([("org", UP), ("at", DOWN), ("_id", DOWN)]),
        IndexModel([("expires_at", UP)], expireAfterSeconds=INVITATIONS_KEPT_S),
    ],
    # ProviderLogoutDocument
    "provider_logouts": [IndexModel([("at", UP)], expireAfterSeconds=3600)],
    # ReservedHandleDocument
    "reserved_handles": [IndexModel([("at", UP)], expireAfterSeconds=HANDLES_KEPT_S)],
    "organization_settings": [],  # OrganizationSettingsDocument
    # BlockDocument
    "blocks": [
        IndexModel([("org", UP), ("user", UP), ("blocked", UP)], unique=True),
        IndexModel([("org", UP), ("blocked", UP), ("user", UP)]),
    ],
    # MuteDocument
    "mutes": [
        IndexModel([("_id.o", UP), ("_id.s", UP), ("_id.u", UP)]),
        IndexModel([("until", UP)], expireAfterSeconds=0),
    ],
    # FollowDocument
    "follows": [
        IndexModel([("org", UP), ("follower", UP), ("followee", UP)], unique=True),
        IndexModel([("org", UP), ("followee", UP), ("follower", UP)]),
    ],
    # FollowChangeDocument
    "follow_changes": [IndexModel([("at", UP)])],
}
