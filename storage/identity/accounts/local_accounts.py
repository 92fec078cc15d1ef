"""Local accounts: users who sign in with a mail address and a password that are stored here."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from enum import Enum

from pymongo.asynchronous.collection import AsyncCollection

from storage.errors import Conflict, Unauthenticated
from storage.identity.accounts.documents import LocalAccountDocument
from storage.identity.accounts.passwords import PasswordHashes
from storage.identity.audit import Actor
from storage.identity.documents import UserDocument
from storage.identity.handles import ReservedHandles
from storage.identity.records import User, user_document_id, user_record
from storage.identity.roles import Role
from storage.identity.users import MAX_HANDLE, new_user_document, normalize_handle
from storage.mongo import Mongo, Session

LOCAL_ACCOUNTS = "local_accounts"
MAX_SAME_HANDLES = 1000


class Language(Enum):
    """Language of mails. The value is stored."""

    EN = "en"
    JA = "ja"


class WrongPassword(Unauthenticated):
    """The account does not exist, or the password is wrong. Nobody can tell which."""

    def __init__(self) -> None:
        super().__init__("The mail address or the password is wrong.")


@dataclass(frozen=True, slots=True)
class NewAccount:
    """A checked account to create. `actor` is the person: the organization, a new id, and where the request is from."""

    actor: Actor
    address: str
    """Normalized."""

    name: str
    handle: str | None
    """The wished handle; None to derive one from the name."""

    password_hash: str
    language: Language


@dataclass(frozen=True, slots=True)
class LocalAccount:
    """An account as read from the database."""

    organization_id: str
    user_id: str
    address: str
    password_hash: str
    language: Language
    password_at: datetime


class LocalAccounts:
    """Creates accounts, checks passwords and replaces them."""

    def __init__(self, mongo: Mongo, hashes: PasswordHashes) -> None:
        self.hashes = hashes
        self._mongo = mongo
        self._accounts: AsyncCollection[LocalAccountDocument] = mongo[LOCAL_ACCOUNTS]
        self._users: AsyncCollection[UserDocument] = mongo["users"]
        self._reserved_handles = ReservedHandles(mongo)

    async def find(self, organization_id: str, address: str, session: Session | None = None) -> LocalAccount | None:
        """Returns the account of a normalized address, or None."""
        query = {"_id.org": organization_id, "address": address}
        document = await self._accounts.find_one(query, session=session)
        return None if document is None else _account(document)

    async def of_user(self, organization_id: str, user_id: str, session: Session | None = None) -> LocalAccount | None:
        """Returns the account of a user; None for users who do not sign in here."""
        document = await self._accounts.find_one({"_id": user_document_id(organization_id, user_id)}, session=session)
        return None if document is None else _account(document)

    async def verify(self, organization_id: str, address: str, password: str) -> LocalAccount:
        """Returns the account with this address and password. Unknown addresses take as long as known ones.

        A right password whose hash has old parameters is hashed again. Raises: WrongPassword, RateLimited.
        """
        account = await self.find(organization_id, address)
        is_right = await self.hashes.verify(None if account is None else account.password_hash, password)
        if account is None or not is_right:
            raise WrongPassword
        return await self._with_current_hash(account, password)

    async def insert(self, new: NewAccount, roles: Sequence[Role], session: Session) -> User:
        """Inserts the account and its user, whose roles are granted. Raises: Conflict if the address has an account."""
        organization_id = new.actor.organization_id
        if await self.find(organization_id, new.address, session) is not None:
            raise Conflict("There is an account for this mail address already. Sign in to accept the invitation.")
        handle = await self._free_handle(organization_id, normalize_handle(new.handle or new.name), session)
        user = new_user_document(user_document_id(organization_id, new.actor.user_id), handle, new.name, roles)
        user["roles_granted"], user["email"] = True, new.address
        await self._users.insert_one(user, session=session)
        await self._accounts.insert_one(_document(new, await self._mongo.now()), session=session)
        return user_record(user)

    async def set_password(self, account: LocalAccount, password_hash: str, session: Session) -> None:
        """Replaces the password. Raises: Conflict if it was replaced since the account was read."""
        query = {"_id": user_document_id(account.organization_id, account.user_id), "hash": account.password_hash}
        changed = {"$set": {"hash": password_hash, "password_at": await self._mongo.now()}}
        if (await self._accounts.update_one(query, changed, session=session)).matched_count == 0:
            raise Conflict("The password was changed meanwhile. Try again.")

    async def _with_current_hash(self, account: LocalAccount, password: str) -> LocalAccount:
        """Hashes the right password of an account again if its hash has old parameters."""
        if not self.hashes.is_outdated(account.password_hash):
            return account
        query = {"_id": user_document_id(account.organization_id, account.user_id), "hash": account.password_hash}
        new_hash = await self.hashes.rehash(password)
        renewed = await self._accounts.update_one(query, {"$set": {"hash": new_hash}})
        return replace(account, password_hash=new_hash) if renewed.matched_count else account

    async def touch(self, account: LocalAccount, session: Session) -> bool:
        """Writes the account in the transaction of a sign-in. Returns whether the password is still the same."""
        query = {"_id": user_document_id(account.organization_id, account.user_id), "hash": account.password_hash}
        used = await self._accounts.update_one(query, {"$currentDate": {"signed_in_at": True}}, session=session)
        return used.matched_count == 1

    async def _free_handle(self, organization_id: str, base: str, session: Session) -> str:
        """Returns the base, or the base with the smallest free number."""
        candidates = [base, *(_numbered(base, number) for number in range(2, MAX_SAME_HANDLES))]
        query = {"_id.org": organization_id, "handle": {"$in": candidates}}
        taken = {each["handle"] async for each in self._users.find(query, {"handle": 1}, session=session)}
        taken |= await self._reserved_handles.among(organization_id, candidates)
        return next(each for each in candidates if each not in taken)


def _numbered(base: str, number: int) -> str:
    suffix = f"-{number}"
    return base[: MAX_HANDLE - len(suffix)] + suffix


def _document(new: NewAccount, now: datetime) -> LocalAccountDocument:
    return {
        "_id": user_document_id(new.actor.organization_id, new.actor.user_id),
        "address": new.address,
        "hash": new.password_hash,
        "language": new.language.value,
        "password_at": now,
        "at": now,
    }


def _account(document: LocalAccountDocument) -> LocalAccount:
    return LocalAccount(
        document["_id"]["org"],
        document["_id"]["id"],
        document["address"],
        document["hash"],
        Language(document["language"]),
        document["password_at"],
    )
