"""A publishing scenario for each test, on the module's database."""

import pytest

from storage.stores import Stores
from tests.storage.publishing.scenario import PublishingScenario, create_publishing_scenario


@pytest.fixture
async def scenario(shared_stores: Stores) -> PublishingScenario:
    return await create_publishing_scenario(shared_stores)
