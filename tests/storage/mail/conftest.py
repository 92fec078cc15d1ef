"""A book of a test's own organization, and folders for it."""

from collections.abc import AsyncIterator

import pytest

from storage.ids import new_id
from storage.mongo import Driver
from storage.stores import Stores, open_stores
from tests.keys import ADDRESS_KEYS
from tests.storage.mail.organization_mail import OrganizationMail


@pytest.fixture(scope="module")
async def mail_stores(
    mongodb_uri: str, redis_url: str, shared_database: str, mongo_driver: Driver
) -> AsyncIterator[Stores]:
    async with open_stores(mongodb_uri, redis_url, shared_database, mongo_driver, address_keys=ADDRESS_KEYS) as stores:
        yield stores


@pytest.fixture
def mail(mail_stores: Stores) -> OrganizationMail:
    """An organization in whose book nothing stands."""
    return OrganizationMail(mail_stores, new_id())
