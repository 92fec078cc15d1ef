"""Indexes of posts, feeds and fan-out (storage/feed/documents.py)."""

from pymongo import ASCENDING as UP
from pymongo import DESCENDING as DOWN
from pymongo import IndexModel

from storage.indexes.lifetimes import FAILURES_KEPT_S

FEED_INDEXES: dict[str, list[IndexModel]] = {
    # PostDocument
    "posts": [
        IndexModel([("_id.o", UP), ("author", UP), ("_id.ts", UP)]),
        IndexModel([("_id.o", UP), ("tags", UP), ("_id.ts", UP)], partialFilterExpression={"tags": {"$exists": True}}),
        IndexModel([("preview_due", UP)], partialFilterExpression={"preview_due": {"$exists": True}}),
        IndexModel(
            [("_id.o", UP), ("parent.ts", UP), ("parent.kind", UP), ("_id.ts", UP), ("author", UP)],
            name="responses",
            partialFilterExpression={"parent.ts": {"$exists": True}},
        ),
        IndexModel(
            [("author", UP), ("_id", UP)],
            name="reacted_posts",
            partialFilterExpression={"reactions": {"$exists": True}},
        ),
    ],
    # PostReactionDocument
    "post_reactions": [
        IndexModel([("_id.o", UP), ("_id.ts", UP), ("_id.u", UP)]),
        IndexModel([("_id.o", UP), ("_id.ts", UP), ("_id.e", UP), ("at", UP)]),
        IndexModel([("_id.o", UP), ("_id.u", UP), ("_id", UP)]),
    ],
    # PostHistoryDocument
    "post_histories": [IndexModel([("_id.o", UP), ("author", UP), ("_id", UP)])],
    # PostTermsDocument
    "post_terms": [IndexModel([("_id.o", UP), ("terms", UP), ("_id.ts", DOWN)])],
    "post_sources": [],  # PostSourceDocument
    "merged_authors": [],  # MergedAuthorDocument
    # FeedItemDocument. Only reposts are in the index: a post is written once for each follower, and each write would
    # have to update the index too.
    "feed_items": [
        IndexModel(
            [("_id.o", UP), ("_id.u", UP), ("of", UP)],
            name="reposts",
            partialFilterExpression={"of": {"$exists": True}},
        )
    ],
    # FeedDocument
    "feeds": [IndexModel([("rebuilding", UP)], partialFilterExpression={"rebuilding": True})],
    # FanOutDocument
    "fan_outs": [IndexModel([("at", UP)], partialFilterExpression={"open": True})],
    # FeedRetryDocument
    "feed_retries": [
        IndexModel([("due", UP)], partialFilterExpression={"due": {"$exists": True}}),
        IndexModel([("failed_at", UP)], expireAfterSeconds=FAILURES_KEPT_S),
    ],
}
