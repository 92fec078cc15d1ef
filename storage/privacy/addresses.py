"""A person's mail addresses, and the erasure of what is stored under them without the person's id."""

from storage.identity.administration import USERS
from storage.identity.audit import AUDIT, AuditAction
from storage.identity.records import user_document_id
from storage.ids import UserKey
from storage.mail.addresses import AddressKeys, normalize
from storage.mongo import Document, Mongo


async def erase_addresses(mongo: Mongo, person: UserKey) -> None:
    """Deletes links and mails to the person's addresses, and removes the addresses from invitations.

    Invitations are changed last, because they show which addresses the person had before. So the erasure may be
    repeated after a crash.
    """
    addresses = await addresses_of(mongo, person)
    query = {"org": person.organization_id, "address": {"$in": addresses}}
    await mongo["account_tokens"].delete_many(query)
    await mongo["account_mails"].delete_many(query)
    await _erase_from_audit(mongo, person, addresses)
    await mongo["invitations"].update_many(query, _WITHOUT_ADDRESS)


async def forget_readable_addresses(mongo: Mongo, keys: AddressKeys, person: UserKey) -> None:
    """Removes the person's addresses from the bounce address book where they are readable. Their hashes stay."""
    if not keys.has_keys:
        return
    org = person.organization_id
    ids = [id_ for address in await addresses_of(mongo, person) for id_ in keys.ids(org, address)]
    query, remove = {"_id": {"$in": ids}, "readable": {"$exists": True}}, {"$unset": {"readable": ""}}
    await mongo.write_past_orphans(lambda: mongo["mail_addresses"].update_many(query, remove))


_IS_USED_UP = {"$gte": [{"$size": "$users"}, "$max_uses"]}
_WITHOUT_ADDRESS: list[Document] = [
    {"$set": {"revoked_at": {"$ifNull": ["$revoked_at", {"$cond": [_IS_USED_UP, "$$REMOVE", "$$NOW"]}]}}},
    {"$unset": "address"},
]
"""Removes the address of an invitation, and revokes the invitation: without its address, anyone could accept it."""


async def addresses_of(mongo: Mongo, person: UserKey) -> list[str]:
    """Returns the normalized addresses of the user, of the local account, and of invitations that were accepted."""
    key = {"_id": user_document_id(*person)}
    user = await mongo[USERS].find_one(key, {"email": 1}) or {}
    account = await mongo["local_accounts"].find_one(key, {"address": 1}) or {}
    accepted = {"org": person.organization_id, "users": person.user_id}
    invitations = await mongo.find("invitations", accepted, {"address": 1})
    written = {user.get("email"), account.get("address"), *(each.get("address") for each in invitations)}
    return sorted({normalized_address(each) for each in written if each})


def normalized_address(written: str) -> str:
    """Returns the form in which addresses are compared; for a text that is no address, the text in lower case."""
    address = normalize(written)
    return written.lower() if address is None else address.text


async def _erase_from_audit(mongo: Mongo, person: UserKey, addresses: list[str]) -> None:
    """Removes addresses of invitations from audit entries. Earlier releases wrote them there."""
    by_person = {"org": person.organization_id, "actor": person.user_id}
    accepted = await mongo.find(AUDIT, {**by_person, "action": AuditAction.INVITATION_ACCEPTED.value}, {"target": 1})
    own = [{"details.address": {"$in": addresses}}, {"target": {"$in": [each["target"] for each in accepted]}}]
    created: Document = {"org": person.organization_id, "action": AuditAction.INVITATION_CREATED.value, "$or": own}
    await mongo.write_past_orphans(lambda: mongo[AUDIT].update_many(created, {"$unset": {"details.address": ""}}))
