"""Which values a field has among some documents: the same for few and for many."""

import pytest

from storage.mongo import distinct
from storage.mongo.distinct import values_among
from storage.stores import Stores

pytestmark = pytest.mark.anyio

ROWS = [{"_id": {"t": "a", "u": user}, "by": by} for user, by in (("ann", 1), ("bob", 1), ("cem", 2), ("dan", 3))]


@pytest.mark.parametrize("few", [1000, 4, 1])
@pytest.mark.parametrize(("field", "found"), [("by", {1, 2}), ("_id.u", {"ann", "bob", "cem"})])
async def test_each_value_is_found_once(
    stores: Stores, monkeypatch: pytest.MonkeyPatch, few: int, field: str, found: set[object]
) -> None:
    monkeypatch.setattr(distinct, "FEW", few)
    await stores.mongo["rows"].insert_many([dict(row) for row in ROWS])
    assert await values_among(stores.mongo, "rows", field, {"by": {"$lt": 3}}) == found
    assert await values_among(stores.mongo, "rows", field, {"by": 4}) == set()
