"""The registry of personal data: it has an entry for each collection and Redis key, and indexes find the documents."""

from inspect import isfunction
from typing import Any

import pytest

from storage.identity.privacy_rules import ErasureMethod, read_batches
from storage.ids import UserKey
from storage.indexes import INDEXES
from storage.privacy.registry import PERSONAL_DATA, REDIS_DATA
from storage.redis.keys import RedisKeys
from storage.stores import Stores
from tests.retention import collection_retentions

pytestmark = pytest.mark.anyio

ANN = UserKey("acme", "ann")
SELECTIONS = [
    (entry.collection, selection)
    for entry in PERSONAL_DATA.values()
    for selection in (
        *(rule.documents for rule in entry.rules),
        *(export.documents for export in entry.exports),
    )
]


def test_every_collection_has_an_entry() -> None:
    unregistered = INDEXES.keys() ^ PERSONAL_DATA.keys()
    assert not unregistered, (
        f"Describe the personal data of {sorted(unregistered)} in storage/<area>/personal_data.py: how they are found, "
        "exported and erased."
    )


def test_every_collection_has_a_documented_lifetime() -> None:
    assert PERSONAL_DATA.keys() <= {name for row in collection_retentions() for name in row.names}


def test_every_redis_key_has_an_entry() -> None:
    methods = {name for name, value in vars(RedisKeys).items() if isfunction(value) and not name.startswith("_")}
    assert methods == REDIS_DATA.keys(), "Add what the key holds about people to storage/privacy/registry.py."


def test_emptied_documents_name_their_new_values() -> None:
    rules = [rule for entry in PERSONAL_DATA.values() for rule in entry.rules]
    assert all((rule.erasure is ErasureMethod.EMPTY) == bool(rule.new_values) for rule in rules)


async def test_indexes_find_the_documents_of_a_person(shared_stores: Stores) -> None:
    for collection, selection in SELECTIONS:
        find = {"find": collection, "filter": selection.find(ANN), "sort": {selection.order: 1}}
        explained = await shared_stores.mongo.database.command({"explain": find, "verbosity": "queryPlanner"})
        assert "COLLSCAN" not in stages(explained["queryPlanner"]["winningPlan"]), collection


def stages(plan: dict[str, Any]) -> list[str]:
    """Returns the names of a plan's stages."""
    inner = plan.get("inputStages") or [plan[key] for key in ("inputStage", "queryPlan") if key in plan]
    return [plan.get("stage", ""), *(stage for each in inner for stage in stages(each))]


async def test_batches_leave_out_other_organizations(shared_stores: Stores) -> None:
    mongo = shared_stores.mongo
    await mongo["topics"].insert_many([{"_id": "t1", "org": "batch-a"}, {"_id": "t2", "org": "batch-b"}])
    marks: list[Any] = [{"_id": {"t": topic, "u": "batcher"}, "ts": 1} for topic in ("t1", "t2", "t3")]
    await mongo["read_marks"].insert_many(marks)
    (rule,) = PERSONAL_DATA["read_marks"].rules
    person = UserKey("batch-a", "batcher")
    found = [batch async for batch in read_batches(mongo, "read_marks", rule.documents, person, size=1)]
    assert [document["_id"]["t"] for batch in found for document in batch] == ["t1"]
