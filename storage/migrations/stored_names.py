"""The step that gives stored fields the names that the records have (ADR 85).

Each rename selects documents by the old name, so an interrupted run is continued by the next one. The step runs while
no process serves: neither release reads the names of the other one.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from pymongo.errors import OperationFailure

from storage.mongo import Document, Mongo

BATCH = 1000
INDEX_NOT_FOUND = 27
NAMESPACE_NOT_FOUND = 26


@dataclass(frozen=True, slots=True)
class FieldRename:
    """A change of all documents of a collection that have the field with the old name."""

    old: str
    update: Document | list[Document]


def renamed(old: str, new: str) -> FieldRename:
    """Returns the change that gives a field a new name."""
    return FieldRename(old, {"$rename": {old: new}})


_ENTRY_REFUSAL = {"$mergeObjects": ["$$entry", {"refusal": "$$entry.gone"}]}
_REFUSALS_OF_SOURCES = FieldRename(
    "by.gone",
    [
        {
            "$set": {
                "by": {
                    "$map": {
                        "input": "$by",
                        "as": "entry",
                        "in": {"$unsetField": {"field": "gone", "input": _ENTRY_REFUSAL}},
                    }
                }
            }
        }
    ],
)
_REFUSAL_OF_DOMAIN = FieldRename(
    "told.dead",
    [
        {
            "$set": {
                # A number of days after the code marks an unreachable domain of an early release. It never counted.
                "told.refusal": {
                    "$cond": [
                        {"$eq": [{"$arrayElemAt": ["$told.dead", 2]}, 0]},
                        {"$slice": ["$told.dead", 2]},
                        "$$REMOVE",
                    ]
                }
            }
        },
        {"$unset": "told.dead"},
    ],
)

RENAMES: dict[str, tuple[FieldRename, ...]] = {
    "mail_ledger": (renamed("folded_at", "aggregated_at"), renamed("failed", "connection_failed")),
    # The parts of a summary come before the summary, so that an interrupted run finds them under its old name.
    "mail_addresses": (renamed("told.saw", "told.verdict"), renamed("told", "summary")),
    "mail_domains": (
        _REFUSALS_OF_SOURCES,
        _REFUSAL_OF_DOMAIN,
        renamed("told.failed", "told.failed_days"),
        renamed("told.hand", "told.decision"),
        renamed("told", "summary"),
        renamed("hand", "decision"),
    ),
    "mail_audit": (renamed("does", "action"),),
    "call_jobs": (
        renamed("told_at", "emitted_at"),
        renamed("untold", "event_pending"),
        renamed("untold_tasks", "task_events_pending"),
    ),
    "call_tasks": (renamed("untold", "event_pending"), renamed("ask_at", "poll_at")),
    "publications": (renamed("step", "progress"), renamed("told", "author_notified")),
    "fan_outs": (
        renamed("walked", "processed"),
        renamed("moved_at", "advanced_at"),
        renamed("told_at", "emitted_at"),
    ),
    "feed_items": (renamed("told", "emitted"),),
}
"""The renames by collection, in the order in which they are carried out."""

OLD_INDEXES = {
    "mail_ledger": ("folded_at_1",),
    "mail_addresses": ("told",),
    "mail_domains": ("told",),
    "call_tasks": ("untold", "ask_at_1"),
}
"""Names of the indexes on the old fields."""


async def rename_stored_fields(mongo: Mongo) -> None:
    """Drops the indexes on the old fields, then renames the fields."""
    for collection, names in OLD_INDEXES.items():
        await drop_existing_indexes(mongo, collection, names)
    for collection, renames in RENAMES.items():
        await _rename_fields(mongo, collection, renames)


async def drop_existing_indexes(mongo: Mongo, collection: str, names: Sequence[str]) -> None:
    """Drops those of the indexes that exist."""
    for name in names:
        try:
            await mongo[collection].drop_index(name)
        except OperationFailure as error:
            if error.code not in (INDEX_NOT_FOUND, NAMESPACE_NOT_FOUND):
                raise


async def _rename_fields(mongo: Mongo, collection: str, renames: Sequence[FieldRename]) -> None:
    after_batch: Document = {}
    while ids := [each["_id"] for each in await mongo.find(collection, after_batch, {"_id": 1}, [("_id", 1)], BATCH)]:
        batch = {"_id": {"$gte": ids[0], "$lte": ids[-1]}}
        for rename in renames:
            await mongo[collection].update_many({**batch, rename.old: {"$exists": True}}, rename.update)
        after_batch = {"_id": {"$gt": ids[-1]}}
