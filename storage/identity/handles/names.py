"""Names of people: changed by their users with the rest of the profile (ADR 96), and copied to memberships."""

from typing import Any, TypedDict

from storage.identity.audit import Actor
from storage.identity.documents import UserDocument
from storage.identity.records import User, user_document_id, user_record
from storage.identity.rights import lock_actor
from storage.identity.roles import Role
from storage.mongo import Document, Mongo, Session
from storage.mongo.text_index.names import search_terms

USERS = "users"


class ProfileFields(TypedDict, total=False):
    """New values of a profile. Fields that are left out stay as they are."""

    name: str
    """The name that the user chose. No token changes it afterwards."""

    bio: str | None
    """None removes the bio."""


class ProfileChanges:
    """Changes the names and the bios of people."""

    def __init__(self, mongo: Mongo) -> None:
        self._mongo = mongo

    async def change(self, actor: Actor, fields: ProfileFields) -> User:
        """Changes the profile of the actor, and returns the user. Raises: Forbidden without the role MEMBER."""
        query: Document = {"_id": user_document_id(actor.organization_id, actor.user_id)}

        async def work(session: Session) -> User:
            # Locks the user's document: of concurrent changes and erasures, each sees the one before it.
            at = await lock_actor(self._mongo, actor, session, Role.MEMBER)
            if "bio" in fields:
                await self._mongo[USERS].update_one(query, _bio_update(fields["bio"]), session=session)
            found: list[UserDocument] = await self._mongo.find(USERS, query, session=session)
            if "name" not in fields:
                return user_record(found[0])
            chosen: Document = {"name": fields["name"], "name_chosen_at": at}
            return user_record(await store_names(self._mongo, found[0], chosen, session))

        return await self._mongo.transact(work)


def _bio_update(bio: str | None) -> Document:
    return {"$unset": {"bio": ""}} if bio is None else {"$set": {"bio": bio}}


async def store_names(mongo: Mongo, user: UserDocument, changes: Document, session: Session) -> UserDocument:
    """Stores another name or handle, with the strings by which people are found and the copies in memberships.

    `user` is the document as the transaction sees it. `changes` may have other fields too. Returns the new document.
    """
    new_document: Any = {**user, **changes}
    changed: UserDocument = new_document
    changed["search"] = search_terms(changed["handle"], changed["name"])
    update = {"$set": {**changes, "search": changed["search"]}}
    await mongo[USERS].update_one({"_id": user["_id"]}, update, session=session)
    member = {"org": user["_id"]["org"], "user": user["_id"]["id"]}
    copies = {"$set": {"handle": changed["handle"], "search": changed["search"]}}
    await mongo["memberships"].update_many(member, copies, session=session)
    return changed
