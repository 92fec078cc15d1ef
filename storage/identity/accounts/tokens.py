"""Tokens of links that may be used once. Only their digests are stored, so that a reader of the database has none."""

from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import Enum

from pymongo.asynchronous.collection import AsyncCollection

from storage.errors import DomainError
from storage.identity.accounts.documents import AccountTokenDocument
from storage.ids import new_id
from storage.mongo import Mongo, Session
from storage.secrets.random_tokens import new_token, token_digest

ACCOUNT_TOKENS = "account_tokens"
NOT_EXPIRED = {"$expr": {"$gt": ["$expires_at", "$$NOW"]}}
"""Filter for documents whose `expires_at` is in the future by the database's clock."""


class TokenPurpose(Enum):
    """Purpose of a token. The value is stored."""

    FIRST_ADMIN = "FIRST_ADMIN"
    REGISTRATION = "REGISTRATION"
    RESET = "RESET"


LIFETIMES = {
    TokenPurpose.FIRST_ADMIN: timedelta(hours=24),
    TokenPurpose.REGISTRATION: timedelta(hours=24),
    TokenPurpose.RESET: timedelta(hours=1),
}
"""How long a token is valid."""


class LinkInvalid(DomainError):
    """The link was never valid, was used, or has expired. The client does not learn which."""

    code = "NOT_FOUND"

    def __init__(self) -> None:
        super().__init__("This link is not valid: it was used before, it has expired, or it is incomplete.")


@dataclass(frozen=True, slots=True)
class TokenSubject:
    """The person or the organization that a token is for."""

    organization_id: str
    user_id: str | None = None
    address: str | None = None
    invitation_id: str | None = None


class LocalAccountTokens:
    """Issues and uses tokens."""

    def __init__(self, mongo: Mongo) -> None:
        self._mongo = mongo
        self._tokens: AsyncCollection[AccountTokenDocument] = mongo[ACCOUNT_TOKENS]

    async def issue(self, purpose: TokenPurpose, subject: TokenSubject, session: Session | None = None) -> str:
        """Stores a new token and returns it. A new token of the first ADMIN replaces the earlier token."""
        token = new_token()
        document = _document(purpose, subject, token, await self._mongo.now())
        await self._tokens.replace_one({"_id": document["_id"]}, document, upsert=True, session=session)
        return token

    async def find(self, purpose: TokenPurpose, token: str) -> TokenSubject:
        """Returns the subject of a valid token, which stays valid. Raises: LinkInvalid."""
        found = await self._tokens.find_one(_query(purpose, token))
        if found is None:
            raise LinkInvalid
        return _subject(found)

    async def use(self, purpose: TokenPurpose, token: str, session: Session) -> TokenSubject:
        """Deletes a valid token, in the transaction of the change that the token allows. Raises: LinkInvalid."""
        found = await self._tokens.find_one_and_delete(_query(purpose, token), session=session)
        if found is None:
            raise LinkInvalid
        return _subject(found)

    async def withdraw(self, purpose: TokenPurpose, organization_id: str, address: str, session: Session) -> None:
        """Deletes all tokens for this purpose that were sent to the address."""
        query = {"org": organization_id, "address": address, "purpose": purpose.value}
        await self._tokens.delete_many(query, session=session)


def _query(purpose: TokenPurpose, token: str) -> dict[str, object]:
    return {"digest": token_digest(token), "purpose": purpose.value, **NOT_EXPIRED}


def _document(purpose: TokenPurpose, subject: TokenSubject, token: str, now: datetime) -> AccountTokenDocument:
    is_first = purpose is TokenPurpose.FIRST_ADMIN
    document: AccountTokenDocument = {
        "_id": f"first-admin:{subject.organization_id}" if is_first else new_id(),
        "digest": token_digest(token),
        "purpose": purpose.value,
        "org": subject.organization_id,
        "expires_at": now + LIFETIMES[purpose],
    }
    if subject.user_id is not None:
        document["user"] = subject.user_id
    if subject.address is not None:
        document["address"] = subject.address
    if subject.invitation_id is not None:
        document["invitation"] = subject.invitation_id
    return document


def _subject(document: AccountTokenDocument) -> TokenSubject:
    return TokenSubject(document["org"], document.get("user"), document.get("address"), document.get("invitation"))
