"""Indexes of the bounce address book (storage/mail/documents.py)."""

from pymongo import ASCENDING as UP
from pymongo import DESCENDING as DOWN
from pymongo import IndexModel

from storage.indexes.lifetimes import LEDGER_KEPT_S, REPORTS_KEPT_S

MAIL_INDEXES: dict[str, list[IndexModel]] = {
    # LedgerDocument
    "mail_ledger": [
        IndexModel([("waiting", UP), ("recorded_at", UP)], partialFilterExpression={"waiting": {"$exists": True}}),
        IndexModel([("aggregated_at", UP)], expireAfterSeconds=LEDGER_KEPT_S),
    ],
    # AddressDocument. The indexes named `summary` cover lookups, which therefore read no documents.
    "mail_addresses": [
        IndexModel([("_id", UP), ("summary", UP)], name="summary"),
        IndexModel([("org", UP)]),
        IndexModel([("org", UP), ("_id", UP)], partialFilterExpression={"summary.faults": {"$exists": True}}),
        IndexModel(
            [("org", UP), ("_id", UP)], name="readable", partialFilterExpression={"readable": {"$exists": True}}
        ),
        IndexModel([("moved_at", UP)], expireAfterSeconds=15 * 86_400, sparse=True),
    ],
    # DomainDocument
    "mail_domains": [
        IndexModel([("_id", UP), ("summary", UP)], name="summary"),
        IndexModel([("org", UP), ("recent.day", UP)]),
        IndexModel([("recent.day", UP)]),
    ],
    # DayDocument
    "mail_days": [IndexModel([("_id.org", UP), ("_id.day", UP)]), IndexModel([("_id.day", UP), ("_id.org", UP)])],
    # SourceDocument
    "mail_sources": [IndexModel([("_id.org", UP)])],
    # MailAuditDocument
    "mail_audit": [
        IndexModel([("org", UP), ("subject", UP), ("at", DOWN), ("_id", DOWN)]),
        IndexModel([("org", UP), ("by", UP), ("_id", UP)]),
        IndexModel([("org", UP), ("at", DOWN), ("_id", DOWN)]),
        IndexModel(
            [("org", UP), ("version", DOWN)], unique=True, partialFilterExpression={"version": {"$exists": True}}
        ),
        IndexModel([("forget_until", UP)], sparse=True),
    ],
    # ReportDocument
    "mail_reports": [
        IndexModel([("_id.day", DOWN), ("_id.org", UP), ("_id.kind", UP)]),
        IndexModel([("_id.org", UP), ("_id.day", DOWN), ("_id.kind", UP)]),
        IndexModel([("claimed_at", UP)], expireAfterSeconds=REPORTS_KEPT_S),
    ],
    # MailTailDocument (storage/heartbeats.py)
    "mail_tails": [IndexModel([("at", UP)], expireAfterSeconds=3600)],
    # DifferenceDocument
    "mail_differences": [IndexModel([("at", UP)], expireAfterSeconds=30 * 86_400)],
}
