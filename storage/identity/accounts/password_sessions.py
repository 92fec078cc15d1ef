"""Sessions of people who sign in with a password, and changes of the password, which end them.

A sign-in writes the account in the transaction that begins the session. A change of the password writes the account in
the transaction that ends the sessions. The two conflict, so no session of the old password outlives the change.
"""

from storage.identity.access_changes import AccessChanges
from storage.identity.accounts.attempt_limits import PASSWORD_CHOICES_OF_ACCOUNT, AttemptLimits
from storage.identity.accounts.local_accounts import LocalAccount, LocalAccounts, WrongPassword
from storage.identity.accounts.tokens import LinkInvalid, LocalAccountTokens, TokenPurpose
from storage.identity.audit import Actor, AuditAction, AuditLog, TargetKind, audit_document
from storage.identity.rights import require_access
from storage.identity.session_records import NewSession, SignedIn, SignInMethod
from storage.identity.sessions import SessionStore
from storage.identity.users import UserStore
from storage.ids import UserKey
from storage.mongo import Mongo, Session


class PasswordSessions:
    """Begins sessions by a password, and changes passwords."""

    def __init__(
        self,
        mongo: Mongo,
        accounts: LocalAccounts,
        tokens: LocalAccountTokens,
        sessions: SessionStore,
        users: UserStore,
        audit: AuditLog,
        access: AccessChanges,
        limits: AttemptLimits,
    ) -> None:
        self._mongo = mongo
        self._accounts = accounts
        self._tokens = tokens
        self._sessions = sessions
        self._users = users
        self._audit = audit
        self._access = access
        self._limits = limits

    async def begin(
        self,
        account: LocalAccount,
        client_address: str | None,
        user_agent: str | None,
        replaced_token: str | None = None,
    ) -> SignedIn:
        """Begins a session, and ends that of `replaced_token`.

        Raises: WrongPassword if the password was changed since the account was read; AccountDeactivated.
        """
        user = UserKey(account.organization_id, account.user_id)
        new = NewSession(user, SignInMethod.PASSWORD, client_address, user_agent, replaced_token=replaced_token)

        async def proof(session: Session) -> None:
            if not await self._accounts.lock_for_sign_in(account, session):
                raise WrongPassword

        return await self._sessions.sign_in(new, proof)

    async def change(self, actor: Actor, current: str, password: str, session_id: str | None) -> LocalAccount:
        """Changes the user's password, and ends the user's other sessions. Returns the account as it is then.

        Raises: WrongPassword, BadUserInput, Conflict, RateLimited, AccountDeactivated.
        """
        account = await self._accounts.of_user(actor.organization_id, actor.user_id)
        hashes = self._accounts.hashes
        if account is None or not await hashes.verify_current(account.password_hash, current):
            raise WrongPassword
        new_hash = await self._hash(account, password)

        async def work(session: Session) -> LocalAccount:
            return await self._replace(session, actor, account, new_hash, session_id)

        return await self._mongo.transact(work)

    async def reset(
        self, token: str, password: str, client_address: str | None, user_agent: str | None
    ) -> LocalAccount:
        """Sets the password of the person to whom the token was mailed, and ends all sessions of the person.

        Returns the account as it is then.
        Raises: LinkInvalid, BadUserInput, Conflict, RateLimited, AccountDeactivated.
        """
        subject = await self._tokens.find(TokenPurpose.RESET, token)
        if subject.user_id is None:
            raise LinkInvalid
        account = await self._accounts.of_user(subject.organization_id, subject.user_id)
        if account is None or account.address != subject.address:
            raise LinkInvalid
        new_hash = await self._hash(account, password)
        actor = Actor(account.organization_id, account.user_id, client_address, user_agent)

        async def work(session: Session) -> LocalAccount:
            await self._tokens.use(TokenPurpose.RESET, token, session)
            return await self._replace(session, actor, account, new_hash, None)

        return await self._mongo.transact(work)

    async def _hash(self, account: LocalAccount, password: str) -> str:
        """Counts a choice of a password. Returns the hash. Raises: BadUserInput, RateLimited."""
        subject = f"{account.organization_id}\n{account.user_id}"
        await self._limits.count([(PASSWORD_CHOICES_OF_ACCOUNT, subject)])
        user = await self._users.get(account.organization_id, account.user_id)
        return await self._accounts.hashes.hash_new(password, user.name, account.address)

    async def _replace(
        self, session: Session, actor: Actor, account: LocalAccount, new_hash: str, kept_session_id: str | None
    ) -> LocalAccount:
        """Replaces the password, withdraws links to reset it, and ends all sessions except `kept_session_id`.

        Returns the account as it is then. Raises: Conflict; AccountDeactivated.
        """
        user, at = UserKey(account.organization_id, account.user_id), await self._mongo.now()
        await require_access(self._mongo, user, session)
        changed = await self._accounts.set_password(account, new_hash, session)
        await self._tokens.withdraw(TokenPurpose.RESET, account.organization_id, account.address, session)
        await self._sessions.end_all_in_transaction(session, user, except_id=kept_session_id)
        await self._access.record(user, at, session)
        entry = audit_document(actor, AuditAction.PASSWORD_CHANGED, TargetKind.USER, user.user_id, at)
        await self._audit.insert(entry, session)
        return changed
