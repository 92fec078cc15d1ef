"""Distinct values of a field, for few and for many matching documents."""

import pytest

from storage.mongo import distinct
from storage.mongo.distinct import distinct_values
from storage.stores import Stores

pytestmark = pytest.mark.anyio

DOCUMENTS = [{"_id": {"t": "a", "u": user}, "by": by} for user, by in (("ann", 1), ("bob", 1), ("cem", 2), ("dan", 3))]


@pytest.mark.parametrize("max_documents", [1000, 4, 1])
@pytest.mark.parametrize(("field", "expected"), [("by", {1, 2}), ("_id.u", {"ann", "bob", "cem"})])
async def test_each_value_is_returned_once(
    stores: Stores, monkeypatch: pytest.MonkeyPatch, max_documents: int, field: str, expected: set[object]
) -> None:
    monkeypatch.setattr(distinct, "MAX_DOCUMENTS", max_documents)
    await stores.mongo["things"].insert_many([dict(document) for document in DOCUMENTS])
    assert await distinct_values(stores.mongo, "things", field, {"by": {"$lt": 3}}) == expected
    assert await distinct_values(stores.mongo, "things", field, {"by": 4}) == set()
