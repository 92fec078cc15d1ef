"""Readable addresses of organizations whose policy keeps them: their text, and their removal once a policy ends it."""

from storage.mail.addresses import AddressKeys
from storage.mail.decisions.policies import MailPolicyVersion
from storage.mail.decisions.policy_versions import MailPolicies
from storage.mail.documents import AddressDocument
from storage.mongo import Mongo

BATCH = 1000
MAX_BATCHES = 50
"""How many batches of an organization one removal changes. The next one continues."""


class ReadableAddresses:
    """Reads and removes the encrypted texts of addresses."""

    def __init__(self, mongo: Mongo, keys: AddressKeys, policies: MailPolicies) -> None:
        self._mongo = mongo
        self._keys = keys
        self._policies = policies

    def text(self, document: AddressDocument, policy: MailPolicyVersion) -> str | None:
        """Returns the address of a document; None if it is not kept readable, or its key is no longer set."""
        sealed = document.get("readable") if policy.keep_addresses else None
        return None if sealed is None else self._keys.open(policy.organization_id, sealed)

    async def forget(self) -> int:
        """Removes the texts of organizations that keep none any more. Returns how many. May be repeated."""
        query = {"forget_until": {"$gt": await self._mongo.now()}}
        ended = await self._mongo.find("mail_audit", query, {"org": 1})
        return sum([await self._forget(org) for org in {each["org"] for each in ended}])

    async def _forget(self, org: str) -> int:
        removed = 0
        for _ in range(MAX_BATCHES):
            if (await self._policies.present(org)).keep_addresses:
                break
            batch = await self._forget_batch(org)
            removed += batch
            if batch < BATCH:
                break
        return removed

    async def _forget_batch(self, org: str) -> int:
        query = {"org": org, "readable": {"$exists": True}}
        found = await self._mongo.find("mail_addresses", query, {"_id": 1}, limit=BATCH, hint="readable")
        if not found:
            return 0
        selected = {"_id": {"$in": [each["_id"] for each in found]}}
        remove = {"$unset": {"readable": ""}}
        await self._mongo.write_past_orphans(lambda: self._mongo["mail_addresses"].update_many(selected, remove))
        return len(found)
