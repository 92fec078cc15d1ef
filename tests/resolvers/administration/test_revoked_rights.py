"""A right that is revoked between the check of a resolver and the transaction of its mutation no longer counts.

The mutation is refused, and neither the data nor the audit log change. It succeeds when the right is given back.
"""

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

import pytest
from structlog.testing import capture_logs

from storage.identity.records import user_document_id
from storage.identity.roles import Role
from storage.mongo import Document, transactions
from tests.resolvers.administration.test_audited_mutations import (
    AUDITED,
    MUTATIONS,
    OF_OTHERS,
    STORED_BEFORE,
    answer_of,
    committed_state,
    execute,
    prepare,
)
from tests.resolvers.organization_scenario import OrganizationScenario, create_organization
from tests.resolvers.people import Person, SignIn

pytestmark = pytest.mark.anyio

REFUSALS = ({"FORBIDDEN"}, {"NOT_FOUND"}, {"UNAUTHENTICATED"})
OWN = {"acceptInvitation", "removePasskey"}
"""Mutations of people on their own account, which need no role."""

HEADS = {"streams", "topics"}
"""Collections with the positions of streams. A change that is refused may take a number there and nothing else."""

_is_mutation: ContextVar[bool] = ContextVar("_is_mutation", default=False)


@dataclass
class Access:
    """A person's documents that rights depend on: the user, and the memberships."""

    organization: OrganizationScenario
    person: Person

    @property
    def _queries(self) -> dict[str, Document]:
        organization_id = self.organization.organization_id
        return {
            "users": {"_id": user_document_id(organization_id, self.person.id)},
            "memberships": {"org": organization_id, "user": self.person.id},
        }

    async def read(self) -> dict[str, list[Any]]:
        mongo = self.organization.stores.mongo
        return {name: await mongo[name].find(query).to_list(None) for name, query in self._queries.items()}

    async def restore(self, documents: dict[str, list[Any]]) -> None:
        for name, stored in documents.items():
            for each in stored:
                await self.organization.stores.mongo[name].replace_one({"_id": each["_id"]}, each)

    async def deactivate(self) -> None:
        update = {"$set": {"deactivated_at": datetime.now(UTC)}}
        await self.organization.stores.mongo["users"].update_one(self._queries["users"], update)

    async def demote(self) -> None:
        """Leaves the person the role MEMBER in the organization and in its communities."""
        mongo, member = self.organization.stores.mongo, {"roles": [Role.MEMBER.value], "roles_granted": True}
        await mongo["users"].update_one(self._queries["users"], {"$set": member})
        await mongo["memberships"].update_many(self._queries["memberships"], {"$unset": {"role": ""}})


@asynccontextmanager
async def before_first_transaction(
    monkeypatch: pytest.MonkeyPatch, action: Callable[[], Awaitable[None]]
) -> AsyncIterator[list[bool]]:
    """Calls `action` just before the first transaction of the block begins. Yields a list that is then not empty."""
    transact, called = transactions.transact, list[bool]()

    async def transact_after_action(*args: Any) -> Any:
        if _is_mutation.get() and not called:
            called.append(True)
            await action()
        return await transact(*args)

    monkeypatch.setattr(transactions, "transact", transact_after_action)
    token = _is_mutation.set(True)
    try:
        yield called
    finally:
        _is_mutation.reset(token)
        monkeypatch.setattr(transactions, "transact", transact)


async def test_mutation_whose_right_is_revoked_changes_nothing(
    sign_in: SignIn, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The person loses access, then only the roles. With both given back, the mutation succeeds."""
    organization = await create_organization(sign_in, "acme")
    other = await sign_in("olga", organization.organization_id, list(Role))
    not_refused: dict[str, object] = {}
    for name in (*OF_OTHERS, *AUDITED):
        await prepare(organization, name)
        # Ann created the invitation, which is revoked with her access.
        person = other if name in OF_OTHERS or name == "acceptInvitation" else organization.superuser
        access = Access(organization, person)
        before, documents = await committed_state(organization), await access.read()
        for revoke in (access.deactivate, access.demote)[: 1 if name in OWN else 2]:
            with capture_logs():
                async with before_first_transaction(monkeypatch, revoke) as revoked:
                    answer = await answer_of(organization, person, MUTATIONS[name])
            await access.restore(documents)
            after = await committed_state(organization)
            codes = {error["extensions"]["code"] for error in answer["errors"]}
            changed = {each for each in after if after[each] != before.get(each)}
            changed -= STORED_BEFORE.get(name, set()) | HEADS
            if not revoked or codes not in REFUSALS or changed:
                not_refused[f"{name} after {revoke.__name__}"] = (codes, sorted(changed), bool(revoked))
                break
        else:
            await execute(organization, person, MUTATIONS[name])
    assert not_refused == {}, "\n".join(map(str, not_refused.items()))
