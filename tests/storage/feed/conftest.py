"""An organization for each test."""

import pytest

from storage.stores import Stores
from tests.storage.feed.hall import Hall


@pytest.fixture
async def hall(shared_stores: Stores) -> Hall:
    hall = Hall(shared_stores)
    await hall.enter("ann", "bob")
    return hall
