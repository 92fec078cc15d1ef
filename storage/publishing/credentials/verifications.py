"""Daily verification of accounts' credentials (ADR 106).

A worker claims an account, asks its network, and stores the answer. The answer counts only for the credentials that
the claim began with, and only if no later worker has claimed the account.
"""

import random
from collections.abc import Collection
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

from pymongo import ReturnDocument
from pymongo.asynchronous.collection import AsyncCollection
from pymongo.results import UpdateResult

from storage.mongo import Document, Mongo, literals, seconds_from_now
from storage.mongo.leases import claim_token, lease_filter
from storage.publishing.credentials.refusals import CredentialRefusal, store_refusal
from storage.publishing.documents import AccountDocument
from storage.publishing.networks import BEHAVIOURS, DAY_S, Network
from storage.publishing.records import ConnectedAccount, VerifiedAccount, account_record

LEASE_S = 30.0
"""Longer than a verification may take, with the transaction that stores its answer."""

SPREAD = 0.1
"""By which part of a day a verification may be early or late, so that verifications do not gather."""

VERIFIABLE_NETWORKS = tuple(network for network, each in BEHAVIOURS.items() if each.verifies_credentials)


@dataclass(frozen=True, slots=True)
class ClaimedVerification:
    """An account whose credentials this worker verifies now."""

    account: ConnectedAccount
    token: str
    """Token of the claim."""

    document: AccountDocument = field(repr=False)


def verification_fields(network: Network, now: datetime) -> Document:
    """Returns the stored fields of an account whose network has just accepted its credentials."""
    if network not in VERIFIABLE_NETWORKS:
        return {}
    return {"verify_at": now + timedelta(seconds=_pause_s())}


def _pause_s() -> float:
    return random.uniform(1 - SPREAD, 1 + SPREAD) * DAY_S  # noqa: S311


class CredentialVerifications:
    """Claims accounts whose verification is due, and stores the networks' answers."""

    def __init__(self, mongo: Mongo, worker: str = "") -> None:
        """`worker` is the name by which the leases of this process are released when it has died."""
        self._mongo = mongo
        self._worker = worker
        self._accounts: AsyncCollection[AccountDocument] = mongo["accounts"]

    async def claim(self, renewed: Collection[Network] = ()) -> ClaimedVerification | None:
        """Claims the account whose verification is due first, or returns None. Accounts of earlier releases are due.

        Leaves out accounts whose credentials are being renewed, and those of the networks `renewed` whose renewal is
        due: these credentials may have ended, and get a successor within seconds.
        """
        token = claim_token(self._worker)
        query = _verifiable() | {
            "$expr": {"$lte": ["$verify_at", "$$NOW"]},
            **_NOT_IN_RENEWAL,
            "$or": [
                {"renew_at": {"$exists": False}},
                {"$expr": {"$gt": ["$renew_at", "$$NOW"]}},
                {"network": {"$nin": [each.value for each in renewed]}},
            ],
        }
        claimed = {"verify_at": seconds_from_now(LEASE_S), "verification": {"claim": {"$literal": token}}}
        document = await self._mongo.write_past_orphans(
            lambda: self._accounts.find_one_and_update(
                query, [{"$set": claimed}], sort=[("verify_at", 1)], return_document=ReturnDocument.AFTER
            )
        )
        return None if document is None else ClaimedVerification(account_record(document), token, document)

    async def accept(self, verification: ClaimedVerification, owner: VerifiedAccount) -> bool:
        """Stores that the network accepts the credentials, and whose they are. Returns False if the claim was lost.

        Removes the account's mark, unless it is newer than the claim, or the network does not renew the credentials.
        The caller then resumes the account's publications.
        """
        account = verification.account
        names = {"handle": owner.handle, "network_id": account.network_id or owner.id}
        fields = literals({name: value for name, value in names.items() if value is not None})
        fields |= {"verified_at": "$$NOW", "verify_at": seconds_from_now(_pause_s())}
        first_renewal_s = BEHAVIOURS[account.network].first_renewal_s
        if first_renewal_s is not None and not {"expires_at", "renew_at"} & verification.document.keys():
            fields["renew_at"] = seconds_from_now(first_renewal_s)
        mark = verification.document.get("attention")
        if mark is not None and not mark.get("of_renewal"):
            is_same = {"$eq": ["$attention", {"$literal": mark}]}
            fields["attention"] = {"$cond": [is_same, "$$REMOVE", "$attention"]}
        return await self._update(verification, [{"$set": fields}, {"$unset": "verification"}])

    async def refuse(self, verification: ClaimedVerification, code: str, message: str) -> bool:
        """Marks the account as one that needs other credentials, and notifies the person who gave the present ones.

        Returns False if the claim was lost, or the credentials are being renewed: they then have ended with reason.
        """
        refusal = CredentialRefusal(code, message, verification.token)
        query = _claimed(verification) | _NOT_IN_RENEWAL
        change: list[Document] = [{"$set": {"verify_at": seconds_from_now(_pause_s())}}, {"$unset": "verification"}]
        return await store_refusal(self._mongo, query, refusal, change)

    async def postpone(self, verification: ClaimedVerification, pause_s: float | None = None) -> None:
        """Plans the next verification in `pause_s` seconds, by default in a day. Nothing was found out."""
        verify_at = seconds_from_now(_pause_s() if pause_s is None else pause_s)
        await self._update(verification, [{"$set": {"verify_at": verify_at}}, {"$unset": "verification"}])

    async def release_of(self, worker: str) -> int:
        """Ends the leases of a dead worker, and returns how many. Other workers then ask the networks again."""
        query = _verifiable() | lease_filter(worker, "verify_at", LEASE_S, "verification.claim")
        return (await self._write(query, [{"$set": {"verify_at": "$$NOW"}}])).modified_count

    async def _update(self, verification: ClaimedVerification, change: list[Document]) -> bool:
        return bool((await self._write(_claimed(verification), change)).matched_count)

    async def _write(self, query: Document, change: Any) -> UpdateResult:
        return await self._mongo.write_past_orphans(lambda: self._accounts.update_many(query, change))


_NOT_IN_RENEWAL: Document = {"renewal.claim": {"$in": [None, ""]}}


def _verifiable() -> Document:
    """Returns a filter for connected accounts whose networks can be asked, by which MongoDB uses the partial index."""
    networks = [network.value for network in VERIFIABLE_NETWORKS]
    return {"credentials": {"$exists": True}, "network": {"$in": networks}}


def _claimed(verification: ClaimedVerification) -> Document:
    return {
        "_id": verification.account.id,
        "disconnected_at": None,
        "verification.claim": verification.token,
        "credentials.nonce": verification.document["credentials"]["nonce"],
    }
