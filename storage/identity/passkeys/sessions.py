"""Sessions of people who sign in with a passkey."""

from pymongo.asynchronous.collection import AsyncCollection

from storage.identity.passkeys.documents import PasskeyDocument
from storage.identity.passkeys.records import CounterWentBack, Passkey, PasskeyRefused, PasskeyUse, WrongPasskey
from storage.identity.passkeys.store import PASSKEYS, PasskeyStore
from storage.identity.records import User
from storage.identity.session_records import NewSession, SignInMethod
from storage.identity.sessions import SessionStore
from storage.identity.users import UserStore
from storage.mongo import Mongo, Session


class PasskeySessions:
    """Begins sessions by a passkey.

    A sign-in writes the passkey in the transaction that begins the session. So two sign-ins with the same counter, or a
    sign-in and the removal of its passkey, take effect one after the other.
    """

    def __init__(self, mongo: Mongo, passkeys: PasskeyStore, sessions: SessionStore, users: UserStore) -> None:
        self._mongo = mongo
        self._store = passkeys
        self._sessions = sessions
        self._users = users
        self._passkeys: AsyncCollection[PasskeyDocument] = mongo[PASSKEYS]

    async def sign_in(
        self, passkey: Passkey, use: PasskeyUse, client_address: str | None, user_agent: str | None
    ) -> tuple[User, str]:
        """Returns the user and the token of a new session, for a signature that was verified.

        Raises: WrongPasskey, CounterWentBack, AccountDeactivated.
        """
        user = await self._users.get(*passkey.user)
        new = NewSession(passkey.user, SignInMethod.PASSKEY, client_address, user_agent)

        async def work(session: Session) -> str:
            await self._store.use_challenge(use.challenge, session)
            await self._count(passkey, use.counter, session)
            return await self._sessions.begin_in_transaction(session, new)

        try:
            token = await self._mongo.transact(work)
        except PasskeyRefused:
            raise WrongPasskey from None
        await self._sessions.end_excess(new.user)
        return user, token

    async def _count(self, passkey: Passkey, counter: int, session: Session) -> None:
        """Stores the counter, which must rise unless the authenticator does not count (WebAuthn, 7.2)."""
        stored = await self._passkeys.find_one({"_id": passkey.id}, {"counter": 1}, session=session)
        if stored is None:
            raise WrongPasskey
        if (counter or stored["counter"]) and counter <= stored["counter"]:
            raise CounterWentBack
        update = {"$set": {"counter": counter}, "$currentDate": {"used_at": True}}
        await self._passkeys.update_one({"_id": passkey.id}, update, session=session)
