"""Sessions of people who sign in with a passkey."""

from pymongo.asynchronous.collection import AsyncCollection

from storage.identity.passkeys.documents import PasskeyDocument
from storage.identity.passkeys.records import CounterWentBack, Passkey, PasskeyRefused, PasskeyUse, WrongPasskey
from storage.identity.passkeys.store import PASSKEYS, PasskeyStore
from storage.identity.session_records import NewSession, SignedIn, SignInMethod
from storage.identity.sessions import SessionStore
from storage.mongo import Mongo, Session


class PasskeySessions:
    """Begins sessions by a passkey.

    A sign-in writes the passkey in the transaction that begins the session. So two sign-ins with the same counter, or a
    sign-in and the removal of its passkey, take effect one after the other.
    """

    def __init__(self, mongo: Mongo, passkeys: PasskeyStore, sessions: SessionStore) -> None:
        self._store = passkeys
        self._sessions = sessions
        self._passkeys: AsyncCollection[PasskeyDocument] = mongo[PASSKEYS]

    async def sign_in(
        self,
        passkey: Passkey,
        use: PasskeyUse,
        client_address: str | None,
        user_agent: str | None,
        replaced_token: str | None = None,
    ) -> SignedIn:
        """Begins a session for a signature that was verified, and ends that of `replaced_token`.

        Raises: WrongPasskey, CounterWentBack, AccountDeactivated.
        """
        method = SignInMethod.PASSKEY
        new = NewSession(passkey.user, method, client_address, user_agent, replaced_token=replaced_token)

        async def proof(session: Session) -> None:
            await self._store.use_challenge(use.challenge, session)
            await self._count(passkey, use.counter, session)

        try:
            return await self._sessions.sign_in(new, proof)
        except PasskeyRefused:
            raise WrongPasskey from None

    async def _count(self, passkey: Passkey, counter: int, session: Session) -> None:
        """Stores the counter, which must rise unless the authenticator does not count (WebAuthn, 7.2)."""
        stored = await self._passkeys.find_one({"_id": passkey.id}, {"counter": 1}, session=session)
        if stored is None:
            raise WrongPasskey
        if (counter or stored["counter"]) and counter <= stored["counter"]:
            raise CounterWentBack
        update = {"$set": {"counter": counter}, "$currentDate": {"used_at": True}}
        await self._passkeys.update_one({"_id": passkey.id}, update, session=session)
