"""Every index. Most timelines need no index, because their `_id` sorts them.

A start creates the indexes of an empty database; `noroshi migrate` builds those that a later release adds or changes
(docs/adding-a-migration.md).
"""

from pymongo import ASCENDING as UP
from pymongo import DESCENDING as DOWN
from pymongo import IndexModel

from storage import idempotency

AUDIT_KEPT_S = 730 * 86_400
ACCESS_CHANGES_KEPT_S = 3600
INVITATIONS_KEPT_S = 30 * 86_400
EXPORTS_KEPT_S = 7 * 86_400
HANDLES_KEPT_S = 365 * 86_400
ERASURES_KEPT_S = 730 * 86_400
ENDED_KEYS_KEPT_S = 90 * 86_400
LEDGER_KEPT_S = 14 * 86_400
FAILURES_KEPT_S = 30 * 86_400
REPORTS_KEPT_S = 400 * 86_400

INDEXES: dict[str, list[IndexModel]] = {
    # Identity: storage/identity/documents.py
    # UserDocument
    "users": [
        IndexModel([("_id.org", UP), ("handle", UP)], unique=True),
        IndexModel([("_id.org", UP), ("search", UP)]),
        IndexModel([("_id.org", UP), ("roles", UP), ("handle", UP)]),
        IndexModel(
            [("_id.org", UP), ("deactivated_at", UP)], partialFilterExpression={"deactivated_at": {"$exists": True}}
        ),
    ],
    # AuditDocument
    "audit": [
        IndexModel([("org", UP), ("at", DOWN), ("_id", DOWN)]),
        IndexModel([("org", UP), ("actor", UP), ("at", DOWN), ("_id", DOWN)]),
        IndexModel([("org", UP), ("target", UP), ("at", DOWN), ("_id", DOWN)]),
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
    # Accounts: storage/identity/accounts/documents.py
    # LocalAccountDocument
    "local_accounts": [IndexModel([("_id.org", UP), ("address", UP)], unique=True)],
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
    # BlockDocument
    "blocks": [
        IndexModel([("org", UP), ("user", UP), ("blocked", UP)], unique=True),
        IndexModel([("org", UP), ("blocked", UP), ("user", UP)]),
    ],
    # FollowDocument
    "follows": [
        IndexModel([("org", UP), ("follower", UP), ("followee", UP)], unique=True),
        IndexModel([("org", UP), ("followee", UP), ("follower", UP)]),
    ],
    # FollowChangeDocument
    "follow_changes": [IndexModel([("at", UP)])],
    # Chat: storage/chat/documents.py
    # CommunityDocument
    "communities": [IndexModel([("org", UP), ("sort", UP), ("_id", UP)])],
    # MembershipDocument
    "memberships": [
        IndexModel([("community", UP), ("user", UP)], unique=True),
        IndexModel([("community", UP), ("handle", UP)]),
        IndexModel([("community", UP), ("search", UP)]),
        IndexModel([("org", UP), ("user", UP)]),
        IndexModel([("community", UP), ("role", UP), ("handle", UP)]),
    ],
    # RestrictionDocument
    "community_restrictions": [
        IndexModel([("ends_at", UP)], expireAfterSeconds=0),
        IndexModel([("_id.u", UP), ("_id", UP)]),
        IndexModel([("ban.by", UP), ("_id", UP)], partialFilterExpression={"ban.by": {"$exists": True}}),
    ],
    # JoinRequestDocument
    "join_requests": [IndexModel([("_id.u", UP), ("_id", UP)])],
    # SlowModePostDocument
    "slow_mode_posts": [
        IndexModel([("ends_at", UP)], expireAfterSeconds=0),
        IndexModel([("_id.u", UP), ("_id", UP)]),
    ],
    # ContentReportDocument
    "content_reports": [
        IndexModel([("org", UP), ("state", UP), ("at", UP), ("_id", UP)]),
        IndexModel([("org", UP), ("at", UP), ("_id", UP)]),
        IndexModel([("org", UP), ("community", UP), ("at", UP), ("_id", UP)]),
        IndexModel([("org", UP), ("subject", UP), ("state", UP)]),
        IndexModel([("org", UP), ("reporter", UP), ("state", UP)]),
        IndexModel([("org", UP), ("reporter", UP), ("_id", UP)]),
        IndexModel([("org", UP), ("author", UP), ("_id", UP)]),
        IndexModel([("effect_due", UP)], partialFilterExpression={"effect_due": {"$exists": True}}),
        IndexModel([("expires_at", UP)], expireAfterSeconds=0),
    ],
    # TopicDocument
    "topics": [
        IndexModel([("community", UP), ("last", DOWN), ("_id", DOWN)]),
        IndexModel([("org", UP), ("trend", DOWN)], partialFilterExpression={"trend": {"$exists": True}}),
    ],
    # TopicActivityDocument
    "activity": [],
    # MessageDocument
    "messages": [
        IndexModel([("preview_due", UP)], partialFilterExpression={"preview_due": {"$exists": True}}),
        IndexModel([("source", UP)], unique=True, partialFilterExpression={"source": {"$exists": True}}),
        # Exports and erasures of a person. A user id may exist in several organizations.
        IndexModel([("author", UP), ("_id", UP)]),
    ],
    # ReactionDocument
    "reactions": [
        IndexModel([("_id.t", UP), ("_id.ts", UP), ("_id.u", UP)]),
        IndexModel([("_id.t", UP), ("_id.ts", UP), ("_id.e", UP), ("at", UP)]),
        IndexModel([("_id.u", UP), ("_id", UP)]),
    ],
    # ReceivedReactionDocument
    "received_reactions": [IndexModel([("topic", UP), ("ts", UP), ("emoji", UP), ("from", UP)], unique=True)],
    # ReadMarkDocument
    "read_marks": [IndexModel([("_id.u", UP), ("_id", UP)])],
    # Feed: storage/feed/documents.py
    # PostDocument
    "posts": [
        IndexModel([("_id.o", UP), ("author", UP), ("_id.ts", UP)]),
        IndexModel([("_id.o", UP), ("tags", UP), ("_id.ts", UP)], partialFilterExpression={"tags": {"$exists": True}}),
        IndexModel([("preview_due", UP)], partialFilterExpression={"preview_due": {"$exists": True}}),
    ],
    # PostSourceDocument
    "post_sources": [],
    # MergedAuthorDocument
    "merged_authors": [],
    # FeedItemDocument. A single index: each post costs one write for each follower.
    "feed_items": [],
    # FeedDocument
    "feeds": [IndexModel([("rebuilding", UP)], partialFilterExpression={"rebuilding": True})],
    # FanOutDocument
    "fan_outs": [IndexModel([("at", UP)], partialFilterExpression={"open": True})],
    # FeedRetryDocument
    "feed_retries": [
        IndexModel([("due", UP)], partialFilterExpression={"due": {"$exists": True}}),
        IndexModel([("failed_at", UP)], expireAfterSeconds=FAILURES_KEPT_S),
    ],
    # Publishing: storage/publishing/documents.py
    # AccountDocument
    "accounts": [
        IndexModel([("org", UP)]),
        IndexModel([("failing", UP)], partialFilterExpression={"failing": {"$exists": True}}),
        IndexModel([("org", UP), ("connected_by", UP)], partialFilterExpression={"connected_by": {"$exists": True}}),
    ],
    # ScheduledPostDocument
    "scheduled_posts": [
        IndexModel([("org", UP), ("ts", UP)], unique=True),
        IndexModel([("org", UP), ("author", UP), ("ts", UP)]),
    ],
    # PublicationDocument
    "publications": [
        IndexModel([("post", UP), ("place", UP)]),
        IndexModel([("org", UP), ("state", UP), ("ts", UP), ("author", UP)]),
        # Partial, so that a sweep reads only publications with work, and not all that are scheduled.
        *(
            IndexModel([(moment, UP)], partialFilterExpression={moment: {"$exists": True}})
            for moment in ("wake_at", "upload_at", "mail_at")
        ),
        IndexModel([("target.id", UP)], partialFilterExpression={"state": "SCHEDULED"}),
    ],
    # SandboxPostDocument
    "sandbox_posts": [],
    # Calls: storage/calls/documents.py
    # CallJobDocument
    "call_jobs": [
        IndexModel([("org", UP), ("ts", UP)]),
        IndexModel([("org", UP), ("state", UP), ("ts", UP)]),
        IndexModel([("org", UP), ("ts", UP)], name="open_jobs", partialFilterExpression={"open": True}),
    ],
    # CallTaskDocument
    "call_tasks": [
        IndexModel([("_id.j", UP), ("queue", UP), ("_id.r", UP)], partialFilterExpression={"queue": {"$exists": True}}),
        IndexModel([("_id.j", UP), ("state", UP), ("_id.r", UP)]),
        IndexModel([("ask_at", UP)], partialFilterExpression={"ask_at": {"$exists": True}}),
        IndexModel([("_id.j", UP), ("_id.r", UP)], name="untold", partialFilterExpression={"untold": True}),
    ],
    # CallDraftDocument
    "call_drafts": [IndexModel([("at", UP)])],
    # CallRowErrorDocument
    "call_row_errors": [],
    # CallLimitsDocument
    "call_limits": [],
    # DoNotCallDocument
    "do_not_call": [],
    # SimulatedCallDocument
    "simulated_calls": [IndexModel([("at", UP)], expireAfterSeconds=7 * 24 * 3600)],
    # Mail: storage/mail/documents.py
    # LedgerDocument
    "mail_ledger": [
        IndexModel([("waiting", UP), ("recorded_at", UP)], partialFilterExpression={"waiting": {"$exists": True}}),
        IndexModel([("folded_at", UP)], expireAfterSeconds=LEDGER_KEPT_S),
    ],
    # AddressDocument. The indexes named `told` cover lookups, which therefore read no documents.
    "mail_addresses": [
        IndexModel([("_id", UP), ("told", UP)], name="told"),
        IndexModel([("org", UP)]),
        IndexModel([("moved_at", UP)], expireAfterSeconds=15 * 86_400, sparse=True),
    ],
    # DomainDocument
    "mail_domains": [
        IndexModel([("_id", UP), ("told", UP)], name="told"),
        IndexModel([("org", UP), ("recent.day", UP)]),
        IndexModel([("recent.day", UP)]),
    ],
    # DayDocument
    "mail_days": [IndexModel([("_id.org", UP), ("_id.day", UP)]), IndexModel([("_id.day", UP), ("_id.org", UP)])],
    # SourceDocument
    "mail_sources": [IndexModel([("_id.org", UP)])],
    # AuditDocument
    "mail_audit": [
        IndexModel([("org", UP), ("subject", UP), ("at", UP)]),
        IndexModel([("org", UP), ("by", UP), ("_id", UP)]),
    ],
    # ReportDocument
    "mail_reports": [
        IndexModel([("_id.day", DOWN), ("_id.org", UP), ("_id.kind", UP)]),
        IndexModel([("claimed_at", UP)], expireAfterSeconds=REPORTS_KEPT_S),
    ],
    # MailTailDocument (storage/heartbeats.py)
    "mail_tails": [IndexModel([("at", UP)], expireAfterSeconds=3600)],
    # DifferenceDocument
    "mail_differences": [IndexModel([("at", UP)], expireAfterSeconds=30 * 86_400)],
    # Streams and notifications: storage/streams/documents.py
    # StreamDocument
    "streams": [],
    # EventDocument
    "events": [IndexModel([("at", UP)])],
    # OutboxDocument
    "outbox": [
        IndexModel([("stream", UP), ("_id", UP)]),
        IndexModel([("stream", UP), ("due", UP)], partialFilterExpression={"due": {"$exists": True}}),
        IndexModel([("at", UP)]),
    ],
    # NotificationDocument
    "notifications": [
        IndexModel([("_id.o", UP), ("_id.u", UP), ("about", UP)]),
        IndexModel([("topic", UP), ("ts", UP)], partialFilterExpression={"kind": "REACTION"}),
    ],
    # NotificationMarkDocument
    "notification_marks": [],
    # Privacy: storage/privacy/documents.py
    # ErasureDocument
    "erasures": [
        IndexModel([("_id.org", UP), ("at", DOWN)]),
        IndexModel([("due", UP)], partialFilterExpression={"due": {"$exists": True}}),
        IndexModel([("completed_at", UP)], expireAfterSeconds=ERASURES_KEPT_S),
    ],
    # ExportDocument
    "exports": [
        IndexModel([("key", UP)], unique=True),
        IndexModel([("due", UP)], partialFilterExpression={"due": {"$exists": True}}),
        IndexModel([("at", UP)], expireAfterSeconds=EXPORTS_KEPT_S),
    ],
    # ExportChunkDocument
    "export_chunks": [
        IndexModel([("org", UP), ("user", UP), ("_id", UP)]),
        IndexModel([("at", UP)], expireAfterSeconds=EXPORTS_KEPT_S),
    ],
    # Mechanisms of several areas
    # IdempotencyKeyDocument (storage/idempotency.py)
    "idempotency": [IndexModel([("at", UP)], expireAfterSeconds=idempotency.KEPT_S)],
    # LockDocument and FenceDocument (storage/locks.py)
    "process_locks": [],
    "fences": [],
    # DataVersionDocument (storage/migrations/data_version.py)
    "data_version": [],
    # KeyFingerprintsDocument (storage/secrets/key_fingerprints.py)
    "key_fingerprints": [],
    # SecretDocument (storage/secrets/shared_secrets.py)
    "secrets": [],
    # WorkerDocument (storage/heartbeats.py)
    "workers": [IndexModel([("at", UP)], expireAfterSeconds=3600)],
}
"""The indexes of each collection. A comment names the type of its documents.

Collections without indexes are listed too. They are created at start, since transactions that write to them would
otherwise wait for their creation. An index that a query names as its hint needs a new name when its definition changes.
"""
