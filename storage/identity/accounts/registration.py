"""Ways to get an account: the link of the first ADMIN, an invitation, or a mail that proves the address.

Each also signs the person in, in the same transaction.
"""

from collections.abc import Awaitable, Callable

from pymongo.asynchronous.collection import AsyncCollection

from storage.errors import Conflict
from storage.identity.accounts.invitations import Invitation, Invitations
from storage.identity.accounts.local_accounts import LocalAccounts, NewLocalAccount
from storage.identity.accounts.tokens import LinkInvalid, LocalAccountTokens, TokenPurpose, TokenSubject
from storage.identity.audit import AuditAction, AuditLog, TargetKind, audit_document
from storage.identity.documents import UserDocument
from storage.identity.passkeys.store import PasskeyStore
from storage.identity.records import User
from storage.identity.roles import Role
from storage.identity.session_records import NewSession, SignedIn, SignInMethod
from storage.identity.sessions import SessionStore
from storage.ids import UserKey
from storage.mongo import Mongo, Session


class Registrations:
    """Creates accounts, each in one transaction with the use of its link and with the person's first session."""

    def __init__(
        self,
        mongo: Mongo,
        accounts: LocalAccounts,
        tokens: LocalAccountTokens,
        invitations: Invitations,
        audit: AuditLog,
        passkeys: PasskeyStore,
        sessions: SessionStore,
    ) -> None:
        self._sessions = sessions
        self._mongo = mongo
        self._accounts = accounts
        self._tokens = tokens
        self._invitations = invitations
        self._audit = audit
        self._passkeys = passkeys
        self._users: AsyncCollection[UserDocument] = mongo["users"]

    async def create_first_admin(self, token: str, new: NewLocalAccount) -> SignedIn:
        """Creates the first ADMIN. Raises: LinkInvalid; Conflict if the organization has an ADMIN."""
        organization_id = new.actor.organization_id

        async def proof(session: Session) -> None:
            subject = await self._tokens.use(TokenPurpose.FIRST_ADMIN, token, session)
            if subject.organization_id != organization_id:
                raise LinkInvalid
            admins = {"_id.org": organization_id, "roles": Role.ADMIN.value}
            if await self._users.find_one(admins, {"_id": 1}, session=session) is not None:
                raise Conflict("The organization has an administrator. Ask them for an invitation.")
            user = await self._insert(new, Role.ADMIN, session, is_invited=False)
            at = await self._mongo.now()
            action = AuditAction.FIRST_ADMIN_CREATED
            await self._audit.insert(audit_document(new.actor, action, TargetKind.USER, user.id, at), session)

        return await self._sign_in(new, proof)

    async def create_invited(self, token: str, new: NewLocalAccount) -> SignedIn:
        """Creates the account of an invited person, with the mail address of the invitation.

        A link of the invitation counts as proof of the address. One link was mailed there, and the administrator who
        created the invitation has another. Raises: LinkInvalid, also for an invitation without an address; Forbidden,
        Conflict.
        """
        invitation = await self._invitations.find(new.actor.organization_id, token)
        if invitation.address is None:
            raise LinkInvalid
        return await self._create(new, invitation, None)

    async def create_registered(self, token: str, new: NewLocalAccount) -> SignedIn:
        """Creates an account. The mailed token proves its address. Accepts the invitation if the token names one.

        Raises: LinkInvalid, Conflict, Forbidden.
        """
        subject = await self._tokens.find(TokenPurpose.REGISTRATION, token)
        organization_id = new.actor.organization_id
        if subject.organization_id != organization_id or subject.address != new.address:
            raise LinkInvalid
        invitation = None
        if subject.invitation_id is not None:
            invitation = await self._invitations.get(organization_id, subject.invitation_id)
        return await self._create(new, invitation, token)

    async def _insert(self, new: NewLocalAccount, role: Role, session: Session, *, is_invited: bool) -> User:
        user = await self._accounts.insert(new, [role], session, is_invited=is_invited)
        if new.passkey is not None:
            await self._passkeys.insert(new.actor, new.passkey, session)
        return user

    async def _create(self, new: NewLocalAccount, invitation: Invitation | None, token: str | None) -> SignedIn:
        role = Role.MEMBER if invitation is None else invitation.role

        async def proof(session: Session) -> None:
            if token is not None:
                await self._tokens.use(TokenPurpose.REGISTRATION, token, session)
            user = await self._insert(new, role, session, is_invited=invitation is not None)
            if invitation is not None:
                await self._invitations.accept_by_id(session, invitation.id, user, new.actor)
            await self._tokens.withdraw(TokenPurpose.REGISTRATION, new.actor.organization_id, new.address, session)

        signed_in = await self._sign_in(new, proof)
        if invitation is not None:
            self._invitations.nudge(invitation)
        return signed_in

    async def _sign_in(self, new: NewLocalAccount, proof: Callable[[Session], Awaitable[None]]) -> SignedIn:
        actor, method = new.actor, SignInMethod.PASSKEY if new.password_hash is None else SignInMethod.PASSWORD
        user = UserKey(actor.organization_id, actor.user_id)
        session = NewSession(user, method, actor.address, actor.user_agent, replaced_token=new.replaced_token)
        return await self._sessions.sign_in(session, proof)


async def offer_first_admin(mongo: Mongo, organization_id: str) -> str | None:
    """Returns the token of a new link for the first ADMIN; None if the organization has a user.

    Earlier links become invalid.
    """
    if await mongo.find("users", {"_id.org": organization_id}, {"_id": 1}, limit=1):
        return None
    return await LocalAccountTokens(mongo).issue(TokenPurpose.FIRST_ADMIN, TokenSubject(organization_id))
