"""Indexes of call jobs and their tasks (storage/calls/documents.py)."""

from pymongo import ASCENDING as UP
from pymongo import IndexModel

CALLS_INDEXES: dict[str, list[IndexModel]] = {
    # CallJobDocument
    "call_jobs": [
        IndexModel([("org", UP), ("ts", UP)]),
        IndexModel([("org", UP), ("state", UP), ("ts", UP)]),
        IndexModel([("org", UP), ("ts", UP)], name="open_jobs", partialFilterExpression={"open": True}),
        IndexModel([("org", UP), ("kept", UP), ("ts", UP)], name="kept"),
    ],
    # CallTaskDocument
    "call_tasks": [
        IndexModel([("_id.j", UP), ("queue", UP), ("_id.r", UP)], partialFilterExpression={"queue": {"$exists": True}}),
        IndexModel([("_id.j", UP), ("state", UP), ("_id.r", UP)]),
        IndexModel([("poll_at", UP)], partialFilterExpression={"poll_at": {"$exists": True}}),
        IndexModel(
            [("_id.j", UP), ("_id.r", UP)], name="event_pending", partialFilterExpression={"event_pending": True}
        ),
    ],
    # CallDraftDocument
    "call_drafts": [IndexModel([("at", UP)])],
    "call_row_errors": [],  # CallRowErrorDocument
    "call_limits": [],  # CallLimitsDocument
    "do_not_call": [],  # DoNotCallDocument
    # SimulatedCallDocument
    "simulated_calls": [IndexModel([("at", UP)], expireAfterSeconds=7 * 24 * 3600)],
}
