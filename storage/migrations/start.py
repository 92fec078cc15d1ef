"""Prepares a database when a process starts: makes the changes that take no time.

If the database needs other changes, the process does not start.
"""

import asyncio
from collections.abc import Iterable

from pymongo.errors import CollectionInvalid, OperationFailure

from storage.indexes import INDEXES
from storage.migrations.data_version import record_data_version
from storage.migrations.plan import DataMismatch, MigrationPlan, has_documents, read_plan
from storage.migrations.steps import DATA_VERSION, STEPS
from storage.mongo import Mongo

NAMESPACE_EXISTS = 48


async def prepare_database(mongo: Mongo) -> None:
    """Creates missing collections, and indexes of collections without documents: all of them in an empty database.

    Raises: DataMismatch if the data need `noroshi migrate`, or belong to a newer release.
    """
    plan = await read_plan(mongo)
    if plan:
        await _prepare(mongo, plan)


async def create_collections(mongo: Mongo, names: Iterable[str]) -> None:
    """Creates the collections. Another process may create them at the same time."""
    await asyncio.gather(*(_create_collection(mongo, name) for name in names))


async def _prepare(mongo: Mongo, plan: MigrationPlan) -> None:
    # Collections without indexes are not checked. Those of keys and locks have documents before the database is
    # prepared; the others have documents only if a collection with indexes has some.
    indexed = [name for name, models in INDEXES.items() if models]
    to_check = indexed if plan.steps else [changes.collection for changes in plan.indexes]
    has_old_indexes = any(each.blocking or each.obsolete for each in plan.indexes)
    if has_old_indexes or await has_documents(mongo, to_check):
        # Since the plan was read, another process may have created the indexes, and then documents.
        plan = await read_plan(mongo)
        if plan.steps or plan.indexes:
            raise DataMismatch(
                f"The database {mongo.database.name} does not fit this release ({plan}): run `noroshi migrate`. "
                + plan.advice
            )
    await create_collections(mongo, plan.collections)
    await asyncio.gather(*(mongo[each.collection].create_indexes(each.missing) for each in plan.indexes))
    if plan.steps:
        await record_data_version(mongo, DATA_VERSION, max(step.compatible_version for step in STEPS))


async def _create_collection(mongo: Mongo, name: str) -> None:
    try:
        await mongo.database.create_collection(name)
    except CollectionInvalid:
        return  # Another process created the collection.
    except OperationFailure as error:
        if error.code != NAMESPACE_EXISTS:
            raise
