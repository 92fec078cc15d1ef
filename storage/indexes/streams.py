"""Indexes of event streams and notifications (storage/streams/documents.py)."""

from pymongo import ASCENDING as UP
from pymongo import IndexModel

from storage.indexes.lifetimes import LIST_STREAMS_KEPT_S

STREAMS_INDEXES: dict[str, list[IndexModel]] = {
    # StreamDocument
    "streams": [
        IndexModel([("subscribed_at", UP)], expireAfterSeconds=LIST_STREAMS_KEPT_S),
    ],
    # EventDocument
    "events": [
        IndexModel([("at", UP)]),
        IndexModel(
            [("kind", UP), ("at", UP)],
            name="offline_notifications",
            partialFilterExpression={"kind": {"$in": ["ConversationChanged", "NotificationArrived"]}},
        ),
    ],
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
    "notification_marks": [],  # NotificationMarkDocument
    "notification_settings": [],  # NotificationSettingsDocument (storage/notifications/documents.py)
    # NotificationChannelDocument
    "notification_channels": [
        IndexModel([("org", UP), ("user", UP), ("at", UP)]),
        IndexModel([("way", UP), ("due", UP)], partialFilterExpression={"due": {"$exists": True}}),
        IndexModel([("until", UP)], expireAfterSeconds=0),
    ],
    "notification_scans": [],  # NotificationScanDocument
}
