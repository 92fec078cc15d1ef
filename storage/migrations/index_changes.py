"""Compares the indexes of a database with the declared indexes.

Indexes are compared by their definitions. An index that has the name of a declared index but another definition is an
old version of that index. MongoDB can't rename an index, so the new version gets the name with a number appended.
"""

import asyncio
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from pymongo import IndexModel
from pymongo.errors import OperationFailure

from storage.indexes import INDEXES
from storage.mongo import Document, Mongo

NAMESPACE_NOT_FOUND = 26
OPTIONS = ("unique", "sparse", "partialFilterExpression", "expireAfterSeconds")


@dataclass(frozen=True, slots=True)
class IndexChanges:
    """The differences of one collection."""

    collection: str
    missing: list[IndexModel]
    """Indexes to create, under names that are free."""

    blocking: list[str]
    """Old versions to drop first. Only their time to live differs, and MongoDB does not hold both versions."""

    obsolete: list[str]
    """Old versions to drop after the new indexes are built, so that queries always have an index."""

    def __bool__(self) -> bool:
        return bool(self.missing or self.blocking or self.obsolete)


async def index_changes(mongo: Mongo, declared: Mapping[str, list[IndexModel]] = INDEXES) -> list[IndexChanges]:
    """Returns the collections whose indexes differ from the declared indexes. An unfinished index counts as missing."""
    names = [name for name, models in declared.items() if models]
    existing = await asyncio.gather(*(finished_indexes(mongo, name) for name in names))
    changes = [_compare(name, declared[name], indexes) for name, indexes in zip(names, existing, strict=True)]
    return [each for each in changes if each]


async def finished_indexes(mongo: Mongo, collection: str) -> list[Document]:
    """Returns the definitions of the indexes whose build has ended. Empty if the collection does not exist."""
    try:
        # With this option, the entry of an unfinished index has the field `buildUUID`.
        answer = await mongo.database.command("listIndexes", collection, includeBuildUUIDs=True)
    except OperationFailure as error:
        if error.code == NAMESPACE_NOT_FOUND:
            return []
        raise
    return [each for each in answer["cursor"]["firstBatch"] if "buildUUID" not in each]


def _compare(name: str, models: list[IndexModel], existing: list[Document]) -> IndexChanges:
    current = [_definition(model.document) for model in models]
    missing = [model for model in models if _definition(model.document) not in map(_definition, existing)]
    old = [each for each in existing if _definition(each) not in current and _is_version_of(each["name"], models)]
    missing_without_ttl = [_definition(model.document)[:-1] for model in missing]
    blocking = [each["name"] for each in old if _definition(each)[:-1] in missing_without_ttl]
    obsolete = [each["name"] for each in old if each["name"] not in blocking]
    used_names = {each["name"] for each in existing} - set(blocking)
    return IndexChanges(name, [_with_free_name(model, used_names) for model in missing], blocking, obsolete)


def _definition(index: Mapping[str, Any]) -> tuple[Any, ...]:
    """Returns the parts that are compared. The last part is the time to live.

    MongoDB does not hold two indexes that differ only in this part.
    """
    return tuple(index["key"].items()), *(index.get(option) for option in OPTIONS)


def _is_version_of(name: str, models: Iterable[IndexModel]) -> bool:
    """Returns whether this is the name of a declared index, with or without a number appended."""
    return re.sub(r"_v\d+$", "", name) in {model.document["name"] for model in models}


def _with_free_name(model: IndexModel, used_names: set[str]) -> IndexModel:
    name: str = model.document["name"]
    names = (name, *(f"{name}_v{number}" for number in range(2, len(used_names) + 3)))
    free_name = next(each for each in names if each not in used_names)
    options = {key: value for key, value in model.document.items() if key not in ("key", "name")}
    return IndexModel(list(model.document["key"].items()), name=free_name, **options)
