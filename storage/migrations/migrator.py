"""Brings a database to this release.

Every part is idempotent, and each run reads its plan from the database. So a run that was interrupted is continued by
the next run.
"""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass

from pymongo.errors import OperationFailure

from storage.locks import Locks
from storage.migrations.data_version import record_data_version
from storage.migrations.index_changes import IndexChanges
from storage.migrations.plan import DataMismatch, MigrationPlan, read_plan
from storage.migrations.start import create_collections, prepare_database
from storage.mongo import Document, Mongo
from storage.mongo.time_limits import MAX_TIME_MS
from storage.mongo.transactions import awaited

LOCK = "migration"
LOCK_POLL_S = 1.0
PROGRESS_POLL_S = 1.0


@dataclass(frozen=True, slots=True)
class MigrationProgress:
    """The part of the plan that is carried out at the moment."""

    title: str
    done: int = 0
    total: int = 0
    """The number of documents or keys to process; 0 while it is unknown."""


ShowProgress = Callable[[MigrationProgress], None]


async def migrate(mongo: Mongo, locks: Locks, holder: str, show: ShowProgress) -> None:
    """Carries out the plan, after waiting until no other migration runs. An empty database is prepared at once.

    `mongo` needs a client whose commands may take hours, `locks` one that notices within seconds that a lease is lost.
    Raises: DataMismatch for data of a newer release; LockLost, PyMongoError. The next run then continues.
    """
    with suppress(DataMismatch):
        await prepare_database(mongo)
        return
    async with _held_migration_lock(locks, holder, show):
        plan = await read_plan(mongo)
        await create_collections(mongo, plan.collections)
        for changes in plan.indexes:
            await _change_indexes(mongo, changes, show)
        for step in plan.steps:
            show(MigrationProgress(f"step {step.version}: {step.title}"))
            await step.work(mongo)
            await record_data_version(mongo, step.version, step.compatible_version)


async def describe(mongo: Mongo, plan: MigrationPlan) -> list[str]:
    """Returns a line for each thing that the plan does, with the sizes of the collections."""
    lines = [f"create the collection {name}" for name in plan.collections]
    for changes in plan.indexes:
        count = await mongo[changes.collection].estimated_document_count()
        lines += [f"drop the index {name} of {changes.collection}" for name in changes.blocking]
        if changes.missing:
            lines.append(f"{_build_title(changes)}, which has about {count:,} documents")
        lines += [f"drop the index {name} of {changes.collection}" for name in changes.obsolete]
    return [*lines, *(f"step {step.version}: {step.title}" for step in plan.steps)]


@asynccontextmanager
async def _held_migration_lock(locks: Locks, holder: str, show: ShowProgress) -> AsyncIterator[None]:
    """Holds the lock of migrations. After a crash of its holder, the lock is free when the lease ends."""
    while True:
        async with locks.held(LOCK, holder) as lock:
            if lock:
                yield
                return
        show(MigrationProgress("wait for another migration, or for its lease to end"))
        await asyncio.sleep(LOCK_POLL_S)


async def _change_indexes(mongo: Mongo, changes: IndexChanges, show: ShowProgress) -> None:
    collection = mongo[changes.collection]
    for name in changes.blocking:
        await collection.drop_index(name)
    if changes.missing:
        show(MigrationProgress(_build_title(changes)))
        watch = asyncio.create_task(_watch_build(mongo, changes, show))
        try:
            # If this process is killed, MongoDB goes on building. The next run waits for the same build.
            await collection.create_indexes(changes.missing)
        finally:
            watch.cancel()
            await asyncio.wait({watch})
    for name in changes.obsolete:
        await collection.drop_index(name)


def _build_title(changes: IndexChanges) -> str:
    names = ", ".join(model.document["name"] for model in changes.missing)
    return f"build the indexes {names} of {changes.collection}"


async def _watch_build(mongo: Mongo, changes: IndexChanges, show: ShowProgress) -> None:
    """Shows the progress of a build. Shows nothing without the right `inprog`."""
    is_build: Document = {"command.createIndexes": changes.collection, "progress.total": {"$gt": 0}}
    in_database: Document = {"command.$db": mongo.database.name}
    pipeline: list[Document] = [{"$currentOp": {"allUsers": True}}, {"$match": is_build | in_database}]
    with suppress(OperationFailure):
        while True:
            await asyncio.sleep(PROGRESS_POLL_S)
            cursor = await awaited(mongo.client.admin.aggregate(pipeline, maxTimeMS=MAX_TIME_MS))
            for operation in await cursor.to_list(None):
                show(
                    MigrationProgress(
                        _build_title(changes), operation["progress"]["done"], operation["progress"]["total"]
                    )
                )
