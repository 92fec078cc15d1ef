"""Writes what policies apply to into the summaries of addresses that earlier releases stored."""

from pymongo import UpdateOne

from storage.mail.counters import summarize
from storage.mail.documents import AddressDocument
from storage.mongo import Document, Mongo

BATCH = 1000

LACKS_FAULTS: Document = {
    "summary.faults": {"$exists": False},
    "$or": [{"summary.verdict": {"$exists": True}}, {"summary.soft": {"$exists": True}}],
}
"""Addresses with bounces, a complaint or an unsubscription, whose summary has the reason of the default policy only."""


async def add_address_faults(mongo: Mongo) -> None:
    """Computes these summaries again. A document that changes meanwhile gets a new summary by that change."""
    after: Document = {}
    while ids := await mongo.find("mail_addresses", after, {"_id": 1}, [("_id", 1)], BATCH):
        last = ids[-1]["_id"]
        query = {"_id": {"$gte": ids[0]["_id"], "$lte": last}, **LACKS_FAULTS}
        documents: list[AddressDocument] = await mongo.find("mail_addresses", query)
        if writes := [_write(each) for each in documents]:
            await mongo["mail_addresses"].bulk_write(writes, ordered=False)
        after = {"_id": {"$gt": last}}


def _write(document: AddressDocument) -> UpdateOne:
    present = document["summary"]
    summarize(document)
    unchanged = {"_id": document["_id"], "summary": present}
    return UpdateOne(unchanged, {"$set": {"summary": document["summary"]}})
