"""Invitations: links by which people get a role, and may join a community. Each has an expiry and a number of uses."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import Enum

from pymongo.asynchronous.collection import AsyncCollection

from storage.errors import AccountDeactivated, Conflict, Forbidden, NotFound
from storage.idempotency import DuplicateRequest, IdempotencyKey, store_key
from storage.identity.access_changes import AccessChanges
from storage.identity.accounts.documents import InvitationDocument
from storage.identity.accounts.invitation_creators import INVITATIONS, rightful_invitations
from storage.identity.accounts.local_accounts import MailLanguage
from storage.identity.accounts.mails import AccountMailKind, LocalAccountMails
from storage.identity.accounts.tokens import LinkInvalid
from storage.identity.audit import Actor, AuditAction, AuditLog, TargetKind, audit_document
from storage.identity.documents import UserDocument
from storage.identity.records import User, user_record
from storage.identity.rights import lock_actor, require_access
from storage.identity.roles import Role, with_included
from storage.ids import UserKey, new_id
from storage.mongo import Document, Mongo, Session
from storage.secrets.random_tokens import new_token, token_digest
from storage.streams.log import Stream
from storage.streams.outbox import Outbox, add_rows

MAX_DIGESTS = 10
"""How many links of an invitation are valid: the first one, and the newest of those that were mailed."""


class InvitationState(Enum):
    """Whether an invitation can be accepted, or why not."""

    OPEN = "OPEN"
    USED_UP = "USED_UP"
    EXPIRED = "EXPIRED"
    REVOKED = "REVOKED"


@dataclass(frozen=True, slots=True)
class NewInvitation:
    """A validated invitation to create."""

    role: Role
    community_id: str | None
    address: str | None
    """Normalized address of the only person who may accept; None for anyone with the link."""

    max_uses: int
    lifetime: timedelta
    language: MailLanguage


@dataclass(frozen=True, slots=True)
class Invitation:
    """An invitation as read from the database."""

    id: str
    organization_id: str
    role: Role
    community_id: str | None
    address: str | None
    max_uses: int
    uses: int
    creator_id: str
    created_at: datetime
    expires_at: datetime
    revoked_at: datetime | None
    state: InvitationState
    """The state when the invitation was read."""


@dataclass(frozen=True, slots=True)
class CreatedInvitation:
    """A new invitation and the token of its link, which is None when an idempotency key was repeated."""

    invitation: Invitation
    token: str | None


class Invitations:
    """Creates, lists, revokes and accepts invitations.

    Accepting writes the invitation's document. Concurrent acceptances therefore conflict, and at most `max_uses` people
    succeed.
    """

    def __init__(
        self, mongo: Mongo, audit: AuditLog, access: AccessChanges, mails: LocalAccountMails, outbox: Outbox
    ) -> None:
        self._mongo = mongo
        self._audit = audit
        self._access = access
        self._mails = mails
        self._outbox = outbox
        self._invitations: AsyncCollection[InvitationDocument] = mongo[INVITATIONS]
        self._users: AsyncCollection[UserDocument] = mongo["users"]

    async def create(self, actor: Actor, new: NewInvitation, key: IdempotencyKey | None) -> CreatedInvitation:
        """Creates an invitation. If it has an address, mails the link to that address.

        Raises: Forbidden if the actor is no administrator any more; Conflict for a key reused with other arguments.
        """
        id_, token = new_id(), new_token()

        async def work(session: Session) -> str:
            try:
                await store_key(self._mongo, key, id_, session)
            except DuplicateRequest as duplicate:
                return duplicate.result_id
            at = await lock_actor(self._mongo, actor, session)
            document = _document(id_, actor, new, token, at)
            await self._invitations.insert_one(document, session=session)
            if new.address is not None:
                await self._mails.add(
                    AccountMailKind.INVITATION, actor.organization_id, new.address, new.language, session, id_
                )
            entry = audit_document(
                actor, AuditAction.INVITATION_CREATED, TargetKind.INVITATION, id_, at, **_details(document)
            )
            await self._audit.insert(entry, session)
            return id_

        created = await self._mongo.transact(work)
        return CreatedInvitation(await self.get(actor.organization_id, created), token if created == id_ else None)

    async def revoke(self, actor: Actor, id_: str) -> Invitation:
        """Makes an invitation invalid. Roles that it has granted stay. Idempotent. Raises: NotFound, Forbidden."""
        query: Document = {"_id": id_, "org": actor.organization_id}

        async def work(session: Session) -> None:
            at = await lock_actor(self._mongo, actor, session)
            if await self._invitations.find_one(query, session=session) is None:
                raise NotFound("invitation", id_)
            unrevoked = {**query, "revoked_at": {"$exists": False}}
            result = await self._invitations.update_one(unrevoked, {"$set": {"revoked_at": at}}, session=session)
            if result.matched_count:
                entry = audit_document(actor, AuditAction.INVITATION_REVOKED, TargetKind.INVITATION, id_, at)
                await self._audit.insert(entry, session)

        await self._mongo.transact(work)
        return await self.get(actor.organization_id, id_)

    async def get(self, organization_id: str, id_: str) -> Invitation:
        """Returns an invitation of the organization. Raises: NotFound."""
        document = await self._invitations.find_one({"_id": id_, "org": organization_id})
        if document is None:
            raise NotFound("invitation", id_)
        return (await self._records([document]))[0]

    async def list_invitations(self, organization_id: str, after: str | None, limit: int) -> list[Invitation]:
        """Returns invitations, the newest first: those after the id `after`, or from the newest if it is None.

        Raises: NotFound if `after` does not exist.
        """
        query: Document = {"org": organization_id}
        if after is not None:
            last = await self.get(organization_id, after)
            query["$or"] = [{"at": {"$lt": last.created_at}}, {"at": last.created_at, "_id": {"$lt": after}}]
        order = [("at", -1), ("_id", -1)]
        rows: list[InvitationDocument] = await self._mongo.find(INVITATIONS, query, sort=order, limit=limit)
        return await self._records(rows)

    async def find(self, organization_id: str, token: str) -> Invitation:
        """Returns the invitation of a link. Raises: LinkInvalid."""
        found = await self._invitations.find_one({"digests": token_digest(token), "org": organization_id})
        if found is None:
            raise LinkInvalid
        return (await self._records([found]))[0]

    async def add_token(self, organization_id: str, id_: str) -> tuple[Invitation, str] | None:
        """Adds a token for a further link to an open invitation. Returns the invitation and the token.

        Returns None if the invitation is not open any more.
        """
        invitation = await self.get(organization_id, id_)
        if invitation.state is not InvitationState.OPEN:
            return None
        token = new_token()
        # The first link, which the creator has, stays valid however often the mail is tried.
        mailed = {"$slice": [{"$slice": ["$digests", 1, MAX_DIGESTS]}, 2 - MAX_DIGESTS]}
        digests = {"$concatArrays": [{"$slice": ["$digests", 1]}, mailed, [token_digest(token)]]}
        await self._invitations.update_one({"_id": id_}, [{"$set": {"digests": digests}}])
        return invitation, token

    async def accept(self, actor: Actor, token: str, user: User) -> User:
        """Accepts an invitation for a user who is signed in, and returns the user with the new role. Idempotent.

        Raises: LinkInvalid, Conflict, Forbidden.
        """

        async def work(session: Session) -> tuple[Invitation, User]:
            invitation = await self.accept_in_transaction(session, token, user, actor)
            found = await self._users.find_one({"_id": _user_id(user)}, session=session)
            return invitation, user if found is None else user_record(found)

        invitation, accepted = await self._mongo.transact(work)
        self.nudge(invitation)
        return accepted

    async def accept_in_transaction(
        self, session: Session, token: str, user: User, actor: Actor | None = None
    ) -> Invitation:
        """Accepts an invitation in the transaction of a sign-in: counts the use, and grants the role.

        Changes nothing for a user who has accepted the invitation before. Call `nudge` with the result after the
        commit. `actor` is the user with the client, for the audit log. Raises: LinkInvalid; Conflict if the invitation
        is used up, expired or revoked; Forbidden if it is for another address than the verified one of the user, or the
        user is deactivated.
        """
        query = {"digests": token_digest(token), "org": user.organization_id}
        return await self._accept(session, query, user, actor or Actor(user.organization_id, user.id))

    async def accept_by_id(self, session: Session, id_: str, user: User, actor: Actor) -> Invitation:
        """Accepts the invitation of a registration, like `accept_in_transaction`, with the same errors."""
        return await self._accept(session, {"_id": id_, "org": user.organization_id}, user, actor)

    def nudge(self, invitation: Invitation) -> None:
        """Makes the person a member of the community now. Without this call, a sweeper does it some seconds later."""
        if invitation.community_id is not None:
            self._outbox.nudge(_community_stream(invitation.community_id).name)

    async def _accept(self, session: Session, query: Document, user: User, actor: Actor) -> Invitation:
        document = await self._invitations.find_one(query, session=session)
        if document is None:
            raise LinkInvalid
        (invitation,) = await self._records([document], session)
        if user.id in document["users"]:
            return invitation
        require_open(invitation)
        stored = await self._stored(user, session)
        _require_address(invitation, stored)
        now = await self._mongo.now()
        # This write conflicts with every acceptance and revocation that was committed since the read above, and so with
        # every change that takes the right to invite from the creator.
        await self._invitations.update_one({"_id": invitation.id}, {"$push": {"users": user.id}}, session=session)
        await self._grant(invitation.role, stored, now, session)
        if invitation.community_id is not None:
            await add_rows(self._mongo, _community_stream(invitation.community_id), "InvitedMember", [user.id], session)
        entry = audit_document(
            actor,
            AuditAction.INVITATION_ACCEPTED,
            TargetKind.INVITATION,
            invitation.id,
            now,
            role=invitation.role.value,
        )
        await self._audit.insert(entry, session)
        return invitation

    async def _records(
        self, documents: Sequence[InvitationDocument], session: Session | None = None
    ) -> list[Invitation]:
        """Returns the records. An invitation whose creator may not invite any more counts as revoked."""
        rightful, now = await rightful_invitations(self._mongo, documents, session), await self._mongo.now()
        return [_invitation(each, now, each["_id"] in rightful) for each in documents]

    async def _stored(self, user: User, session: Session) -> UserDocument:
        try:
            return await require_access(self._mongo, user.key, session)
        except AccountDeactivated as deactivated:
            raise Forbidden(deactivated.message) from None

    async def _grant(self, role: Role, stored: UserDocument, now: datetime, session: Session) -> None:
        """Adds the role to the user's roles, which are granted from then on."""
        roles = [Role(each) for each in stored["roles"]]
        if stored.get("roles_granted") and role in with_included(frozenset(roles)):
            return
        values = sorted({each.value for each in (*roles, role)})
        update = {"$set": {"roles": values, "roles_granted": True}}
        await self._users.update_one({"_id": stored["_id"]}, update, session=session)
        # Processes that have cached the user read it again.
        await self._access.record(UserKey(stored["_id"]["org"], stored["_id"]["id"]), now, session)


def _user_id(user: User) -> Document:
    return {"org": user.organization_id, "id": user.id}


def require_open(invitation: Invitation) -> None:
    """Raises Conflict for an invitation that nobody can accept."""
    reasons = {
        InvitationState.USED_UP: "This invitation has been used up. Ask for another.",
        InvitationState.EXPIRED: "This invitation has expired. Ask for another.",
        InvitationState.REVOKED: "This invitation was revoked. Ask for another.",
    }
    if invitation.state in reasons:
        raise Conflict(reasons[invitation.state])


def _require_address(invitation: Invitation, user: UserDocument) -> None:
    """Raises Forbidden unless the invitation is for anyone, or for the verified address of the user.

    At some providers, people may write any address into their profile.
    """
    if invitation.address is None:
        return
    if user.get("email", "").lower() != invitation.address:
        raise Forbidden("This invitation is for another mail address.")
    if not user.get("email_verified"):
        raise Forbidden("This invitation needs a mail address that your identity provider has verified.")


def _community_stream(community_id: str) -> Stream:
    return Stream("community", community_id)


def _details(document: InvitationDocument) -> dict[str, str]:
    details = {"role": document["role"], "uses": str(document["max_uses"])}
    if "community" in document:
        details["community"] = document["community"]
    return details


def _document(id_: str, actor: Actor, new: NewInvitation, token: str, at: datetime) -> InvitationDocument:
    document: InvitationDocument = {
        "_id": id_,
        "org": actor.organization_id,
        "digests": [token_digest(token)],
        "role": new.role.value,
        "max_uses": new.max_uses,
        "users": [],
        "creator": actor.user_id,
        "at": at,
        "expires_at": at + new.lifetime,
    }
    if new.community_id is not None:
        document["community"] = new.community_id
    if new.address is not None:
        document["address"] = new.address
    return document


def _state(document: InvitationDocument, now: datetime, is_rightful: bool) -> InvitationState:
    if "revoked_at" in document:
        return InvitationState.REVOKED
    if len(document["users"]) >= document["max_uses"]:
        return InvitationState.USED_UP
    if document["expires_at"] <= now:
        return InvitationState.EXPIRED
    if document.get("address") == "":
        # Releases before the field was removed emptied the address when they erased the person.
        return InvitationState.REVOKED
    return InvitationState.OPEN if is_rightful else InvitationState.REVOKED


def _invitation(document: InvitationDocument, now: datetime, is_rightful: bool) -> Invitation:
    return Invitation(
        document["_id"],
        document["org"],
        Role(document["role"]),
        document.get("community"),
        document.get("address"),
        document["max_uses"],
        len(document["users"]),
        document["creator"],
        document["at"],
        document["expires_at"],
        document.get("revoked_at"),
        _state(document, now, is_rightful),
    )
