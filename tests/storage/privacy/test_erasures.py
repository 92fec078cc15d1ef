"""Lists of erasures."""

from datetime import UTC, datetime, timedelta

import pytest

from storage.privacy.documents import ERASURES
from storage.stores import Stores

pytestmark = pytest.mark.anyio

AT = datetime(2026, 11, 1, tzinfo=UTC)


async def test_pages_show_simultaneous_erasures_once(stores: Stores) -> None:
    at_by_user = {"ann": AT, "bob": AT, "cyd": AT, "dan": AT - timedelta(days=1), "eve": AT + timedelta(days=1)}
    rows = [
        {"_id": {"org": org, "id": user_id}, "requested_by": "ada", "at": at, "steps_done": 0, "changed": 0}
        for org in ("acme", "other")
        for user_id, at in at_by_user.items()
    ]
    await stores.mongo[ERASURES].insert_many(rows)
    listed: list[str] = []
    while page := await stores.erasures.list_erasures("acme", listed[-1] if listed else None, 2):
        listed += [erasure.user_id for erasure in page]
    assert listed == ["eve", "cyd", "bob", "ann", "dan"]
