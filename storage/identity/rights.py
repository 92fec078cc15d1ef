"""Rights that depend on a person's account: on its state and its roles (ADR 80).

Changes of streams declare them. Transactions without the sequencer call the functions at the end.
"""

from dataclasses import dataclass
from datetime import datetime

from storage.errors import AccountDeactivated, Forbidden, NotFound
from storage.identity.audit import Actor
from storage.identity.documents import UserDocument
from storage.identity.erased_people import USERS, require_not_erased, user_key
from storage.identity.records import has_access, has_role, user_document_id
from storage.identity.roles import Role
from storage.ids import UserKey
from storage.mongo import Mongo, Session
from storage.streams.changes import Batch, DocumentKey, Right


@dataclass(frozen=True, slots=True)
class IsActive(Right):
    """The account of the person who acts is not deactivated. An erasure deactivates it too."""

    user_id: str
    organization_id: str | None = None
    """None in a topic, which has its organization in its head."""

    def needs(self, batch: Batch) -> list[DocumentKey]:
        """Returns the person."""
        return [_key(batch, self.organization_id, self.user_id)]

    def check(self, batch: Batch) -> None:
        """Raises Forbidden for a deactivated person."""
        user: UserDocument | None = batch.get(*_key(batch, self.organization_id, self.user_id))
        if user is not None and not has_access(user):
            raise Forbidden("Your account is deactivated.")


@dataclass(frozen=True, slots=True)
class IsNotErased(Right):
    """Another person, about whom something is stored, was not erased and is not being erased."""

    user_id: str
    organization_id: str

    def needs(self, batch: Batch) -> list[DocumentKey]:
        """Returns the person."""
        return [user_key(UserKey(self.organization_id, self.user_id))]

    def check(self, batch: Batch) -> None:
        """Raises NotFound for a person whose erasure was requested."""
        require_not_erased(batch, UserKey(self.organization_id, self.user_id))


@dataclass(frozen=True, slots=True)
class HasRole(Right):
    """The person who acts has a role in the organization, as far as the stored account says.

    The person's document is written. So the change conflicts with every concurrent change of the person's roles or
    state, and of the two one sees the other. Use it for rare acts.
    """

    actor: Actor
    role: Role

    def needs(self, batch: Batch) -> list[DocumentKey]:
        """Returns the person."""
        return [_key(batch, self.actor.organization_id, self.actor.user_id)]

    def check(self, batch: Batch) -> None:
        """Raises Forbidden for a person without the role. The command line needs none."""
        if self.actor.is_command_line:
            return
        (key,) = self.needs(batch)
        user: UserDocument | None = batch.get(*key)
        if user is None or not has_role(user, self.role):
            raise Forbidden(f"This needs the role {self.role.value}.")
        batch.put(USERS, {**user, "locked_at": batch.at})


@dataclass(frozen=True, slots=True)
class Never(Right):
    """A right that nobody has who made the request."""

    message: str

    def check(self, batch: Batch) -> None:
        """Raises Forbidden."""
        raise Forbidden(self.message)


@dataclass(frozen=True, slots=True)
class IsAuthorOr(Right):
    """The person who acts is the author of a document, and then has one right, or otherwise has another right.

    Allows everything if the document does not exist: the change then raises NotFound.
    """

    document: DocumentKey
    user_id: str
    own: Right
    others: Right

    def needs(self, batch: Batch) -> list[DocumentKey]:
        """Returns the document, and the documents of both rights."""
        return [self.document, *self.own.needs(batch), *self.others.needs(batch)]

    async def load(self, mongo: Mongo, session: Session, batch: Batch) -> None:
        """Reads what both rights read."""
        await self.own.load(mongo, session, batch)
        await self.others.load(mongo, session, batch)

    def check(self, batch: Batch) -> None:
        """Raises: the error of the right that is needed."""
        stored = batch.get(*self.document)
        if stored is not None:
            (self.own if stored["author"] == self.user_id else self.others).check(batch)


async def lock_actor(mongo: Mongo, actor: Actor, session: Session, role: Role = Role.ADMIN) -> datetime:
    """Locks the actor's document, and returns the time by the database's clock.

    The lock is a write, so concurrent changes by the actor and of the actor conflict. If two administrators take the
    role from each other, only one of them succeeds. The command line needs no role. Raises: Forbidden if the actor has
    no access or not this role now.
    """
    if actor.is_command_line:
        return await mongo.now()
    key, update = user_document_id(actor.organization_id, actor.user_id), {"$currentDate": {"locked_at": True}}
    document: UserDocument | None = await mongo.find_one_and_update(USERS, {"_id": key}, update, session)
    if document is None or not has_role(document, role):
        raise Forbidden(f"This needs the role {role.value}.")
    return document["locked_at"]


async def lock_operator(mongo: Mongo, actor: Actor | None, session: Session) -> None:
    """Locks an actor who needs the role OPERATOR. Does nothing without an actor: the system needs no role.

    Raises: Forbidden as `lock_actor`.
    """
    if actor is not None:
        await lock_actor(mongo, actor, session, Role.OPERATOR)


async def require_access(mongo: Mongo, user: UserKey, session: Session) -> UserDocument:
    """Returns the document of a person who signs in or changes a way to sign in, as the transaction sees it.

    Raises: NotFound; AccountDeactivated, also for a person who is being erased.
    """
    found: list[UserDocument] = await mongo.find(USERS, {"_id": user_document_id(*user)}, session=session)
    if not found:
        raise NotFound("user", user.user_id)
    if not has_access(found[0]):
        raise AccountDeactivated
    return found[0]


def _key(batch: Batch, organization_id: str | None, user_id: str) -> DocumentKey:
    organization = batch.head["org"] if organization_id is None else organization_id
    return USERS, user_document_id(organization, user_id)
