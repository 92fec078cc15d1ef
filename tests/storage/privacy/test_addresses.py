"""Erasing a person erases their mail addresses in every spelling, earlier addresses included, and nobody else's."""

from datetime import timedelta
from typing import Any

import pytest

from storage.errors import Conflict, Forbidden
from storage.identity.accounts.invitations import InvitationState, NewInvitation
from storage.identity.accounts.local_accounts import MailLanguage
from storage.identity.audit import Actor, command_line_actor
from storage.identity.roles import Role
from storage.ids import UserKey
from storage.mail.decisions.policies import DEFAULT_POLICY
from storage.privacy.addresses import erase_addresses, forget_readable_addresses
from storage.stores import Stores
from tests.keys import ADDRESS_KEYS
from tests.storage.mail.events import hard
from tests.storage.mail.scenario import MailScenario

pytestmark = pytest.mark.anyio


async def invite(stores: Stores, org: str, address: str) -> tuple[str, str]:
    """Creates an invitation whose audit entry has the address, as in earlier releases. Returns the id and the token."""
    new = NewInvitation(Role.MEMBER, None, address, 1, timedelta(days=1), MailLanguage.EN)
    created = await stores.invitations.create(command_line_actor(org), new, None)
    entry = {"org": org, "target": created.invitation.id}
    await stores.mongo["audit"].update_one(entry, {"$set": {"details.address": address}})
    return created.invitation.id, created.token or ""


async def accept(stores: Stores, org: str, email: str, token: str) -> None:
    """Accepts an invitation as Bob with this mail address."""
    bob = await stores.users.sign_in(org, "bob", [Role.MEMBER], None, None, email, is_email_verified=True)
    await stores.invitations.accept(Actor(org, "bob"), token, bob)


async def addresses(stores: Stores, org: str) -> set[str]:
    """Returns the addresses in invitations, mails and audit entries of the organization."""
    documents: list[Any] = []
    for collection in ("invitations", "account_mails", "audit"):
        documents += await stores.mongo[collection].find({"org": org}).to_list(None)
    found = {each.get("address") or each.get("details", {}).get("address") for each in documents}
    return found - {None}


@pytest.mark.parametrize("written", ["Bob@Example.org", "bob@EXAMPLE.org", "bob@bücher.example"])
async def test_invitation_for_another_spelling_loses_its_address(shared_stores: Stores, written: str) -> None:
    org = f"spelling-{written}"
    await shared_stores.users.sign_in(org, "bob", [Role.MEMBER], None, None, written)
    await invite(shared_stores, org, "bob@xn--bcher-kva.example" if "ü" in written else "bob@example.org")
    await invite(shared_stores, org, "eve@example.org")
    await invite(shared_stores, f"{org}-2", "bob@example.org")
    await erase_addresses(shared_stores.mongo, UserKey(org, "bob"))
    assert await addresses(shared_stores, org) == {"eve@example.org"}
    assert await addresses(shared_stores, f"{org}-2") == {"bob@example.org"}


async def test_address_of_an_accepted_invitation_is_erased(shared_stores: Stores) -> None:
    org = "earlier-address"
    _, token = await invite(shared_stores, org, "early@example.org")
    await accept(shared_stores, org, "early@example.org", token)
    await invite(shared_stores, org, "early@example.org")
    await shared_stores.users.sign_in(org, "bob", [Role.MEMBER], None, None, "late@example.org")
    await erase_addresses(shared_stores.mongo, UserKey(org, "bob"))
    assert await addresses(shared_stores, org) == set()


async def test_audit_entry_of_deleted_invitation_loses_address(shared_stores: Stores) -> None:
    org = "deleted-invitation"
    id_, token = await invite(shared_stores, org, "early@example.org")
    await accept(shared_stores, org, "early@example.org", token)
    await shared_stores.users.sign_in(org, "bob", [Role.MEMBER], None, None, "late@example.org")
    await shared_stores.mongo["invitations"].delete_one({"_id": id_})
    await shared_stores.mongo["account_mails"].delete_many({"org": org})
    await erase_addresses(shared_stores.mongo, UserKey(org, "bob"))
    assert await addresses(shared_stores, org) == set()


async def test_nobody_accepts_an_erased_invitation(shared_stores: Stores) -> None:
    org = "erased-invitation"
    id_, token = await invite(shared_stores, org, "bob@example.org")
    await shared_stores.users.sign_in(org, "bob", [Role.MEMBER], None, None, "bob@example.org")
    await erase_addresses(shared_stores.mongo, UserKey(org, "bob"))
    nameless = await shared_stores.users.sign_in(org, "x", [Role.MEMBER], None, None)
    with pytest.raises(Conflict):
        await shared_stores.invitations.accept(Actor(org, "x"), token, nameless)
    assert (await shared_stores.invitations.get(org, id_)).state is InvitationState.REVOKED
    stored = await shared_stores.mongo["invitations"].find_one({"_id": id_})
    assert stored is not None
    assert ("address" in stored, "revoked_at" in stored) == (False, True)


async def test_emptied_address_of_an_earlier_release_fits_nobody(shared_stores: Stores) -> None:
    org = "emptied-address"
    id_, token = await invite(shared_stores, org, "bob@example.org")
    await shared_stores.mongo["invitations"].update_one({"_id": id_}, {"$set": {"address": ""}})
    nameless = await shared_stores.users.sign_in(org, "x", [Role.MEMBER], None, None)
    with pytest.raises(Conflict):
        await shared_stores.invitations.accept(Actor(org, "x"), token, nameless)


async def test_user_without_address_fits_no_invitation_for_one(shared_stores: Stores) -> None:
    """An empty address must not count as the address of a person who has none."""
    org = "no-address"
    _, token = await invite(shared_stores, org, "bob@example.org")
    nameless = await shared_stores.users.sign_in(org, "x", [Role.MEMBER], None, None, "")
    assert nameless.email is None
    with pytest.raises(Forbidden):
        await shared_stores.invitations.accept(Actor(org, "x"), token, nameless)


async def test_accepted_invitation_stays_used_up_after_erasure(shared_stores: Stores) -> None:
    org = "used-invitation"
    id_, token = await invite(shared_stores, org, "bob@example.org")
    await accept(shared_stores, org, "bob@example.org", token)
    await erase_addresses(shared_stores.mongo, UserKey(org, "bob"))
    assert (await shared_stores.invitations.get(org, id_)).state is InvitationState.USED_UP


async def test_invitation_of_an_erased_address_is_revoked(shared_stores: Stores) -> None:
    """The address is absent, not an empty text, which a person without an address would have, too."""
    org, stores = "revoked", shared_stores
    await stores.users.sign_in(org, "bob", [Role.MEMBER], None, None, "bob@example.org")
    accepted, token = await invite(stores, org, "bob@example.org")
    await accept(stores, org, "bob@example.org", token)
    opened, _ = await invite(stores, org, "bob@example.org")
    await erase_addresses(stores.mongo, UserKey(org, "bob"))
    assert await stores.mongo["invitations"].count_documents({"org": org, "address": {"$exists": True}}) == 0
    states = [(await stores.invitations.get(org, each)).state for each in (accepted, opened)]
    assert states == [InvitationState.USED_UP, InvitationState.REVOKED]


async def test_readable_address_of_an_erased_person_is_removed(stores: Stores) -> None:
    org, mail = "readable-address", MailScenario(stores, "readable-address")
    await stores.users.sign_in(org, "bob", [Role.MEMBER], None, None, "Bob@Example.org")
    await stores.address_book.policies.set(org, DEFAULT_POLICY, 0, "op", "why", None, keep_addresses=True)
    await mail.add_events(hard("bob@example.org"), hard("eve@example.org"))
    await forget_readable_addresses(stores.mongo, ADDRESS_KEYS, UserKey(org, "bob"))
    kept = await stores.mongo.find("mail_addresses", {"org": org, "readable": {"$exists": True}})
    assert [ADDRESS_KEYS.open(org, each["readable"]) for each in kept] == ["eve@example.org"]
    assert (await mail.standing("bob@example.org")).blocked
