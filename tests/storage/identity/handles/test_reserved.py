"""Reserved handles: a new user or service account gets another handle, in the same organization only."""

import pytest

from storage.identity.handles.reserved import ReservedHandles
from storage.identity.handles.suggestions import free_handle
from storage.mongo import Session
from storage.stores import Stores

pytestmark = pytest.mark.anyio


async def test_reserved_handle_is_given_to_nobody(shared_stores: Stores) -> None:
    async def reserve(session: Session) -> None:
        for handle in ("newt", "newt-2"):
            await ReservedHandles(shared_stores.mongo).reserve("pond", handle, session)

    await shared_stores.mongo.transact(reserve)
    users = shared_stores.users
    assert (await users.sign_in("pond", "a", (), None, "newt")).handle == "newt-3"
    assert (await users.sign_in("lake", "a", (), None, "newt")).handle == "newt"
    free = await shared_stores.mongo.transact(lambda each: free_handle(shared_stores.mongo, "pond", "newt", each))
    assert free == "newt-4"
    stored = [repr(document) async for document in shared_stores.mongo["reserved_handles"].find()]
    assert len(stored) == 2
    assert "newt" not in "".join(stored)
