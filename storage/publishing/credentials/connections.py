"""Connections of accounts that a person has begun in a browser, and that wait for the network's answer.

A connection belongs to the person who has begun, and to the browser's session if it was begun in one. Its state is
random, used once, and valid for 10 minutes.
"""

from dataclasses import dataclass, field
from datetime import datetime, timedelta

import orjson
from pymongo.asynchronous.collection import AsyncCollection

from storage.ids import UserKey
from storage.mongo import Document, Mongo
from storage.mongo.clock import DatabaseClock
from storage.publishing.documents import ACCOUNT_CONNECTIONS, AccountConnectionDocument
from storage.publishing.networks import Network
from storage.secrets.credentials import CredentialCipher, CredentialsLost
from storage.secrets.random_tokens import new_token, token_digest

LIFETIME_S = 600


@dataclass(frozen=True, slots=True)
class ConnectionOwner:
    """The person who connects an account, and the browser's session; None for a token, which has no session."""

    user: UserKey
    session_id: str | None


@dataclass(frozen=True, slots=True)
class ConnectionRequest:
    """A validated account to connect in a browser. With `account_id`, the account gets other credentials."""

    network: Network
    name: str
    base_url: str | None
    account_id: str | None = None


@dataclass(frozen=True, slots=True)
class BegunConnection:
    """The address at which the person allows access, and when the network's answer comes too late."""

    url: str
    expires_at: datetime


@dataclass(frozen=True, slots=True)
class PendingConnection:
    """A connection that waits for the network's answer, with what the exchange of the code needs."""

    network: Network
    name: str
    base_url: str | None
    account_id: str | None
    """The account that gets other credentials. None: a new account is connected."""

    verifier: str = field(repr=False)
    """The secret of PKCE."""

    client_id: str
    """The app by which the network knows this product."""

    client_secret: str | None = field(repr=False)


class ConnectionNotPending(Exception):
    """No connection waits for the state. It was used, came too late, or belongs to another session.

    `is_foreign` is True if the state is one of another session or another person.
    """

    def __init__(self, *, is_foreign: bool) -> None:
        super().__init__("another session" if is_foreign else "used, unknown or too late")
        self.is_foreign = is_foreign


class AccountConnectionStore:
    """Stores connections that have begun, and returns each of them once."""

    def __init__(self, mongo: Mongo, clock: DatabaseClock, cipher: CredentialCipher) -> None:
        self._clock = clock
        self._cipher = cipher
        self._connections: AsyncCollection[AccountConnectionDocument] = mongo[ACCOUNT_CONNECTIONS]

    async def begin(self, owner: ConnectionOwner, pending: PendingConnection) -> tuple[str, datetime]:
        """Stores a connection. Returns its state, and when it ends. Raises: Unavailable without encryption keys."""
        state = new_token()
        id_ = token_digest(state)
        secrets = orjson.dumps([pending.verifier, pending.client_id, pending.client_secret]).decode()
        document: AccountConnectionDocument = {
            "_id": id_,
            "org": owner.user.organization_id,
            "user": owner.user.user_id,
            "session": owner.session_id,
            "network": pending.network.value,
            "name": pending.name,
            "base_url": pending.base_url,
            "sealed": self._cipher.seal(secrets, id_),
            "expires_at": await self._clock.now() + timedelta(seconds=LIFETIME_S),
        }
        if pending.account_id is not None:
            document["account"] = pending.account_id
        await self._connections.insert_one(document)
        return state, document["expires_at"]

    async def take(self, owner: ConnectionOwner, state: str) -> PendingConnection:
        """Returns the owner's connection, and deletes it. Raises: ConnectionNotPending.

        A state of somebody else is not used up, so that the owner can go on.
        """
        is_pending: Document = {"_id": token_digest(state), "$expr": {"$gt": ["$expires_at", "$$NOW"]}}
        is_own: Document = {
            "org": owner.user.organization_id,
            "user": owner.user.user_id,
            "session": {"$in": [owner.session_id, None]},
        }
        document = await self._connections.find_one_and_delete(is_pending | is_own)
        if document is None:
            found = await self._connections.find_one(is_pending, {"_id": 1})
            raise ConnectionNotPending(is_foreign=found is not None)
        return self._pending(document)

    def _pending(self, document: AccountConnectionDocument) -> PendingConnection:
        try:
            verifier, client_id, client_secret = orjson.loads(self._cipher.open(document["sealed"], document["_id"]))
        except CredentialsLost:
            raise ConnectionNotPending(is_foreign=False) from None
        return PendingConnection(
            Network(document["network"]),
            document["name"],
            document["base_url"],
            document.get("account"),
            verifier,
            client_id,
            client_secret,
        )
