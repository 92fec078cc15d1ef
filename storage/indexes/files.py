"""Indexes of uploaded files (storage/files/documents.py)."""

from pymongo import ASCENDING as UP
from pymongo import IndexModel

FILES_INDEXES: dict[str, list[IndexModel]] = {
    # FileDocument
    "files": [
        IndexModel([("org", UP), ("user", UP), ("_id", UP)]),
        IndexModel(
            [("org", UP), ("user", UP), ("expires_at", UP)],
            name="unattached",
            partialFilterExpression={"expires_at": {"$exists": True}},
        ),
        IndexModel(
            [("org", UP), ("user", UP), ("_id", UP)],
            name="library",
            partialFilterExpression={"library_alt": {"$exists": True}},
        ),
        *(
            IndexModel([(moment, UP)], partialFilterExpression={moment: {"$exists": True}})
            for moment in ("due", "expires_at", "fetch_at")
        ),
        IndexModel(
            [("call.j", UP), ("call.r", UP), ("call.n", UP)], partialFilterExpression={"call.j": {"$exists": True}}
        ),
    ],
    # FileRemovalDocument
    "file_removals": [IndexModel([("at", UP)])],
    "file_usage": [],  # FileUsageDocument
}
