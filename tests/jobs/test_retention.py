"""Retention rules: shorter lifetimes apply to stored data, nothing else is removed, and killed workers lose nothing."""

import asyncio
from datetime import UTC, datetime, timedelta

import pytest

from jobs.retention import apply_retention_rules
from storage.calls.calls import NextCall, TimedStart
from storage.calls.job_changes import JobAction, NewCallJob
from storage.calls.records import CallJobState, CallOutcome, CallReportKind, CallTask, TaskKey
from storage.chat.changes import NewMessage
from storage.chat.communities import NewCommunity
from storage.chat.conversations import expired_messages
from storage.errors import Forbidden
from storage.identity.audit import Actor
from storage.identity.roles import Role
from storage.ids import MessageKey
from storage.mail.ledger import Ledger
from storage.privacy.retention_rules import RetainedData, RuleChanged
from storage.stores import Stores
from storage.streams.log import Stream
from tests.jobs.contexts import job_context
from tests.keys import ADDRESS_KEYS
from tests.storage.mail.events import ok

pytestmark = pytest.mark.anyio

ADA = Actor("acme", "ada")
NUMBERS = ("+819012345671", "+819012345672", "+819012345673")
LIST = "phone_number,name\n" + "".join(f"{number},Zorblax {number[-1]}\n" for number in NUMBERS)
PHONE, VARIABLES, LEDGER = RetainedData.PHONE_NUMBERS, RetainedData.CALL_VARIABLES, RetainedData.MAIL_LEDGER


@pytest.fixture
async def stores(stores: Stores) -> Stores:
    """The stores, with an administrator of the organization."""
    await stores.users.sign_in("acme", "ada", [Role.ADMIN], "Ada", None)
    return stores


async def launch(stores: Stores, organization_id: str = "acme") -> str:
    """Launches a job with the three numbers, and returns its id."""
    new = NewCallJob(organization_id, "ada", "Poll", "Say hello", None, None, 2, 0, 60)
    return (await stores.call_jobs.launch(new, LIST, None)).id


async def cancelled_job(stores: Stores, days_ago: float, organization_id: str = "acme") -> str:
    """Returns the id of a job that was cancelled some days ago."""
    job = await launch(stores, organization_id)
    await stores.call_jobs.act(organization_id, job, JobAction.CANCEL)
    await end_earlier(stores, job, days_ago)
    return job


async def end_earlier(stores: Stores, job: str, days: float) -> None:
    """Moves the end of a job into the past."""
    earlier = [{"$set": {"ended_at": {"$subtract": ["$ended_at", int(days * 86_400_000)]}}}]
    ended = {"_id": job, "ended_at": {"$exists": True}}
    assert (await stores.mongo["call_jobs"].update_one(ended, earlier)).matched_count == 1


async def tasks(stores: Stores, job: str, organization_id: str = "acme") -> list[CallTask]:
    return await stores.call_jobs.tasks(await stores.call_jobs.get(organization_id, job), None, 0, 10)


async def numbers(stores: Stores, job: str, organization_id: str = "acme") -> list[str]:
    return [task.phone_number for task in await tasks(stores, job, organization_id)]


async def make_due(stores: Stores) -> None:
    """Ends the claims and pauses of all rules."""
    await stores.mongo["retention_rules"].update_many({}, [{"$set": {"due": {"$subtract": ["$$NOW", 1]}}}])


async def apply(stores: Stores, workers: int = 1) -> int:
    """Applies all rules at once on some workers. Returns how many rules were applied."""
    await make_due(stores)
    return sum(await asyncio.gather(*(apply_retention_rules(job_context(stores)) for _ in range(workers))))


async def test_numbers_of_ended_jobs_are_removed_once_old(stores: Stores) -> None:
    old, recent, running = await cancelled_job(stores, 31), await cancelled_job(stores, 29), await launch(stores)
    foreign = await cancelled_job(stores, 31, "other")
    await stores.retention_rules.set_rule(ADA, PHONE, 30)
    assert await apply(stores, workers=3) == 1
    assert await numbers(stores, old) == ["", "", ""]
    assert [[each.value for each in task.variables] for task in await tasks(stores, old)] == [
        [f"Zorblax {number[-1]}"] for number in NUMBERS
    ]
    for job, organization in ((recent, "acme"), (running, "acme"), (foreign, "other")):
        assert await numbers(stores, job, organization) == list(NUMBERS)
    assert (await stores.call_jobs.get("acme", old)).progress.cancelled == 3
    # A shorter time applies to jobs that have ended before.
    await stores.retention_rules.set_rule(ADA, PHONE, 7)
    await stores.retention_rules.set_rule(ADA, VARIABLES, 7)
    await apply(stores, workers=3)
    for job in (old, recent):
        assert [(task.phone_number, task.variables) for task in await tasks(stores, job)] == [("", [])] * 3
    kept = [each async for each in stores.mongo["call_jobs"].find({"kept": "NOTHING"})]
    assert {each["_id"] for each in kept} == {old, recent}
    assert await numbers(stores, running) == list(NUMBERS)


async def test_jobs_of_earlier_versions_count_from_launch(stores: Stores) -> None:
    ended, running = await cancelled_job(stores, 0), await launch(stores)
    await stores.mongo["call_jobs"].update_many(
        {}, {"$unset": {"ended_at": ""}, "$set": {"created_at": datetime(2020, 1, 1, tzinfo=UTC)}}
    )
    await stores.retention_rules.set_rule(ADA, PHONE, 30)
    await apply(stores)
    assert await numbers(stores, ended) == ["", "", ""]
    assert await numbers(stores, running) == list(NUMBERS)


async def test_number_of_an_open_call_stays_until_its_end(stores: Stores) -> None:
    job = await launch(stores)
    await stores.call_jobs.set_limits("acme", 10, 100)
    start = await stores.calls.start("acme", NextCall(TaskKey(job, 2), NUMBERS[0]), 1)
    assert isinstance(start, TimedStart)
    await stores.calls.mark_unknown(start.call, "silent", True)
    await stores.call_jobs.act("acme", job, JobAction.CANCEL)
    await end_earlier(stores, job, 2)
    await stores.retention_rules.set_rule(ADA, PHONE, 1)
    await apply(stores)
    assert await numbers(stores, job) == [NUMBERS[0], "", ""]
    await stores.calls.report(start.call.id, 1, CallReportKind.ENDED, CallOutcome.DO_NOT_CALL, "acme")
    await apply(stores)
    assert await numbers(stores, job) == ["", "", ""]
    assert await stores.do_not_call.listed_numbers("acme", [NUMBERS[0]]) == {NUMBERS[0]}


async def test_late_report_about_a_removed_number_counts(stores: Stores) -> None:
    """The service lost the call, which had no slot any more, and reports its end after the number was removed."""
    job = await launch(stores)
    await stores.call_jobs.set_limits("acme", 10, 100)
    start = await stores.calls.start("acme", NextCall(TaskKey(job, 2), NUMBERS[0]), 1)
    assert isinstance(start, TimedStart)
    await stores.calls.mark_unknown(start.call, "lost", False)
    await stores.call_jobs.act("acme", job, JobAction.CANCEL)
    await end_earlier(stores, job, 2)
    await stores.retention_rules.set_rule(ADA, PHONE, 1)
    await apply(stores)
    await stores.calls.report(start.call.id, 1, CallReportKind.ENDED, CallOutcome.DO_NOT_CALL, "acme")
    assert (await tasks(stores, job))[0].outcome is CallOutcome.DO_NOT_CALL
    assert await stores.mongo["do_not_call"].count_documents({}) == 0
    assert (await stores.call_jobs.get("acme", job)).state is CallJobState.CANCELLED


async def test_shorter_ledger_lifetime_empties_events_and_keeps_ids(stores: Stores) -> None:
    ledger = Ledger(stores.mongo, ADDRESS_KEYS)
    events = [ok(f"a{n}@example.org", id_=f"id-{n}") for n in range(4)]
    for organization in ("acme", "other"):
        await ledger.record(organization, "mta", events)
    await aggregate(stores)
    waiting = ok("late@example.org", id_="late")
    await ledger.record("acme", "mta", [waiting])
    three_days_ago = {"$subtract": ["$$NOW", 3 * 86_400_000]}
    await stores.mongo["mail_ledger"].update_many(
        {"aggregated_at": {"$exists": True}}, [{"$set": {"aggregated_at": three_days_ago}}]
    )
    counts = await stores.mongo["mail_addresses"].find().sort("_id").to_list(None)
    await stores.retention_rules.set_rule(ADA, LEDGER, 4)
    await apply(stores)
    assert await stores.mongo["mail_ledger"].count_documents({"address": {"$exists": True}}) == 9
    await stores.retention_rules.set_rule(ADA, LEDGER, 2)
    await apply(stores, workers=2)
    emptied = await stores.mongo["mail_ledger"].find({"address": {"$exists": False}}).to_list(None)
    assert [set(each) for each in emptied] == [{"_id", "org", "source", "aggregated_at"}] * 4
    assert {each["org"] for each in emptied} == {"acme"}
    assert await stores.mongo["mail_ledger"].count_documents({}) == 9
    # An event that is sent again still counts once, and the address book keeps its counts.
    assert (await ledger.record("acme", "mta", events)).duplicates == 4
    assert await stores.mongo["mail_addresses"].find().sort("_id").to_list(None) == counts
    await aggregate(stores)


async def aggregate(stores: Stores) -> None:
    """Aggregates all events that wait."""
    for partition in await stores.aggregator.pending_partitions():
        lock = await stores.locks.acquire(f"mail:{partition}")
        assert lock is not None
        await stores.aggregator.aggregate_batch(lock, partition)
        await stores.locks.release(lock)


async def write(stores: Stores, topic: str, author: str, days_ago: int = 0, community: str | None = None) -> MessageKey:
    """Posts a message to a conversation, or to a topic of the community, and moves it into the past."""
    posted = await stores.messages.post(NewMessage(topic, community or topic, author, "Zorblax", None, ()))
    if not days_ago:
        return posted.key
    stored = await stores.mongo["messages"].find_one_and_delete({"_id": posted.key.document_id})
    assert stored is not None
    key = MessageKey(topic, posted.timestamp - days_ago * 86_400_000_000)
    await stores.mongo["messages"].insert_one({**stored, "_id": key.document_id})
    return key


async def test_old_direct_messages_become_tombstones(stores: Stores, monkeypatch: pytest.MonkeyPatch) -> None:
    """Messages of communities and of other organizations stay."""
    monkeypatch.setattr(expired_messages, "MESSAGES_AT_ONCE", 2)
    monkeypatch.setattr(expired_messages, "CONVERSATIONS_AT_ONCE", 1)
    old: list[MessageKey] = []
    kept: list[MessageKey] = []
    for organization in ("acme", "other"):
        ada, bob, eve = [
            await stores.users.sign_in(organization, each, [], None, None) for each in ("ada", "bob", "eve")
        ]
        community = await stores.communities.create(NewCommunity(organization, "Harbour", ""), ada, None)
        for person in (bob, eve):
            await stores.communities.join(community, person)
        for other in (bob, eve):
            topic = (await stores.conversations.start(ada, [other], "", None)).id
            (old if organization == "acme" else kept).extend([await write(stores, topic, "ada", 31) for _ in range(5)])
            kept += [await write(stores, topic, other.id, 29), await write(stores, topic, "ada")]
        topic = (await stores.topics.create(community, "ada", "Tides", None)).id
        kept.append(await write(stores, topic, "ada", 31, community.id))
    await stores.retention_rules.set_rule(ADA, RetainedData.DIRECT_MESSAGES, 30)
    assert await apply(stores, workers=2) == 1
    found = await stores.messages.find_many([*old, *kept])
    assert {key for key, message in found.items() if message.deleted_at is not None} == set(old)
    events = await stores.events.read(Stream("topic", old[0].topic_id), 0)
    assert [each.kind for each in events].count("MessageDeleted") == 5
    rules = {rule.data: rule for rule in await stores.retention_rules.list_rules("acme")}
    assert rules[RetainedData.DIRECT_MESSAGES].done_until is not None
    # A shorter time begins where the earlier rule has ended.
    await stores.retention_rules.set_rule(ADA, RetainedData.DIRECT_MESSAGES, 28)
    await apply(stores)
    recent = [each async for each in stores.mongo["messages"].find({"author": {"$ne": "ada"}, "deleted_at": None})]
    assert {each["author"] for each in recent} == {"bob", "eve"}
    assert len(recent) == 2


async def test_rule_of_a_killed_worker_is_applied_by_another(stores: Stores) -> None:
    job = await cancelled_job(stores, 31)
    await stores.retention_rules.set_rule(ADA, PHONE, 30)
    dead = await stores.retention_rules.claim()
    assert dead is not None
    assert await apply_retention_rules(job_context(stores)) == 0
    await make_due(stores)
    await stores.retention_rules.renew(dead)
    assert await apply_retention_rules(job_context(stores)) == 0
    assert await apply(stores) == 1
    assert await numbers(stores, job) == ["", "", ""]
    assert await apply_retention_rules(job_context(stores)) == 0
    (rule,) = await stores.mongo["retention_rules"].find().to_list(None)
    assert rule["due"] - await stores.mongo.now() > timedelta(minutes=30)


async def test_former_administrator_sets_no_rule(stores: Stores) -> None:
    """The request may have been admitted before the role was taken away, so the transaction checks the role."""
    await stores.users.sign_in("acme", "bob", [Role.ADMIN], "Bob", None)
    await stores.user_administration.set_roles(ADA, "bob", {Role.OPERATOR})
    with pytest.raises(Forbidden):
        await stores.retention_rules.set_rule(Actor("acme", "bob"), PHONE, 1)


async def test_failing_rule_holds_up_no_other_rule(stores: Stores) -> None:
    job = await cancelled_job(stores, 31)
    await stores.retention_rules.set_rule(ADA, LEDGER, 2)
    await stores.retention_rules.set_rule(ADA, PHONE, 30)
    # More days than a timedelta can hold.
    await stores.mongo["retention_rules"].update_one({"_id.data": LEDGER.value}, {"$set": {"days": 10**12}})
    assert await apply_retention_rules(job_context(stores)) == 2
    assert await numbers(stores, job) == ["", "", ""]


async def test_worker_stops_when_the_rule_is_changed(stores: Stores) -> None:
    job = await cancelled_job(stores, 31)
    await stores.retention_rules.set_rule(ADA, PHONE, 30)
    claimed = await stores.retention_rules.claim()
    assert claimed is not None
    for days in (60, None):
        await stores.retention_rules.set_rule(ADA, PHONE, days)
        with pytest.raises(RuleChanged):
            await stores.retention_rules.renew(claimed)
        with pytest.raises(RuleChanged):
            await stores.retention_rules.finish(claimed)
    assert await apply(stores) == 0
    assert await numbers(stores, job) == list(NUMBERS)
    await stores.retention_rules.set_rule(ADA, PHONE, 32)
    assert await apply(stores) == 1
    assert await numbers(stores, job) == list(NUMBERS)


async def test_job_cancelled_twice_keeps_its_first_end(stores: Stores) -> None:
    job = await launch(stores)
    for action in (JobAction.PAUSE, JobAction.RESUME, JobAction.CANCEL):
        assert await stored_end(stores, job) is None
        await stores.call_jobs.act("acme", job, action)
    ended_at = await stored_end(stores, job)
    assert ended_at is not None
    assert abs(ended_at - await stores.clock.now()) < timedelta(minutes=1)
    await end_earlier(stores, job, 1)
    await stores.call_jobs.act("acme", job, JobAction.CANCEL)
    assert await stored_end(stores, job) == ended_at - timedelta(days=1)


async def stored_end(stores: Stores, job: str) -> datetime | None:
    """Returns the stored end of a job, or None."""
    stored = await stores.mongo["call_jobs"].find_one({"_id": job})
    assert stored is not None
    ended_at: datetime | None = stored.get("ended_at")
    return ended_at
