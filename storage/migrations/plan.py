"""The differences between a database and this release: collections, indexes and steps."""

import asyncio
from dataclasses import dataclass

from storage.indexes import INDEXES
from storage.migrations.data_version import DataVersionDocument, read_data_version
from storage.migrations.index_changes import IndexChanges, index_changes
from storage.migrations.steps import DATA_VERSION, STEPS, MigrationStep
from storage.mongo import Mongo


class DataMismatch(Exception):
    """The data do not fit this release. The message is one sentence that says what to do."""


@dataclass(frozen=True, slots=True)
class MigrationPlan:
    """The work of `noroshi migrate`, in the order of the fields.

    The plan is computed from the present state of the database, so a run continues where an interrupted run stopped.
    """

    collections: list[str]
    indexes: list[IndexChanges]
    steps: list[MigrationStep]

    def __bool__(self) -> bool:
        return bool(self.collections or self.indexes or self.steps)

    @property
    def advice(self) -> str:
        """A sentence that says whether processes of the previous release may run during the migration."""
        if any(step.stops_older_code for step in self.steps):
            return "Stop all processes of the previous release first."
        return "Processes of the previous release may keep running meanwhile."

    def __str__(self) -> str:
        missing = sum(len(changes.missing) for changes in self.indexes)
        old = sum(len(changes.blocking) + len(changes.obsolete) for changes in self.indexes)
        counts = {"missing indexes": missing, "old indexes": old, "data steps": len(self.steps)}
        counts = {"missing collections": len(self.collections)} | counts
        return ", ".join(f"{name}: {number}" for name, number in counts.items() if number)


async def read_plan(mongo: Mongo) -> MigrationPlan:
    """Returns the plan. It is empty for data of a newer, compatible release. Raises: DataMismatch."""
    recorded = await read_data_version(mongo)
    version = _understood_version(mongo, recorded)
    if version > DATA_VERSION:
        return MigrationPlan([], [], [])
    existing = set(await mongo.database.list_collection_names())
    collections = [name for name in INDEXES if name not in existing]
    return MigrationPlan(collections, await index_changes(mongo), [step for step in STEPS if step.version > version])


async def has_documents(mongo: Mongo, collections: list[str]) -> bool:
    """Returns whether one of the collections has a document."""
    found = await asyncio.gather(*(mongo.find(name, {}, {"_id": 1}, limit=1) for name in collections))
    return any(found)


def _understood_version(mongo: Mongo, recorded: DataVersionDocument | None) -> int:
    """Returns the version of the data. Raises: DataMismatch if this release does not understand it."""
    if recorded is None:
        return 0
    if recorded["compatible_version"] > DATA_VERSION:
        raise DataMismatch(
            f"The database {mongo.database.name} has data of version {recorded['version']}, and this release "
            f"understands version {DATA_VERSION}: start a newer release of Noroshi."
        )
    return recorded["version"]
