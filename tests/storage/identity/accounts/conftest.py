"""New invitations and accounts. The password of the accounts is hashed once for all tests."""

from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta

import pytest

from storage.identity.accounts.invitations import NewInvitation
from storage.identity.accounts.local_accounts import MailLanguage, NewLocalAccount
from storage.identity.accounts.passwords import PasswordHashes
from storage.identity.audit import Actor
from storage.identity.roles import Role
from storage.ids import new_id

PASSWORD = "beacon on the hill"
INVITATION = NewInvitation(Role.MEMBER, None, None, 1, timedelta(days=1), MailLanguage.EN)


def new_invitation(role: Role = Role.MEMBER, max_uses: int = 1, **fields: object) -> NewInvitation:
    """Returns a new invitation. Anyone with its link may accept it, unless `fields` has an address."""
    return replace(INVITATION, role=role, max_uses=max_uses, **fields)  # type: ignore[arg-type]


@pytest.fixture(scope="session")
async def password_hash() -> str:
    """The hash of PASSWORD."""
    return await PasswordHashes().hash_new(PASSWORD, "Zed", "zed@example.org")


@pytest.fixture
def new_account(org: str, password_hash: str) -> Callable[..., NewLocalAccount]:
    """A function that returns a new account of a name in the organization."""

    def create(name: str, address: str | None = None) -> NewLocalAccount:
        actor = Actor(org, new_id(), "192.0.2.7", "Firefox")
        return NewLocalAccount(
            actor, address or f"{name.lower()}@example.org", name, None, password_hash, MailLanguage.EN
        )

    return create
