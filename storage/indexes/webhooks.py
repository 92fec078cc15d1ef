"""Indexes of webhooks (storage/webhooks/documents.py)."""

from pymongo import ASCENDING as UP
from pymongo import DESCENDING as DOWN
from pymongo import IndexModel

from storage.indexes.lifetimes import WEBHOOK_DELIVERIES_KEPT_S, WEBHOOK_POSITIONS_KEPT_S

WEBHOOKS_INDEXES: dict[str, list[IndexModel]] = {
    # WebhookDocument
    "webhooks": [
        IndexModel([("org", UP), ("_id", DOWN)]),
        IndexModel([("disabled_at", UP)]),
        IndexModel([("due", UP)], partialFilterExpression={"due": {"$exists": True}}),
        IndexModel([("notice_due", UP)], partialFilterExpression={"notice_due": {"$exists": True}}),
    ],
    # WebhookPositionDocument
    "webhook_positions": [
        IndexModel([("_id.w", UP), ("digest", UP)]),
        IndexModel(
            [("_id.w", UP), ("waiting_since", UP)], partialFilterExpression={"waiting_since": {"$exists": True}}
        ),
        IndexModel([("at", UP)], expireAfterSeconds=WEBHOOK_POSITIONS_KEPT_S),
    ],
    # WebhookDeliveryDocument
    "webhook_deliveries": [
        IndexModel([("webhook", UP), ("_id", DOWN)]),
        IndexModel([("webhook", UP), ("outcome", UP), ("_id", DOWN)]),
        IndexModel([("org", UP), ("_id", UP)]),
        IndexModel([("at", UP)], expireAfterSeconds=WEBHOOK_DELIVERIES_KEPT_S),
    ],
    "webhook_searches": [],  # WebhookSearchDocument
}
