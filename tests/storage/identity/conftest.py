"""A new organization for each test, because the tests of a module share a database."""

import pytest

from storage.identity.audit import Actor
from storage.identity.roles import Role
from storage.ids import new_id
from storage.stores import Stores


@pytest.fixture
def org() -> str:
    return new_id()


@pytest.fixture
async def admin(shared_stores: Stores, org: str) -> Actor:
    """The administrator `ada` of the organization, whose members `ann` and `bob` exist too."""
    await shared_stores.users.sign_in(org, "ada", [Role.ADMIN], "Ada", None)
    for name in ("ann", "bob"):
        await shared_stores.users.sign_in(org, name, [Role.MEMBER], name.title(), None)
    return Actor(org, "ada", "192.0.2.1", "Firefox")
