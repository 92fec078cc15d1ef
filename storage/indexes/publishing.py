"""Indexes of connected accounts and scheduled posts (storage/publishing/documents.py)."""

from pymongo import ASCENDING as UP
from pymongo import IndexModel

from storage.indexes.lifetimes import SUMMARIES_KEPT_S

PUBLISHING_INDEXES: dict[str, list[IndexModel]] = {
    # AccountDocument
    "accounts": [
        IndexModel([("org", UP)]),
        IndexModel([("renew_at", UP)], partialFilterExpression={"renew_at": {"$exists": True}}),
        IndexModel([("warn_at", UP)], partialFilterExpression={"warn_at": {"$exists": True}}),
        # Also of accounts without `verify_at`, which are due at once.
        IndexModel([("network", UP), ("verify_at", UP)], partialFilterExpression={"credentials": {"$exists": True}}),
        IndexModel([("failing", UP)], partialFilterExpression={"failing": {"$exists": True}}),
        IndexModel([("org", UP), ("connected_by", UP)], partialFilterExpression={"connected_by": {"$exists": True}}),
    ],
    # AccountConnectionDocument
    "account_connections": [
        IndexModel([("org", UP), ("user", UP), ("_id", UP)]),
        IndexModel([("expires_at", UP)], expireAfterSeconds=0),
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
        IndexModel([("org", UP), ("ts", UP)], name="held", partialFilterExpression={"held_at": {"$exists": True}}),
        # Partial, so that a sweep reads only publications with work, and not all that are scheduled.
        *(
            IndexModel([(moment, UP)], partialFilterExpression={moment: {"$exists": True}})
            for moment in ("wake_at", "upload_at", "mail_at")
        ),
        IndexModel([("target.id", UP)], partialFilterExpression={"state": "SCHEDULED"}),
        IndexModel(
            [("target.id", UP), ("_id", UP)],
            name="needing_attention",
            partialFilterExpression={"state": "NEEDS_ATTENTION"},
        ),
    ],
    "publication_problems": [IndexModel([("due", UP)])],  # PublicationProblemsDocument
    # PublicationSummaryDocument
    "publication_summaries": [IndexModel([("at", UP)], expireAfterSeconds=SUMMARIES_KEPT_S)],
    "sandbox_posts": [],  # SandboxPostDocument
}
