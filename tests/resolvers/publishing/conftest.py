"""A new organization for each test, in a database for each module. Creating a database takes longer than a test."""

import secrets
from collections.abc import Iterable

import pytest

from jobs.providers.egress import Egress
from jobs.providers.social.registry import all_networks
from jobs.publishing.publisher import PostPublisher
from storage.identity.roles import Role
from storage.publishing.sandbox import SandboxStore
from storage.stores import Stores
from tests.resolvers.conftest import create_chat
from tests.resolvers.people import ChatScenario, Person, SignIn


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


@pytest.fixture
async def chat(sign_in: SignIn) -> ChatScenario:
    """A chat in this test's organization."""
    return await create_chat(sign_in)


@pytest.fixture
async def operator(sign_in: SignIn) -> Person:
    return await sign_in("boss", roles=[Role.OPERATOR])


@pytest.fixture
def publisher(chat: ChatScenario) -> PostPublisher:
    """A publisher of this test's stores, to the built-in networks."""
    stores = chat.ann.stores
    return PostPublisher(stores, all_networks(Egress(()), SandboxStore(stores.mongo)))
