"""Indexes of retention rules, erasures and exports (storage/privacy/documents.py)."""

from pymongo import ASCENDING as UP
from pymongo import DESCENDING as DOWN
from pymongo import IndexModel

from storage.indexes.lifetimes import ERASURES_KEPT_S, EXPORTS_KEPT_S

PRIVACY_INDEXES: dict[str, list[IndexModel]] = {
    # RetentionRuleDocument
    "retention_rules": [IndexModel([("due", UP)])],
    # ErasureDocument
    "erasures": [
        IndexModel([("_id.org", UP), ("at", DOWN), ("_id.id", DOWN)]),
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
}
