"""Sign-ins of people whom an identity provider names. Roles that it names count as if an administrator set them."""

from collections.abc import Collection
from dataclasses import dataclass

from storage.errors import AccountDeactivated
from storage.identity.access_changes import AccessChanges
from storage.identity.accounts.invitation_creators import revoke_invitations
from storage.identity.accounts.invitations import Invitation, Invitations
from storage.identity.audit import Actor, AuditAction, AuditLog, TargetKind, audit_document
from storage.identity.documents import UserDocument
from storage.identity.records import User, user_document_id
from storage.identity.roles import Role
from storage.identity.session_records import NewSession, SignedIn
from storage.identity.sessions import SessionStore
from storage.identity.users import UserStore
from storage.ids import UserKey
from storage.mongo import Mongo, Session
from storage.mongo.clock import DatabaseClock

USERS = "users"
SOURCE = "identity provider"


@dataclass(frozen=True, slots=True)
class PersonClaims:
    """Information from the provider's claims about a person. `roles` is None if the provider names no roles."""

    user_id: str
    organization_id: str
    roles: frozenset[Role] | None
    name: str | None
    handle: str | None
    email: str | None
    is_email_verified: bool = False
    """Whether the provider says that `email` is verified."""


class ProviderLogins:
    """Signs people in. User, roles, audit log, invitation and session are committed together."""

    def __init__(
        self,
        mongo: Mongo,
        clock: DatabaseClock,
        audit: AuditLog,
        access: AccessChanges,
        users: UserStore,
        sessions: SessionStore,
        invitations: Invitations,
    ) -> None:
        self._mongo = mongo
        self._clock = clock
        self._audit = audit
        self._access = access
        self._users = users
        self._sessions = sessions
        self._invitations = invitations

    async def sign_in(self, person: PersonClaims, new: NewSession, invitation_token: str | None) -> SignedIn:
        """Creates or updates the user, grants the roles, accepts the invitation, and begins the session `new`.

        Raises: AccountDeactivated; LinkInvalid, Conflict, Forbidden if the person can't accept the invitation.
        """
        actor = Actor(*new.user, new.address, new.user_agent)
        accepted: Invitation | None = None

        async def proof(session: Session) -> None:
            nonlocal accepted
            user = await self._store(person, session)
            if user.is_deactivated or user.is_erased:
                raise AccountDeactivated
            if person.roles is not None:
                await self._grant(actor, person.roles, session)
            if invitation_token is not None:
                accepted = await self._invitations.accept_in_transaction(session, invitation_token, user, actor)

        signed_in = await self._sessions.sign_in(new, proof)
        if accepted is not None:
            self._invitations.nudge(accepted)
        return signed_in

    async def _store(self, person: PersonClaims, session: Session) -> User:
        return await self._users.sign_in(
            person.organization_id,
            person.user_id,
            # Roles that are stored before they are granted would look as if the grant changed nothing.
            (Role.MEMBER,) if person.roles is None else None,
            person.name,
            person.handle,
            person.email,
            is_email_verified=person.is_email_verified,
            session=session,
        )

    async def _grant(self, person: Actor, roles: Collection[Role], session: Session) -> None:
        """Replaces the roles of a person. A change leaves an entry in the audit log."""
        values, at = sorted(role.value for role in roles), await self._clock.now()
        user_key = UserKey(person.organization_id, person.user_id)
        key = {"_id": user_document_id(*user_key)}
        # This write locks the user, so that a concurrent change by an administrator conflicts and is not lost.
        user: UserDocument = await self._mongo.find_one_and_update(
            USERS, key, {"$set": {"roles_granted": True}}, session
        )
        if sorted(user["roles"]) == values:
            return
        updated: UserDocument = await self._mongo.find_one_and_update(USERS, key, {"$set": {"roles": values}}, session)
        await revoke_invitations(self._mongo, updated, person, at, session)
        details = {"before": ", ".join(sorted(user["roles"])), "after": ", ".join(values), "source": SOURCE}
        action, kind = AuditAction.USER_ROLES_SET, TargetKind.USER
        await self._audit.insert(audit_document(person, action, kind, person.user_id, at, **details), session)
        await self._access.record(user_key, at, session)
