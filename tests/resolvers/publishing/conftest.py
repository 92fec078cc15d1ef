"""A new organization for each test, in a database for each module. Creating a database takes longer than a test."""

import secrets
from collections.abc import AsyncIterator, Iterable, Iterator

import pytest

from storage.identity.roles import Role
from storage.mongo import Driver
from storage.stores import Stores, open_stores
from tests.databases import CREDENTIAL_KEYS, fresh_database
from tests.resolvers.people import Person, SignIn


@pytest.fixture(scope="module")
def shared_database(mongodb_uri: str, redis_url: str) -> Iterator[str]:
    with fresh_database(mongodb_uri, redis_url) as name:
        yield name


@pytest.fixture(scope="module")
async def shared_stores(
    mongodb_uri: str, redis_url: str, shared_database: str, mongo_driver: Driver
) -> AsyncIterator[Stores]:
    keys = CREDENTIAL_KEYS
    async with open_stores(mongodb_uri, redis_url, shared_database, mongo_driver, credential_keys=keys) as stores:
        yield stores


class SignInWithDefaultOrganization(SignIn):
    """A callable that signs people in. The default of its argument `organization` is this test's organization."""

    def __init__(self, stores: Stores) -> None:
        super().__init__(stores)
        self._organization = f"org-{secrets.token_hex(6)}"

    async def __call__(
        self,
        id_: str,
        organization: str = "",
        roles: Iterable[Role] = (Role.MEMBER,),
        name: str | None = None,
        handle: str | None = None,
    ) -> Person:
        return await super().__call__(id_, organization or self._organization, roles, name, handle)


@pytest.fixture
def sign_in(shared_stores: Stores) -> SignIn:
    return SignInWithDefaultOrganization(shared_stores)
