"""Renewal of accounts' credentials before they end (ADR 105).

A claim stores, before the network is called, that a call has begun. The result is stored by one update, which compares
the nonce of the credentials that the claim began with. So the credentials are renewed once, and a worker whose lease
has ended replaces nothing that is newer.
"""

from dataclasses import dataclass, field
from typing import Any

from pymongo import ReturnDocument
from pymongo.asynchronous.collection import AsyncCollection
from pymongo.results import UpdateResult

from storage.mongo import Document, Mongo, due_filter, literals, seconds_from_now
from storage.mongo.clock import DatabaseClock
from storage.mongo.leases import claim_token, lease_filter
from storage.publishing.credentials.lifetimes import (
    RENEWED_FIELDS,
    CredentialLifetime,
    lifetime_fields,
    refresh_token_subject,
)
from storage.publishing.credentials.refusals import CredentialRefusal, store_refusal
from storage.publishing.documents import AccountDocument
from storage.publishing.networks import Network
from storage.publishing.records import ConnectedAccount, account_record
from storage.secrets.credentials import CredentialCipher

LEASE_S = 60.0
"""Longer than a call to a network may take, with the update that stores its answer."""


@dataclass(frozen=True, slots=True)
class ClaimedRenewal:
    """An account whose credentials this worker renews now."""

    account: ConnectedAccount
    token: str
    """Token of the claim."""

    document: AccountDocument = field(repr=False)

    @property
    def nonce(self) -> bytes:
        """The nonce of the credentials to renew."""
        return self.document["credentials"]["nonce"]

    @property
    def was_interrupted(self) -> bool:
        """Whether the answer to an earlier call with the same credentials is not known."""
        return self.document["renewal"]["unanswered"] > 1


class CredentialRenewals:
    """Claims accounts whose credentials end soon, and stores the results."""

    def __init__(self, mongo: Mongo, clock: DatabaseClock, cipher: CredentialCipher, worker: str = "") -> None:
        """`worker` is the name by which the leases of this process are released when it has died."""
        self._mongo = mongo
        self._clock = clock
        self._cipher = cipher
        self._worker = worker
        self._accounts: AsyncCollection[AccountDocument] = mongo["accounts"]

    async def claim(self, networks: list[Network]) -> ClaimedRenewal | None:
        """Claims the account of these networks whose renewal is due first, or returns None."""
        token = claim_token(self._worker)
        is_same = {"$eq": ["$renewal.nonce", "$credentials.nonce"]}
        earlier = {"$cond": [is_same, {"$ifNull": ["$renewal.unanswered", 0]}, 0]}
        renewal = {
            "claim": {"$literal": token},
            "nonce": "$credentials.nonce",
            "unanswered": {"$add": [earlier, 1]},
        }
        query = {**due_filter("renew_at"), "network": {"$in": [each.value for each in networks]}}
        change = [{"$set": {"renew_at": seconds_from_now(LEASE_S), "renewal": renewal}}]
        document = await self._mongo.write_past_orphans(
            lambda: self._accounts.find_one_and_update(
                query, change, sort=[("renew_at", 1)], return_document=ReturnDocument.AFTER
            )
        )
        return None if document is None else ClaimedRenewal(account_record(document), token, document)

    def secrets(self, renewal: ClaimedRenewal) -> tuple[str, str | None]:
        """Returns the credentials to renew, and their refresh token if they have one. Raises: CredentialsLost."""
        id_, document = renewal.account.id, renewal.document
        sealed = document.get("refresh_token")
        refresh_token = None if sealed is None else self._cipher.open(sealed, refresh_token_subject(id_))
        return self._cipher.open(document["credentials"], id_), refresh_token

    async def store(self, renewal: ClaimedRenewal, secret: str, lifetime: CredentialLifetime) -> bool:
        """Stores renewed credentials. Returns False if the account has other credentials by now, or none.

        Compares the nonce only, and not the claim: if the lease has ended meanwhile, no other worker has the network's
        answer, because X answers a refresh token once.
        """
        id_ = renewal.account.id
        now = await self._clock.now()
        fields = lifetime_fields(self._cipher, id_, renewal.account.network, lifetime, now)
        fields |= {"credentials": self._cipher.seal(secret, id_), "verified_at": now}
        query = {"_id": id_, "disconnected_at": None, "credentials.nonce": renewal.nonce}
        change: list[Document] = [{"$unset": [*RENEWED_FIELDS, "attention"]}, {"$set": literals(fields)}]
        return await self._update(query, change)

    async def postpone(self, renewal: ClaimedRenewal, pause_s: float, *, had_no_effect: bool) -> None:
        """Plans the next try in `pause_s` seconds. `had_no_effect`: the network surely renewed nothing."""
        # Without a claim, the time is no lease, which the death of a worker would end.
        change: Document = {"renew_at": seconds_from_now(pause_s), "renewal.claim": {"$literal": ""}}
        if had_no_effect:
            change["renewal.unanswered"] = {"$subtract": ["$renewal.unanswered", 1]}
        await self._update(self._claimed(renewal), [{"$set": change}])

    async def refuse(self, renewal: ClaimedRenewal, code: str, message: str) -> bool:
        """Marks the account as one that needs other credentials, and ends the renewal. Returns whether it did.

        Notifies the person who gave the credentials.
        """
        refusal = CredentialRefusal(code, message, renewal.token, of_renewal=code == "UNAUTHORIZED")
        return await store_refusal(self._mongo, self._claimed(renewal), refusal, [{"$unset": ["renew_at", "renewal"]}])

    async def give_up(self, renewal: ClaimedRenewal) -> bool:
        """Ends the renewal of credentials that may be valid nevertheless, and has them verified at once."""
        change: list[Document] = [{"$set": {"verify_at": "$$NOW"}}, {"$unset": ["renew_at", "renewal"]}]
        return await self._update(self._claimed(renewal), change)

    async def release_of(self, worker: str) -> int:
        """Ends the leases of a dead worker, and returns how many. Other workers then call the networks again."""
        query = lease_filter(worker, "renew_at", LEASE_S, "renewal.claim")
        return (await self._write(query, [{"$set": {"renew_at": "$$NOW"}}])).modified_count

    def _claimed(self, renewal: ClaimedRenewal) -> Document:
        return {
            "_id": renewal.account.id,
            "disconnected_at": None,
            "renewal.claim": renewal.token,
            "credentials.nonce": renewal.nonce,
        }

    async def _update(self, query: Document, change: list[Document]) -> bool:
        return bool((await self._write(query, change)).matched_count)

    async def _write(self, query: Document, change: Any) -> UpdateResult:
        return await self._mongo.write_past_orphans(lambda: self._accounts.update_many(query, change))
