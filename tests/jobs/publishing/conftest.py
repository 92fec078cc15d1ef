"""A newsroom on an empty database, and a worker's desk in this process whose networks may reach loopback."""

from collections.abc import AsyncIterator
from ipaddress import ip_network

import pytest

from jobs.providers.egress import Egress
from jobs.publishing.desk import Desk
from storage.stores import Stores
from tests.jobs.publishing.desks import quick_networks
from tests.storage.publishing.newsroom import Newsroom, found_newsroom


@pytest.fixture
async def newsroom(stores: Stores) -> Newsroom:
    return await found_newsroom(stores)


@pytest.fixture
async def desk(stores: Stores) -> AsyncIterator[Desk]:
    egress = Egress((ip_network("127.0.0.0/8"),))
    desk = Desk(stores, quick_networks(stores, egress))
    yield desk
    await desk.close()
    await egress.aclose()
