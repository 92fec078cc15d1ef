"""A newsroom for each test, on the module's database."""

import pytest

from storage.stores import Stores
from tests.storage.publishing.newsroom import Newsroom, found_newsroom


@pytest.fixture
async def newsroom(shared_stores: Stores) -> Newsroom:
    return await found_newsroom(shared_stores)
