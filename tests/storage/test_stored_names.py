"""The migration that renames stored fields: each field gets its new name, and data of earlier code are served."""

from dataclasses import dataclass
from typing import Any

import pytest

from storage.calls.calls import NextCall, TimedStart
from storage.calls.records import TaskKey
from storage.feed.follows import FollowPair
from storage.feed.records import FanOutState, home_stream
from storage.locks import Locks
from storage.mail.records import VerdictRule
from storage.migrations.data_version import read_data_version
from storage.migrations.index_changes import finished_indexes
from storage.migrations.migrator import migrate
from storage.migrations.plan import DataMismatch, read_plan
from storage.migrations.start import prepare_database
from storage.migrations.steps import DATA_VERSION
from storage.migrations.stored_names import rename_stored_fields
from storage.mongo import Document, Mongo
from storage.publishing.records import PublicationState, PublishingPhase
from storage.publishing.transitions import MANUAL, BeginAttempt, MarkUnknown
from storage.stores import Stores
from storage.streams.log import jobs_stream
from tests.storage.calls.in_memory_jobs import new_job
from tests.storage.feed.feed_scenario import FeedScenario
from tests.storage.in_memory_stream import BEGIN, ORG
from tests.storage.mail.events import event, failed_connection, hard, ok
from tests.storage.mail.scenario import MailScenario
from tests.storage.publishing.scenario import account_target, create_publishing_scenario

pytestmark = pytest.mark.anyio

DECISION = {"blocked": True, "by": "op", "reason": "spam", "at": BEGIN}
DAY = [20_000, b"12345678"]

DOCUMENTS: dict[str, list[tuple[Document, Document]]] = {
    "mail_ledger": [
        ({"folded_at": BEGIN, "source": "mta"}, {"aggregated_at": BEGIN, "source": "mta"}),
        ({"waiting": 3, "failed": True}, {"waiting": 3, "connection_failed": True}),
    ],
    "mail_addresses": [
        (
            {"by": [], "told": {"hard": 1, "saw": ["HARD_BOUNCED", 5, "550", 0]}},
            {"by": [], "summary": {"hard": 1, "verdict": ["HARD_BOUNCED", 5, "550", 0]}},
        ),
        ({"told": {"success": 1}}, {"summary": {"success": 1}}),
        ({"moved": b"new", "moved_at": BEGIN}, {"moved": b"new", "moved_at": BEGIN}),
    ],
    "mail_domains": [
        (
            {
                "by": [{"source": "a", "gone": [5, "550 5.1.2"], "days": []}, {"source": "b", "hard": 1}],
                "told": {"hard": 1, "dead": [5, "550 5.1.2", 0, 0], "hand": DECISION},
                "hand": DECISION,
            },
            {
                "by": [{"source": "a", "refusal": [5, "550 5.1.2"], "days": []}, {"source": "b", "hard": 1}],
                "summary": {"hard": 1, "refusal": [5, "550 5.1.2"], "decision": DECISION},
                "decision": DECISION,
            },
        ),
        ({"by": [], "told": {"failed": [DAY]}}, {"by": [], "summary": {"failed_days": [DAY]}}),
        # An unreachable domain of an early release. Its number of days never counted.
        ({"by": [], "told": {"soft": 20, "dead": [5, "", 3, 20]}}, {"by": [], "summary": {"soft": 20}}),
    ],
    "mail_audit": [({"does": "block", "by": "op"}, {"action": "block", "by": "op"})],
    "call_jobs": [
        (
            {"told_at": BEGIN, "untold": True, "untold_tasks": True},
            {"emitted_at": BEGIN, "event_pending": True, "task_events_pending": True},
        )
    ],
    "call_tasks": [({"ask_at": BEGIN, "untold": True}, {"poll_at": BEGIN, "event_pending": True})],
    "publications": [
        ({"step": {"phase": "CALLING"}, "told": True}, {"progress": {"phase": "CALLING"}, "author_notified": True})
    ],
    "fan_outs": [
        (
            {"walked": False, "moved_at": BEGIN, "told_at": BEGIN},
            {"processed": False, "advanced_at": BEGIN, "emitted_at": BEGIN},
        )
    ],
    "feed_items": [({"author": "ann", "told": True}, {"author": "ann", "emitted": True}), ({"author": "bob"},) * 2],
}
"""Stored documents by collection, before and after the migration."""

OLD_NAMES: dict[str, list[tuple[str, str]]] = {
    "mail_ledger": [("aggregated_at", "folded_at"), ("connection_failed", "failed")],
    "mail_addresses": [("summary", "told"), ("told.verdict", "told.saw")],
    "mail_domains": [
        ("summary", "told"),
        ("decision", "hand"),
        ("told.decision", "told.hand"),
        ("told.failed_days", "told.failed"),
        ("told.refusal", "told.dead"),
    ],
    "mail_audit": [("action", "does")],
    "call_jobs": [("emitted_at", "told_at"), ("event_pending", "untold"), ("task_events_pending", "untold_tasks")],
    "call_tasks": [("event_pending", "untold"), ("poll_at", "ask_at")],
    "publications": [("progress", "step"), ("author_notified", "told")],
    "fan_outs": [("processed", "walked"), ("advanced_at", "moved_at"), ("emitted_at", "told_at")],
    "feed_items": [("emitted", "told")],
}
"""By collection, the names of today and those of earlier code."""

OLD_INDEXES: list[tuple[str, str, list[tuple[str, int]], dict[str, Any]]] = [
    ("mail_ledger", "aggregated_at_1", [("folded_at", 1)], {"expireAfterSeconds": 14 * 86_400}),
    ("mail_addresses", "summary", [("_id", 1), ("told", 1)], {"name": "told"}),
    ("mail_domains", "summary", [("_id", 1), ("told", 1)], {"name": "told"}),
    ("call_tasks", "poll_at_1", [("ask_at", 1)], {"partialFilterExpression": {"ask_at": {"$exists": True}}}),
    (
        "call_tasks",
        "event_pending",
        [("_id.j", 1), ("_id.r", 1)],
        {"name": "untold", "partialFilterExpression": {"untold": True}},
    ),
]
"""Collection, name of the index of today, and keys and options of the index of earlier code."""


async def downgrade(mongo: Mongo) -> None:
    """Gives the data of this release the names, the indexes and the version of the release before."""
    for collection, names in OLD_NAMES.items():
        for name, old_name in names:
            await mongo[collection].update_many({name: {"$exists": True}}, {"$rename": {name: old_name}})
    async for domain in mongo["mail_domains"].find({}):
        sources = [{"gone" if name == "refusal" else name: each[name] for name in each} for each in domain["by"]]
        await mongo["mail_domains"].update_one({"_id": domain["_id"]}, {"$set": {"by": sources}})
    padding = {"$concatArrays": ["$told.dead", [0, 0]]}
    await mongo["mail_domains"].update_many({"told.dead": {"$exists": True}}, [{"$set": {"told.dead": padding}}])
    for collection, name, keys, options in OLD_INDEXES:
        await mongo[collection].drop_index(name)
        await mongo[collection].create_index(keys, **options)
    await mongo["data_version"].update_one({}, {"$set": {"version": 8, "compatible_version": 0}})


async def index_names(mongo: Mongo) -> set[str]:
    collections = {collection for collection, *_ in OLD_INDEXES}
    return {index["name"] for each in collections for index in await finished_indexes(mongo, each)}


@pytest.mark.parametrize("collection", DOCUMENTS)
async def test_each_field_gets_its_new_name_once(stores: Stores, collection: str) -> None:
    documents = DOCUMENTS[collection]
    await stores.mongo[collection].insert_many([{"_id": n, **before} for n, (before, _) in enumerate(documents)])
    for _ in range(2):
        await rename_stored_fields(stores.mongo)
        found = await stores.mongo.find(collection, {}, sort=[("_id", 1)])
        assert found == [{"_id": n, **after} for n, (_, after) in enumerate(documents)]


async def test_interrupted_summary_is_completed(stores: Stores) -> None:
    """The first run was killed after a part of the summary was renamed."""
    await stores.mongo["mail_addresses"].insert_one({"_id": b"a", "told": {"verdict": ["COMPLAINED", 5, "", 0]}})
    await rename_stored_fields(stores.mongo)
    (found,) = await stores.mongo.find("mail_addresses", {})
    assert found == {"_id": b"a", "summary": {"verdict": ["COMPLAINED", 5, "", 0]}}


async def test_more_documents_than_a_batch_are_renamed(stores: Stores, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("storage.migrations.stored_names.BATCH", 3)
    items = [{"_id": {"o": "acme", "u": f"user {n % 3}", "ts": n}, "author": "ann", "told": True} for n in range(10)]
    await stores.mongo["feed_items"].insert_many(items)
    await rename_stored_fields(stores.mongo)
    assert await stores.mongo["feed_items"].count_documents({"emitted": True, "told": {"$exists": False}}) == 10


async def test_start_asks_to_stop_earlier_processes_first(stores: Stores) -> None:
    await stores.mongo["users"].insert_one({"_id": {"org": "acme", "id": "ann"}, "handle": "ann"})
    await downgrade(stores.mongo)
    with pytest.raises(DataMismatch, match="Stop all processes of the previous release first"):
        await prepare_database(stores.mongo)
    await migrate(stores.mongo, Locks(stores.mongo), "host/1", lambda progress: None)
    await prepare_database(stores.mongo)


@dataclass(frozen=True)
class ServedData:
    """Data of every renamed field, and how the stores read them."""

    stores: Stores
    mail: MailScenario

    async def write_mail(self) -> None:
        book = self.stores.address_book
        await self.mail.add_events(
            hard("bounced@example.org"),
            event("ann@gone.example", 550, "5.1.2"),
            ok("ann@example.org"),
            *(failed_connection(f"a{n}@dead.example", days=n % 3) for n in range(21)),
            *(ok("ann@fine.example", days=n) for n in range(3)),
        )
        await book.set_domain_blocked(self.mail.org, "blocked.example", True, "op", "spam")
        await self.mail.record(failed_connection("late@dead.example"), ok("waits@example.org"))

    async def standings(self) -> list[Any]:
        domains = ["example.org", "gone.example", "dead.example", "blocked.example"]
        return [
            *(await self.mail.standings(["bounced@example.org", "ann@example.org", "bob@gone.example"])),
            *[await self.mail.domain_standing(domain) for domain in domains],
        ]


async def test_mail_of_earlier_code_is_served(stores: Stores) -> None:
    served = ServedData(stores, MailScenario(stores, "acme"))
    await served.write_mail()
    before = await served.standings()
    assert [each.verdict.rule for each in before] == [
        VerdictRule.HARD_BOUNCED,
        VerdictRule.DELIVERABLE,
        VerdictRule.DOMAIN_DEAD,
        VerdictRule.DELIVERABLE,
        VerdictRule.DOMAIN_DEAD,
        VerdictRule.DOMAIN_DEAD,
        VerdictRule.BY_HAND,
    ]
    await migrate_from_earlier_code(stores.mongo)
    assert await served.standings() == before
    # Events that waited during the migration are aggregated after it.
    assert await served.mail.aggregate() == 2
    assert (await served.mail.standing("waits@example.org")).success == 1
    assert (await served.mail.domain_standing("dead.example")).verdict.rule is VerdictRule.DOMAIN_DEAD


async def migrate_from_earlier_code(mongo: Mongo) -> None:
    """Downgrades the data, migrates them, and asserts that nothing is left to do."""
    await downgrade(mongo)
    assert {"told", "folded_at_1", "untold", "ask_at_1"} <= await index_names(mongo)
    await migrate(mongo, Locks(mongo), "host/1", lambda progress: None)
    assert not {"told", "folded_at_1", "untold", "ask_at_1"} & await index_names(mongo)
    assert not await read_plan(mongo)
    version = await read_data_version(mongo)
    assert version is not None
    assert (version["version"], version["compatible_version"]) == (DATA_VERSION, 9)


async def test_publication_of_earlier_code_is_served(stores: Stores) -> None:
    scenario = await create_publishing_scenario(stores)
    account = account_target(await scenario.connect_account())
    claimed = await scenario.claim(post := await scenario.schedule(account, in_s=-1))
    begun = await stores.scheduled_posts.apply(BeginAttempt(claimed, PublishingPhase.CALLING, "key"))
    await stores.scheduled_posts.apply(MarkUnknown(begun, "no answer", MANUAL))
    await migrate_from_earlier_code(stores.mongo)
    publication = await scenario.publication(post)
    assert publication.state is PublicationState.UNKNOWN
    assert publication.progress == begun.progress
    assert (await scenario.stored_document(publication))["author_notified"]


async def test_feed_of_earlier_code_is_served(stores: Stores) -> None:
    feed = FeedScenario(stores)
    await feed.sign_in("ann", "bob", "cyd")
    await feed.subscribe("bob")
    for name in ("bob", "cyd"):
        await stores.follows.follow(FollowPair(feed.organization_id, name, "ann"))
    post = await feed.post()
    claim = await stores.fan_outs.claim(post.key)
    assert claim is not None
    await stores.feeds.push(post, ["bob"])
    claim = await stores.fan_outs.advance(claim, "bob", False, delivered=1)
    assert claim is not None
    bob = home_stream(feed.organization_id, "bob")
    assert [each.kind for each in await feed.events(bob)] == ["PostArrived"]
    await feed.wait_for_relays(jobs_stream(feed.organization_id))
    await migrate_from_earlier_code(stores.mongo)
    # The arrival is not emitted again, and the fan-out goes on after the last follower.
    await stores.feeds.push(post, ["bob", "cyd"])
    assert [each.kind for each in await feed.events(bob)] == ["PostArrived"]
    assert await stores.fan_outs.advance(claim, "cyd", True, delivered=1) is not None
    fan_out = await stores.fan_outs.find(post.key)
    assert fan_out is not None
    assert (fan_out.state, fan_out.delivered) == (FanOutState.COMPLETED, 2)


async def test_calls_of_earlier_code_are_served(stores: Stores) -> None:
    await stores.call_jobs.set_limits(ORG, 100, 100)
    job = await stores.call_jobs.launch(new_job(), "phone_number\n+819010000001\n", None)
    start = await stores.calls.start(ORG, NextCall(TaskKey(job.id, 2), "+819010000001"), 1)
    assert isinstance(start, TimedStart)
    await stores.mongo["call_tasks"].update_many({}, [{"$set": {"poll_at": {"$subtract": ["$$NOW", 1000]}}}])
    await migrate_from_earlier_code(stores.mongo)
    (overdue,) = await stores.calls.claim_overdue_calls(10)
    assert overdue.call.id == start.call.id
