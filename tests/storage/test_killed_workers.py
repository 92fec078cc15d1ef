"""Claims of work whose worker was killed inside of a transaction."""

import asyncio
import subprocess
import sys
from collections.abc import Awaitable, Callable
from datetime import timedelta

import pytest

from storage.chat.stamps.rules import StampPackAvailability, StampRule, StampRuleKind
from storage.feed.changes import NewPost
from storage.feed.content_reports.records import ContentReportCategory, ContentReportState, ContentReportSubject
from storage.feed.fan_outs import FanOutClaim
from storage.identity.audit import Actor
from storage.identity.roles import Role
from storage.ids import UserKey
from storage.privacy.retention_rules import RetainedData
from storage.stores import Stores

pytestmark = pytest.mark.anyio

ANN = UserKey("acme", "ann")
CRASH_IN_TRANSACTION = """
import os, sys
from pymongo import MongoClient

uri, database, collection = sys.argv[1:]
client = MongoClient(uri, appname="noroshi")
session = client.start_session()
session.start_transaction()
assert client[database][collection].update_one({}, {"$set": {"x": 1}}, session=session).modified_count == 1
os._exit(0)
"""


async def request_export(stores: Stores) -> None:
    await stores.exports.request(ANN)


async def request_erasure(stores: Stores) -> None:
    user = await stores.users.get(*ANN)
    await stores.erasures.request(Actor(*ANN), "ann", user.handle)


async def set_rule(stores: Stores) -> None:
    await stores.users.sign_in("acme", "ada", [Role.ADMIN], "Ada", None)
    await stores.retention_rules.set_rule(Actor("acme", "ada"), RetainedData.PHONE_NUMBERS, 7)


async def set_stamp_rule(stores: Stores) -> None:
    admin = Actor("acme", "ada", is_command_line=True)
    pack, rule = await stores.stamp_packs.create(admin, "Harbour"), StampRule(StampRuleKind.MEMBER_DAYS, 365)
    await stores.stamp_packs.set_availability(admin, pack.id, StampPackAvailability.EARNED, rule)


async def post(stores: Stores) -> None:
    await stores.posts.create(NewPost(*ANN, "Words", (), (), ()))


async def decide_report(stores: Stores) -> None:
    now = await stores.mongo.now()
    await stores.mongo["content_reports"].insert_one(
        {
            "_id": "report",
            "org": ANN.organization_id,
            "kind": ContentReportSubject.POST.value,
            "subject": "post",
            "author": "bob",
            "reporter": "ann",
            "category": ContentReportCategory.SPAM.value,
            "text": "",
            "content": "",
            "at": now,
            "state": ContentReportState.DECIDED.value,
            "effect_due": now,
            "expires_at": now + timedelta(days=1),
        }
    )


async def claim_fan_out(stores: Stores) -> FanOutClaim | None:
    (key,) = await stores.fan_outs.unclaimed(1)
    return await stores.fan_outs.claim(key)


CLAIMS: dict[str, tuple[Callable[[Stores], Awaitable[None]], Callable[[Stores], Awaitable[object]]]] = {
    "exports": (request_export, lambda stores: stores.exports.claim()),
    "erasures": (request_erasure, lambda stores: stores.erasures.claim()),
    "fan_outs": (post, claim_fan_out),
    "content_reports": (decide_report, lambda stores: stores.content_reports.claim_effect()),
    "stamp_catalogues": (set_stamp_rule, lambda stores: stores.stamp_rule_walk.claim()),
    "retention_rules": (set_rule, lambda stores: stores.retention_rules.claim()),
}


@pytest.mark.parametrize("collection", CLAIMS)
async def test_transaction_of_a_killed_worker_blocks_no_claim(
    stores: Stores, mongodb_uri: str, collection: str
) -> None:
    """MongoDB itself would keep the transaction, which locks the document, for a minute."""
    await stores.users.sign_in(*ANN, [Role.MEMBER], "Ann", None)
    prepare, claim = CLAIMS[collection]
    await prepare(stores)
    past = [{"$set": {"due": {"$subtract": ["$$NOW", 1]}}}]
    await stores.mongo[collection].update_many({"due": {"$exists": True}}, past)
    command = [sys.executable, "-c", CRASH_IN_TRANSACTION, mongodb_uri, stores.mongo.database.name, collection]
    await asyncio.to_thread(subprocess.run, command, check=True)
    assert await claim(stores) is not None
