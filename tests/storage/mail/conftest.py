"""Mail fixtures: stores with address keys, and the mail of a new organization."""

from collections.abc import AsyncIterator
from typing import Any

import pytest

from storage.ids import new_id
from storage.mongo import Driver
from storage.stores import Stores, open_stores
from tests.keys import ADDRESS_KEYS
from tests.storage.mail.scenario import MailScenario


@pytest.fixture(scope="module")
async def mail_stores(
    mongodb_uri: str, redis_url: str, shared_database: str, mongo_driver: Driver
) -> AsyncIterator[Stores]:
    options: dict[str, Any] = {"address_keys": ADDRESS_KEYS, "is_prepared": True}
    async with open_stores(mongodb_uri, redis_url, shared_database, mongo_driver, **options) as stores:
        yield stores


@pytest.fixture
def mail(mail_stores: Stores) -> MailScenario:
    """The mail of a new organization with an empty book."""
    return MailScenario(mail_stores, new_id())
