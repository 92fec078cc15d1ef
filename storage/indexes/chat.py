"""Indexes of communities, topics, messages and their searches (storage/chat/documents.py)."""

from pymongo import ASCENDING as UP
from pymongo import DESCENDING as DOWN
from pymongo import IndexModel

CHAT_INDEXES: dict[str, list[IndexModel]] = {
    # CommunityDocument
    "communities": [
        IndexModel([("org", UP), ("sort", UP), ("_id", UP)]),
        IndexModel([("org", UP), ("_id", UP)], partialFilterExpression={"owner_erased": True}),
    ],
    # MembershipDocument
    "memberships": [
        IndexModel([("community", UP), ("user", UP)], unique=True),
        IndexModel([("community", UP), ("handle", UP)]),
        IndexModel([("community", UP), ("search", UP)]),
        IndexModel([("org", UP), ("user", UP)]),
        IndexModel([("community", UP), ("role", UP), ("handle", UP)]),
        IndexModel([("org", UP), ("user", UP), ("community", UP)], partialFilterExpression={"role": "OWNER"}),
    ],
    # RestrictionDocument
    "community_restrictions": [
        IndexModel([("ends_at", UP)], expireAfterSeconds=0),
        IndexModel([("_id.u", UP), ("_id", UP)]),
        IndexModel([("ban.by", UP), ("_id", UP)], partialFilterExpression={"ban.by": {"$exists": True}}),
    ],
    # JoinRequestDocument
    "join_requests": [IndexModel([("_id.u", UP), ("_id", UP)])],
    # ContactCountDocument (storage/chat/conversations/documents.py)
    "contact_counts": [IndexModel([("ends_at", UP)], expireAfterSeconds=0)],
    # SlowModePostDocument
    "slow_mode_posts": [
        IndexModel([("ends_at", UP)], expireAfterSeconds=0),
        IndexModel([("_id.u", UP), ("_id", UP)]),
    ],
    # ContentReportDocument
    "content_reports": [
        IndexModel([("org", UP), ("private", UP), ("state", UP), ("at", UP), ("_id", UP)]),
        IndexModel([("org", UP), ("private", UP), ("at", UP), ("_id", UP)]),
        IndexModel([("org", UP), ("community", UP), ("at", UP), ("_id", UP)]),
        IndexModel([("org", UP), ("subject", UP), ("state", UP)]),
        IndexModel([("org", UP), ("reporter", UP), ("state", UP)]),
        IndexModel([("org", UP), ("reporter", UP), ("_id", UP)]),
        IndexModel([("org", UP), ("author", UP), ("_id", UP)]),
        IndexModel([("org", UP), ("by", UP), ("_id", UP)], partialFilterExpression={"by": {"$exists": True}}),
        IndexModel([("effect_due", UP)], partialFilterExpression={"effect_due": {"$exists": True}}),
        IndexModel([("expires_at", UP)], expireAfterSeconds=0),
    ],
    # TopicDocument
    "topics": [
        # Lists of topics read the entries without a thread.
        IndexModel([("community", UP), ("thread.ts", UP), ("last", DOWN), ("_id", DOWN)]),
        *(
            IndexModel(
                [("org", UP), ("thread.followers", UP), *order],
                partialFilterExpression={"thread.followers": {"$exists": True}},
            )
            for order in ([("last", DOWN), ("_id", DOWN)], [("_id", UP)])
        ),
        IndexModel([("thread.topic", UP)], partialFilterExpression={"thread.topic": {"$exists": True}}),
        IndexModel(
            [("org", UP), ("_id", UP)],
            name="conversation_threads",
            partialFilterExpression={"thread.direct": {"$exists": True}},
        ),
        IndexModel([("org", UP), ("trend", DOWN)], partialFilterExpression={"trend": {"$exists": True}}),
        *(
            IndexModel(
                [("org", UP), (people, UP), ("last", DOWN), ("_id", DOWN)],
                partialFilterExpression={people: {"$exists": True}},
            )
            for people in ("direct.joined", "direct.requested")
        ),
        IndexModel(
            [("org", UP), ("_id", UP)], name="conversations", partialFilterExpression={"direct": {"$exists": True}}
        ),
    ],
    "activity": [],  # TopicActivityDocument
    # MessageDocument
    "messages": [
        IndexModel([("preview_due", UP)], partialFilterExpression={"preview_due": {"$exists": True}}),
        IndexModel([("source", UP)], unique=True, partialFilterExpression={"source": {"$exists": True}}),
        # For exports and erasures of a person. Another organization's user may have the same id; the topics of the
        # messages tell the two apart.
        IndexModel([("author", UP), ("_id", UP)]),
    ],
    # MessageTermsDocument (storage/chat/search/documents.py)
    "message_terms": [IndexModel([("place", UP), ("terms", UP), ("_id.ts", DOWN)])],
    # TopicTermsDocument (storage/chat/search/documents.py)
    "topic_terms": [IndexModel([("place", UP), ("terms", UP), ("_id.ts", DOWN)])],
    # ReactionDocument (storage/chat/reactions/documents.py)
    "reactions": [
        IndexModel([("_id.t", UP), ("_id.ts", UP), ("_id.u", UP)]),
        IndexModel([("_id.t", UP), ("_id.ts", UP), ("_id.e", UP), ("at", UP)]),
        IndexModel([("_id.u", UP), ("_id", UP)]),
    ],
    # ReceivedReactionDocument
    "received_reactions": [IndexModel([("topic", UP), ("ts", UP), ("emoji", UP), ("from", UP)], unique=True)],
    # StampCatalogueDocument (storage/chat/stamps/documents.py)
    "stamp_catalogues": [IndexModel([("due", UP)], partialFilterExpression={"due": {"$exists": True}})],
    "stamp_ownerships": [],  # StampOwnershipDocument
    "stamp_scans": [],  # StampScanDocument
    # ReadMarkDocument
    "read_marks": [IndexModel([("_id.u", UP), ("_id", UP)])],
}
