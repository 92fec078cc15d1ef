"""Local accounts: users who sign in with a password or a passkey that is stored here."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from enum import Enum

from pymongo.asynchronous.collection import AsyncCollection

from storage.errors import Conflict, Forbidden, Unauthenticated
from storage.identity.accounts.documents import LocalAccountDocument
from storage.identity.accounts.passwords import PasswordHashes
from storage.identity.audit import Actor
from storage.identity.documents import UserDocument
from storage.identity.handles.suggestions import free_handle, suggest_handle
from storage.identity.passkeys.records import NewPasskey
from storage.identity.records import User, user_document_id, user_record
from storage.identity.rights import require_access
from storage.identity.roles import Role
from storage.identity.users import new_user_document
from storage.ids import UserKey
from storage.mongo import Mongo, Session

LOCAL_ACCOUNTS = "local_accounts"


class MailLanguage(Enum):
    """Language of mails. The value is stored."""

    EN = "en"
    JA = "ja"


class WrongPassword(Unauthenticated):
    """The account does not exist, or the password is wrong. The client does not learn which."""

    def __init__(self) -> None:
        super().__init__("The mail address or the password is wrong.")


@dataclass(frozen=True, slots=True)
class NewLocalAccount:
    """A validated account to create. `actor` is the person who gets it, with a new user id."""

    actor: Actor
    address: str
    """Normalized."""

    name: str
    handle: str | None
    """The wished handle; None to derive one from the name."""

    password_hash: str | None
    """None for an account without a password, which has a passkey."""

    language: MailLanguage
    passkey: NewPasskey | None = None
    replaced_token: str | None = None
    """The token of the session that the browser had before. It ends when the account is created."""


@dataclass(frozen=True, slots=True)
class LocalAccount:
    """An account as read from the database."""

    organization_id: str
    user_id: str
    address: str
    password_hash: str | None
    """None for an account without a password."""

    password_at: datetime | None
    """When the password was set; None for an account without a password."""

    language: MailLanguage


class LocalAccounts:
    """Creates accounts, checks passwords and replaces them."""

    def __init__(self, mongo: Mongo, hashes: PasswordHashes) -> None:
        self.hashes = hashes
        self._mongo = mongo
        self._accounts: AsyncCollection[LocalAccountDocument] = mongo[LOCAL_ACCOUNTS]
        self._users: AsyncCollection[UserDocument] = mongo["users"]

    async def find(self, organization_id: str, address: str, session: Session | None = None) -> LocalAccount | None:
        """Returns the account of a normalized address, or None."""
        query = {"_id.org": organization_id, "address": address}
        document = await self._accounts.find_one(query, session=session)
        return None if document is None else _account(document)

    async def of_user(self, organization_id: str, user_id: str, session: Session | None = None) -> LocalAccount | None:
        """Returns the account of a user; None for users who do not sign in here."""
        document = await self._accounts.find_one({"_id": user_document_id(organization_id, user_id)}, session=session)
        return None if document is None else _account(document)

    async def verify(
        self, organization_id: str, address: str, password: str, *, is_known_browser: bool = False
    ) -> LocalAccount:
        """Returns the account with this address and password. Unknown addresses take as long as known ones.

        A right password whose hash has old parameters is hashed again. Raises: WrongPassword, RateLimited.
        """
        account = await self.find(organization_id, address)
        stored = None if account is None else account.password_hash
        is_right = await self.hashes.verify(stored, password, is_known_browser=is_known_browser)
        if account is None or not is_right:
            raise WrongPassword
        return await self._with_current_hash(account, password)

    async def insert(self, new: NewLocalAccount, roles: Sequence[Role], session: Session, *, is_invited: bool) -> User:
        """Inserts the account and its user, whose roles are granted. Raises: Conflict if the address has an account."""
        organization_id = new.actor.organization_id
        if await self.find(organization_id, new.address, session) is not None:
            action = "Sign in to accept the invitation." if is_invited else "Sign in."
            raise Conflict(f"There is an account for this mail address already. {action}")
        suggested = suggest_handle(new.handle or new.name)
        handle = await free_handle(self._mongo, organization_id, suggested, session)
        user = new_user_document(user_document_id(organization_id, new.actor.user_id), handle, new.name, roles)
        user["roles_granted"], user["email"], user["email_verified"] = True, new.address, True
        await self._users.insert_one(user, session=session)
        await self._accounts.insert_one(_document(new, await self._mongo.now()), session=session)
        return user_record(user)

    async def set_password(self, account: LocalAccount, password_hash: str, session: Session) -> LocalAccount:
        """Replaces the password. Returns the account as it is then.

        Raises: Conflict if the password was replaced since the account was read.
        """
        now = await self._mongo.now()
        query = {"_id": user_document_id(account.organization_id, account.user_id), "hash": account.password_hash}
        changed = {"$set": {"hash": password_hash, "password_at": now}}
        if (await self._accounts.update_one(query, changed, session=session)).matched_count == 0:
            raise Conflict("The password was changed meanwhile. Try again.")
        return replace(account, password_hash=password_hash, password_at=now)

    async def lock_for_passkey_change(self, user: UserKey, session: Session) -> LocalAccount:
        """Writes the account, which locks it, in the transaction of a change of its passkeys. Returns the account.

        Raises: Forbidden for a user without an account here; NotFound; AccountDeactivated.
        """
        await require_access(self._mongo, user, session)
        key = {"_id": user_document_id(*user)}
        document = await self._accounts.find_one_and_update(
            key, {"$currentDate": {"passkeys_at": True}}, session=session
        )
        if document is None:
            raise Forbidden("Only people who have an account on this server have passkeys here.")
        return _account(document)

    async def _with_current_hash(self, account: LocalAccount, password: str) -> LocalAccount:
        """Hashes the right password of an account again if its hash has old parameters."""
        if account.password_hash is None or not self.hashes.is_outdated(account.password_hash):
            return account
        query = {"_id": user_document_id(account.organization_id, account.user_id), "hash": account.password_hash}
        new_hash = await self.hashes.rehash(password)
        renewed = await self._accounts.update_one(query, {"$set": {"hash": new_hash}})
        return replace(account, password_hash=new_hash) if renewed.matched_count else account

    async def lock_for_sign_in(self, account: LocalAccount, session: Session) -> bool:
        """Writes the account, which locks it, in the transaction of a sign-in.

        Returns whether the password is still the same.
        """
        query = {"_id": user_document_id(account.organization_id, account.user_id), "hash": account.password_hash}
        used = await self._accounts.update_one(query, {"$currentDate": {"signed_in_at": True}}, session=session)
        return used.matched_count == 1


def _document(new: NewLocalAccount, now: datetime) -> LocalAccountDocument:
    document: LocalAccountDocument = {
        "_id": user_document_id(new.actor.organization_id, new.actor.user_id),
        "address": new.address,
        "language": new.language.value,
        "at": now,
    }
    if new.password_hash is not None:
        document["hash"], document["password_at"] = new.password_hash, now
    return document


def _account(document: LocalAccountDocument) -> LocalAccount:
    return LocalAccount(
        document["_id"]["org"],
        document["_id"]["id"],
        document["address"],
        document.get("hash"),
        document.get("password_at"),
        MailLanguage(document["language"]),
    )
