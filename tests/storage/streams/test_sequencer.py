"""Group commit with many writers, failing changes, repeated idempotency keys, and refused commits."""

import asyncio
import itertools
import time
from collections.abc import Sequence
from contextlib import AsyncExitStack, nullcontext, suppress
from dataclasses import dataclass
from typing import Any

import pytest
from prometheus_client import REGISTRY
from pymongo.errors import AutoReconnect, OperationFailure

from server.embedded import Mongod
from storage.calls.job_changes import SetLimits
from storage.chat.changes import EditMessage, PostMessage
from storage.chat.records import Message
from storage.chat.roles import Moderator
from storage.errors import Conflict, Forbidden, NotFound, RateLimited, Unavailable
from storage.ids import MessageKey
from storage.mongo import Document, Mongo, Session
from storage.stores import Stores
from storage.streams.changes import Batch, DocumentKey
from storage.streams.heads import HEAT_TAU_S, messages_per_minute
from storage.streams.log import Event, Stream, jobs_stream
from storage.streams.sequencer import MAX_BATCH, MAX_JOBS_STREAMS, MAX_JOINT_DOCUMENTS, MAX_WAITING, Sequencer
from tests.databases import with_class
from tests.storage.faults import failpoint, sigstopped
from tests.storage.topic_scenario import OpenStores, TopicScenario, create_topic_scenario, keep_all
from tests.waiting import poll_until_true

pytestmark = pytest.mark.anyio

ILLEGAL_OPERATION = 20
"""The code of an error after which neither the driver nor the product repeats the commit."""

HOST_UNREACHABLE = 6
"""The code of an error after which the driver repeats the commit."""

NOT_YET_AT_MAJORITY = {"code": 64, "errmsg": "waiting for replication timed out"}


async def assert_consistent(scenario: TopicScenario, count: int) -> list[int]:
    """Asserts the invariants of a topic that only had posts. Returns the timestamps."""
    timestamps = [message["_id"]["ts"] for message in await scenario.messages()]
    events = await scenario.events()
    assert len(timestamps) == len(set(timestamps)) == count
    assert [event["_id"]["n"] for event in events] == list(range(1, count + 1))
    assert [event["ref"] for event in events] == timestamps, "Events and timestamps differ in order."
    assert all(earlier["at"] <= later["at"] for earlier, later in itertools.pairwise(events))
    head = await scenario.stores.mongo["topics"].find_one({"_id": scenario.topic.id})
    assert head is not None
    assert head["n"] == count
    assert head["last"] == max(timestamps)
    return timestamps


async def commit_together(
    scenario: TopicScenario, changes: Sequence[PostMessage | EditMessage]
) -> list[Message | BaseException]:
    """Submits all changes at once, so that one batch contains them. Returns the results and the errors."""
    commits = (scenario.stores.sequencer.commit(scenario.stream, change) for change in changes)
    return await asyncio.gather(*commits, return_exceptions=True)


async def test_concurrent_posts_get_timestamps_in_one_order(scenario: TopicScenario) -> None:
    posted = await asyncio.gather(*(scenario.post(str(number)) for number in range(200)))
    timestamps = await assert_consistent(scenario, 200)
    assert sorted(message.timestamp for message in posted) == timestamps
    texts = {message["_id"]["ts"]: message["text"] for message in await scenario.messages()}
    assert all(texts[message.timestamp] == message.text for message in posted)


@pytest.mark.parametrize(
    "redis_options", [{}, {"redis_url": "redis://127.0.0.1:1/0"}], ids=["with Redis", "without Redis"]
)
async def test_posts_of_several_processes_share_one_order(
    scenario: TopicScenario, open_process: OpenStores, redis_options: dict[str, str]
) -> None:
    async with AsyncExitStack() as stack:
        scenarios = [
            scenario.with_stores(await stack.enter_async_context(open_process(**redis_options))) for _ in range(4)
        ]
        posted = await asyncio.gather(*(scenarios[number % 4].post(str(number)) for number in range(200)))
        posted_later = await asyncio.gather(*(each.post() for each in scenarios * 10))
        timestamps = await assert_consistent(scenario, 240)
    assert sorted(message.timestamp for message in posted + posted_later) == timestamps


async def test_sequential_timestamps_rise_across_processes(scenario: TopicScenario, open_process: OpenStores) -> None:
    async with open_process() as second, open_process() as third:
        scenarios = [scenario, scenario.with_stores(second), scenario.with_stores(third)]
        posted = [(await scenarios[number % 3].post()).timestamp for number in range(30)]
    assert posted == await assert_consistent(scenario, 30)


async def test_batch_has_at_most_a_hundred_changes(scenario: TopicScenario) -> None:
    await asyncio.gather(*(scenario.post() for _ in range(2 * MAX_BATCH + 1)))
    commit_times = [event["at"] for event in await scenario.events()]
    assert max(commit_times.count(at) for at in set(commit_times)) <= MAX_BATCH


async def test_waiting_changes_share_one_transaction(scenario: TopicScenario) -> None:
    await commit_together(scenario, [scenario.post_change() for _ in range(50)])
    assert len({event["at"] for event in await scenario.events()}) == 1


async def test_slow_clock_does_not_lower_timestamps(scenario: TopicScenario) -> None:
    future_timestamp = (await scenario.post()).timestamp + 3_600_000_000
    await scenario.stores.mongo["topics"].update_one({"_id": scenario.topic.id}, {"$set": {"last": future_timestamp}})
    assert [(await scenario.post()).timestamp for _ in range(3)] == [
        future_timestamp + 1,
        future_timestamp + 2,
        future_timestamp + 3,
    ]


@dataclass(slots=True)
class RefusedPost(PostMessage):
    """A post whose planning raises Conflict."""

    def plan(self, batch: Batch) -> Message:
        raise Conflict("refused")


async def test_topic_whose_only_post_fails_keeps_no_heat(scenario: TopicScenario) -> None:
    topics = scenario.stores.mongo["topics"]
    before = await topics.find_one({"_id": scenario.topic.id})
    (refused,) = await commit_together(scenario, [RefusedPost(scenario.new_message())])
    assert isinstance(refused, Conflict)
    after = await topics.find_one({"_id": scenario.topic.id})
    assert before is not None
    assert after is not None
    assert "heat" not in after
    assert (after["n"], after["last"]) == (before["n"], before["last"])
    assert await scenario.stores.topics.trending(scenario.organization_id, 10, keep_all) == []


async def test_topic_heat_counts_only_posts_that_succeed(scenario: TopicScenario) -> None:
    changes = [scenario.post_change() if number < 30 else RefusedPost(scenario.new_message()) for number in range(90)]
    await commit_together(scenario, changes)
    topic = await scenario.stores.mongo["topics"].find_one({"_id": scenario.topic.id})
    assert topic is not None
    assert messages_per_minute(topic["heat"], time.time()) == pytest.approx(30 * 60 / HEAT_TAU_S, rel=0.1)


@dataclass(slots=True)
class UnstorablePost(PostMessage):
    """A post that MongoDB or its driver refuses to store."""

    field: Any = None

    def plan(self, batch: Batch) -> Message:
        message = PostMessage.plan(self, batch)
        document = dict(batch.get("messages", message.key.document_id) or {})
        batch.put("messages", document | {"field": self.field})
        return message


@dataclass(slots=True)
class DuplicateIdPost(PostMessage):
    """A post that inserts a second document with an _id that exists."""

    def plan(self, batch: Batch) -> Message:
        batch.put("topics", {"_id": self.new.topic_id})
        return PostMessage.plan(self, batch)


@dataclass(slots=True)
class FailingPost(PostMessage):
    """A post whose planning raises an unexpected error."""

    def plan(self, batch: Batch) -> Message:
        raise ZeroDivisionError


async def test_refused_change_fails_alone_in_its_batch(scenario: TopicScenario) -> None:
    message = await scenario.post("by ann")
    forbidden_edit = EditMessage(message.key, "bob", "by bob", ())
    edit_of_missing = EditMessage(MessageKey(scenario.topic.id, 1), "bob", "no such message", ())
    changes = [scenario.post_change("a"), forbidden_edit, edit_of_missing, scenario.post_change("b")]
    first, forbidden, missing, last = await commit_together(scenario, changes)
    assert isinstance(forbidden, Forbidden)
    assert isinstance(missing, NotFound)
    assert isinstance(first, Message)
    assert isinstance(last, Message)
    assert first.timestamp < last.timestamp
    await assert_consistent(scenario, 3)


@pytest.mark.parametrize(
    "create_change",
    [
        pytest.param(lambda scenario: UnstorablePost(scenario.new_message(), field="x" * 17_000_000), id="over 16 MB"),
        pytest.param(
            lambda scenario: UnstorablePost(scenario.new_message(), field={"_id": object()}), id="not encodable as BSON"
        ),
        pytest.param(lambda scenario: UnstorablePost(scenario.new_message(), field=2**64), id="integer over 64 bits"),
        pytest.param(lambda scenario: UnstorablePost(scenario.new_message(), field={"nul\0": 1}), id="invalid key"),
        pytest.param(lambda scenario: DuplicateIdPost(scenario.new_message()), id="duplicate key"),
        pytest.param(lambda scenario: FailingPost(scenario.new_message()), id="fault in planning"),
    ],
)
async def test_unstorable_change_fails_alone_in_its_batch(scenario: TopicScenario, create_change: Any) -> None:
    changes = [scenario.post_change("a"), create_change(scenario), scenario.post_change("b")]
    first, refused, last = await commit_together(scenario, changes)
    assert isinstance(refused, Exception)
    assert isinstance(first, Message)
    assert isinstance(last, Message)
    await assert_consistent(scenario, 2)
    assert [message["text"] for message in await scenario.messages()] == ["a", "b"]
    await scenario.post("the topic still takes posts")


async def test_unstorable_change_fails_alone_in_batch_of_two(scenario: TopicScenario) -> None:
    unstorable: PostMessage = UnstorablePost(scenario.new_message(), field=2**64)
    stored, refused = await commit_together(scenario, [scenario.post_change(), unstorable])
    assert isinstance(refused, Exception)
    assert isinstance(stored, Message)


async def test_missing_topic_is_not_found_and_not_created(scenario: TopicScenario) -> None:
    with pytest.raises(NotFound):
        await scenario.stores.sequencer.commit(Stream("topic", "nowhere"), scenario.post_change())
    assert await scenario.stores.mongo["topics"].find_one({"_id": "nowhere"}) is None


async def test_repeated_key_in_one_batch_creates_one_message(scenario: TopicScenario) -> None:
    posted = await asyncio.gather(*(scenario.post(key="k") for _ in range(50)))
    assert len({message.id for message in posted}) == 1
    await assert_consistent(scenario, 1)


async def test_repeated_key_later_returns_current_message(scenario: TopicScenario) -> None:
    first = await scenario.post(key="k")
    await scenario.stores.messages.edit(first.key, "ann", "edited", ())
    repeated = await scenario.post(key="k")
    assert (repeated.id, repeated.text) == (first.id, "edited")
    assert len(await scenario.messages()) == 1


async def test_concurrent_key_across_processes_creates_one_message(
    scenario: TopicScenario, open_process: OpenStores
) -> None:
    async with open_process() as second, open_process() as third:
        scenarios = [scenario, scenario.with_stores(second), scenario.with_stores(third)]
        for key in map(str, range(10)):
            posted = await asyncio.gather(*(each.post(key=key) for each in scenarios for _ in range(5)))
            assert len({message.id for message in posted}) == 1
    await assert_consistent(scenario, 10)


async def test_key_used_for_two_topics_succeeds_in_one_only(scenario: TopicScenario) -> None:
    other = await create_topic_scenario(scenario.stores, scenario.organization_id)
    for key in map(str, range(10)):
        outcomes = await asyncio.gather(scenario.post(key=key), other.post(key=key), return_exceptions=True)
        assert sorted(type(outcome).__name__ for outcome in outcomes) == ["Conflict", "Message"]
    assert len(await scenario.messages()) + len(await other.messages()) == 10


async def test_key_with_another_text_conflicts_and_fails_alone(scenario: TopicScenario) -> None:
    changes = [scenario.post_change("a", "k"), scenario.post_change("b", "k"), scenario.post_change("c", "other")]
    first, conflict, last = await commit_together(scenario, changes)
    assert isinstance(conflict, Conflict)
    assert isinstance(first, Message)
    assert isinstance(last, Message)
    await assert_consistent(scenario, 2)


async def test_keys_of_two_users_are_independent(scenario: TopicScenario) -> None:
    posted = [await scenario.post(author=author, key="k") for author in ("ann", "bob")]
    assert posted[0].id != posted[1].id


async def test_failed_attempt_stores_no_key(scenario: TopicScenario) -> None:
    failing = FailingPost(scenario.new_message(), scenario.idempotency_key("k"))
    with pytest.raises(ZeroDivisionError):
        await scenario.stores.sequencer.commit(scenario.stream, failing)
    await scenario.post(key="k")
    await assert_consistent(scenario, 1)


async def test_cancelled_caller_does_not_stop_commits(scenario: TopicScenario) -> None:
    waiters = [asyncio.create_task(scenario.post(str(number))) for number in range(10)]
    await asyncio.sleep(0)
    for waiter in waiters[:5]:
        waiter.cancel()
    outcomes = await asyncio.gather(*waiters, return_exceptions=True)
    assert sum(isinstance(outcome, asyncio.CancelledError) for outcome in outcomes) == 5
    await scenario.stores.sequencer.close()
    await assert_consistent(scenario, 10)


async def test_changes_without_events_leave_no_gap(scenario: TopicScenario) -> None:
    message = await scenario.post()
    for _ in range(2):
        await scenario.stores.messages.add_reaction(scenario.organization_id, message.key, "bob", "👍")
        await scenario.stores.messages.remove_reaction(scenario.organization_id, message.key, "cyd", "👍")
    await asyncio.gather(*(scenario.stores.messages.delete(message.key, Moderator("ann")) for _ in range(3)))
    await scenario.post()
    events = await scenario.events()
    assert [event["_id"]["n"] for event in events] == [1, 2, 3, 4]
    assert [event["kind"] for event in events] == [
        "MessagePosted",
        "ReactionsChanged",
        "MessageDeleted",
        "MessagePosted",
    ]
    assert (await scenario.stores.events.head(scenario.stream)).n == 4


async def test_change_is_planned_on_results_of_earlier_changes(scenario: TopicScenario) -> None:
    message = await scenario.post()
    reactions = [
        scenario.stores.messages.add_reaction(scenario.organization_id, message.key, f"user{n}", "👍")
        for n in range(40)
    ]
    await asyncio.gather(*reactions)
    assert (await scenario.stores.messages.get(message.key)).reaction_counts == (("👍", 40),)


async def test_commits_are_announced_once_in_order_when_durable(scenario: TopicScenario) -> None:
    stores, announced, nudged_streams = scenario.stores, list[Event](), list[str]()
    sequencer = Sequencer(stores.mongo, lambda stream, epoch, events: announced.extend(events), nudged_streams.append)
    edit_of_missing = EditMessage(MessageKey(scenario.topic.id, 1), "bob", "no such message", ())
    changes = [scenario.post_change(), edit_of_missing, scenario.post_change()]
    commits = (sequencer.commit(scenario.stream, change) for change in changes)
    await asyncio.gather(*commits, return_exceptions=True)
    assert [(event.n, event.ref) for event in announced] == [(e["_id"]["n"], e["ref"]) for e in await scenario.events()]
    assert nudged_streams == [scenario.community_stream.name]
    stores.outbox.nudge(scenario.community_stream.name)

    async def is_relayed() -> bool:
        activity = {"_id.s": scenario.community_stream.name, "kind": "TopicActivity"}
        return await stores.mongo["events"].count_documents(activity) > 0

    assert await poll_until_true(is_relayed)


async def test_failed_announcement_stops_no_later_commit(scenario: TopicScenario) -> None:
    def fail(*_: object) -> None:
        raise LookupError("no announcement today")

    stores = scenario.stores
    sequencer = Sequencer(stores.mongo, fail, fail)
    async with asyncio.timeout(10):
        posted = [await sequencer.commit(scenario.stream, scenario.post_change()) for _ in range(2)]
    assert [message.timestamp for message in posted] == await assert_consistent(scenario, 2)


async def test_idle_sequencer_keeps_no_stream_state(scenario: TopicScenario) -> None:
    await asyncio.gather(*(scenario.post() for _ in range(3)))
    await scenario.stores.sequencer.close()

    async def is_idle() -> bool:
        # Outbox rows that earlier tests left may be relayed at the same time.
        return not scenario.stores.sequencer._queues

    assert scenario.stream not in scenario.stores.sequencer._queues
    assert await poll_until_true(is_idle)


async def test_refused_commit_leaves_nothing_visible(own_scenario: TopicScenario, own_mongod: Mongod) -> None:
    await own_scenario.post()
    async with failpoint(own_mongod.uri, "commitTransaction", errorCode=ILLEGAL_OPERATION):
        changes = [own_scenario.post_change(key="k"), own_scenario.post_change(), own_scenario.post_change()]
        failed = await commit_together(own_scenario, changes)
    assert all(isinstance(outcome, OperationFailure) for outcome in failed)
    await assert_consistent(own_scenario, 1)
    for collection in ("outbox", "idempotency"):
        rows = {"at": {"$gt": (await own_scenario.events())[0]["at"]}}
        assert await own_scenario.stores.mongo[collection].count_documents(rows) == 0
    await own_scenario.post(key="k")
    await assert_consistent(own_scenario, 2)


@pytest.mark.parametrize(
    "fault_options",
    [
        pytest.param({"errorCode": 112}, id="write conflict"),
        pytest.param({"errorCode": 251}, id="no such transaction"),
        pytest.param({"errorCode": HOST_UNREACHABLE}, id="unreachable"),
        pytest.param({"closeConnection": True}, id="connection lost"),
        pytest.param({"writeConcernError": NOT_YET_AT_MAJORITY}, id="write concern timeout"),
    ],
)
async def test_transiently_failed_commit_is_applied_once(
    own_scenario: TopicScenario, own_mongod: Mongod, fault_options: dict[str, Any]
) -> None:
    async with failpoint(own_mongod.uri, "commitTransaction", times=2, **fault_options):
        await asyncio.gather(*(own_scenario.post() for _ in range(3)))
    await assert_consistent(own_scenario, 3)


@pytest.mark.parametrize("command", ["findAndModify", "find", "insert"])
@pytest.mark.parametrize(
    "fault_options",
    [
        pytest.param({"errorCode": 112}, id="write conflict"),
        pytest.param({"errorCode": 251}, id="no such transaction"),
        pytest.param({"errorCode": 10107}, id="no longer the primary"),
        pytest.param({"closeConnection": True}, id="connection lost"),
    ],
)
async def test_transiently_failed_transaction_is_applied_once(
    own_scenario: TopicScenario, own_mongod: Mongod, command: str, fault_options: dict[str, Any]
) -> None:
    async with failpoint(own_mongod.uri, command, times=2, **fault_options):
        await asyncio.gather(*(own_scenario.post(key=f"k{n}") for n in range(3)))
    await assert_consistent(own_scenario, 3)


async def test_repeated_commits_are_counted(own_scenario: TopicScenario, own_mongod: Mongod) -> None:
    def retries() -> float:
        return REGISTRY.get_sample_value("noroshi_commit_retries_total", {"kind": "topic"}) or 0

    before = retries()
    await own_scenario.post()
    assert retries() == before
    async with failpoint(own_mongod.uri, "findAndModify", times=2, errorCode=112):
        await own_scenario.post()
    assert retries() == before + 2


async def test_waits_of_a_batch_shrink_with_each_conflict(
    own_scenario: TopicScenario, own_mongod: Mongod, monkeypatch: pytest.MonkeyPatch
) -> None:
    waits: list[float] = []

    def shortest_wait(shortest: float, longest: float) -> float:
        waits.append(longest)
        return shortest

    monkeypatch.setattr("storage.mongo.transactions.random.uniform", shortest_wait)
    async with failpoint(own_mongod.uri, "findAndModify", times=6, errorCode=112):
        await own_scenario.post()
    assert len(waits) == 6
    assert waits == sorted(waits, reverse=True)
    assert waits[0] > waits[-1]


async def test_commit_of_unknown_outcome_is_never_repeated(own_scenario: TopicScenario, own_mongod: Mongod) -> None:
    async with failpoint(own_mongod.uri, "commitTransaction", writeConcernError=NOT_YET_AT_MAJORITY):
        changes = [own_scenario.post_change(key="k"), own_scenario.post_change(), own_scenario.post_change()]
        results = await commit_together(own_scenario, changes)
    assert [type(each) for each in results] == [Unavailable] * 3
    await assert_consistent(own_scenario, 3)
    repeated = await own_scenario.post(key="k")
    assert repeated.timestamp == (await assert_consistent(own_scenario, 3))[0]


@pytest.mark.parametrize("fault", ["killed", "hanging"])
async def test_posting_to_dead_mongodb_is_unavailable_and_recovers(
    own_scenario: TopicScenario, own_mongod: Mongod, fault: str
) -> None:
    await own_scenario.post()
    loop = asyncio.get_running_loop()
    with sigstopped(own_mongod.pid) if fault == "hanging" else nullcontext():
        if fault == "killed":
            own_mongod.kill()
        began_at = loop.time()
        changes = [own_scenario.post_change(), own_scenario.post_change(key="k"), own_scenario.post_change()]
        results = await commit_together(own_scenario, changes)
        elapsed_s = loop.time() - began_at
    assert [type(each) for each in results] == [Unavailable] * 3
    assert elapsed_s < 20, "The commits waited for the driver's own timeout of half a minute."
    if fault == "killed":
        await own_mongod.restart()
    await own_scenario.post(key="k")
    texts = [message["text"] for message in await own_scenario.messages()]
    assert len(texts) in (2, 4)
    await assert_consistent(own_scenario, len(texts))


class CountingMongo(Mongo):
    """A client that counts the concurrent transactions of all instances, and starts none before `may_start` is set."""

    active = max_active = 0
    may_start: asyncio.Event

    async def transact(self, work: Any, deadline_s: float = 5.0, backoffs_s: Sequence[float] = ()) -> Any:
        shared = type(self)
        shared.active += 1
        shared.max_active = max(shared.max_active, shared.active)
        await shared.may_start.wait()
        try:
            return await Mongo.transact(self, work, deadline_s, backoffs_s)
        finally:
            shared.active -= 1


async def test_changes_waiting_for_admission_are_committed_together(stores: Stores) -> None:
    CountingMongo.active, CountingMongo.max_active, CountingMongo.may_start = 0, 0, asyncio.Event()
    sequencer = Sequencer(
        with_class(stores.mongo, CountingMongo),
        lambda *_: None,
        lambda _: None,
    )
    organizations = [f"org-{n}" for n in range(3 * MAX_JOBS_STREAMS)]
    changes = [(org, SetLimits(org, n, 1.0)) for n in range(5) for org in organizations]
    commits = [asyncio.create_task(sequencer.commit(jobs_stream(org), change)) for org, change in changes]
    while CountingMongo.active < MAX_JOBS_STREAMS:
        await asyncio.sleep(0)
    CountingMongo.may_start.set()
    await asyncio.gather(*commits)
    assert CountingMongo.max_active == MAX_JOBS_STREAMS
    last = commits[-1].result()
    assert (last.id, last.concurrent_calls) == (organizations[-1], 4)
    events = await stores.mongo["events"].find({"_id.s": f"jobs:{organizations[-1]}"}).to_list(None)
    assert len({event["at"] for event in events}) == 1, "The five changes were not committed together."


async def test_waiting_too_long_for_admission_is_unavailable(stores: Stores, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("storage.streams.sequencer.MAX_ADMISSION_WAIT_S", 0.05)
    CountingMongo.active, CountingMongo.max_active, CountingMongo.may_start = 0, 0, asyncio.Event()
    sequencer = Sequencer(
        with_class(stores.mongo, CountingMongo),
        lambda *_: None,
        lambda _: None,
    )
    commits = [
        sequencer.commit(jobs_stream(f"org-{n}"), SetLimits(f"org-{n}", n, 1.0)) for n in range(MAX_JOBS_STREAMS)
    ]
    admitted = [asyncio.create_task(commit) for commit in commits]
    while CountingMongo.active < MAX_JOBS_STREAMS:
        await asyncio.sleep(0)
    late = asyncio.create_task(sequencer.commit(jobs_stream("late"), SetLimits("late", 1, 1.0)))
    await asyncio.sleep(0.03)
    # The second change has waited for a shorter time when the first change of the stream is refused.
    later = asyncio.create_task(sequencer.commit(jobs_stream("late"), SetLimits("late", 2, 1.0)))
    with pytest.raises(Unavailable):
        await late
    with suppress(Unavailable):
        await later
    assert CountingMongo.max_active == MAX_JOBS_STREAMS
    CountingMongo.may_start.set()
    await asyncio.gather(*admitted)
    assert (await sequencer.commit(jobs_stream("late"), SetLimits("late", 3, 1.0))).concurrent_calls == 3


async def test_streams_of_topics_need_no_admission(stores: Stores) -> None:
    CountingMongo.active, CountingMongo.may_start = 0, asyncio.Event()
    mongo = with_class(stores.mongo, CountingMongo)
    sequencer = Sequencer(mongo, lambda *_: None, lambda _: None)
    topic = await create_topic_scenario(stores)
    organizations = [f"org-{n}" for n in range(MAX_JOBS_STREAMS)]
    commits = [asyncio.create_task(sequencer.commit(jobs_stream(org), SetLimits(org, 1, 1.0))) for org in organizations]
    posted = asyncio.create_task(sequencer.commit(topic.stream, topic.post_change()))

    async def all_are_written() -> bool:
        return CountingMongo.active == MAX_JOBS_STREAMS + 1

    assert await poll_until_true(all_are_written)
    CountingMongo.may_start.set()
    await asyncio.gather(*commits, posted)


class AttemptCountingMongo(Mongo):
    """A client that counts the calls of `transact`."""

    attempts = 0

    async def transact(self, work: Any, deadline_s: float = 5.0, backoffs_s: Sequence[float] = ()) -> Any:
        type(self).attempts += 1
        return await Mongo.transact(self, work, deadline_s, backoffs_s)


async def test_outage_answers_all_waiting_posts_after_two_attempts(
    own_scenario: TopicScenario, own_mongod: Mongod
) -> None:
    stores = own_scenario.stores
    mongo = with_class(stores.mongo, AttemptCountingMongo)
    sequencer = Sequencer(mongo, lambda *_: None, lambda _: None)
    AttemptCountingMongo.attempts = 0
    commits = [sequencer.commit(own_scenario.stream, own_scenario.post_change(f"text {n}")) for n in range(MAX_WAITING)]
    with sigstopped(own_mongod.pid):
        results = await asyncio.gather(*commits, return_exceptions=True)
    assert {type(each) for each in results} == {Unavailable}
    assert AttemptCountingMongo.attempts <= 2
    await own_scenario.post(key="afterwards")


async def test_change_beyond_waiting_limit_is_rate_limited(scenario: TopicScenario) -> None:
    CountingMongo.active, CountingMongo.may_start = 0, asyncio.Event()
    stores = scenario.stores
    mongo = with_class(stores.mongo, CountingMongo)
    sequencer = Sequencer(mongo, lambda *_: None, lambda _: None)
    first = asyncio.create_task(sequencer.commit(scenario.stream, scenario.post_change()))
    while CountingMongo.active < 1:
        await asyncio.sleep(0)
    waiting = [
        asyncio.create_task(sequencer.commit(scenario.stream, scenario.post_change())) for _ in range(MAX_WAITING)
    ]
    await asyncio.sleep(0)
    with pytest.raises(RateLimited) as refused:
        async with asyncio.timeout(10):
            await sequencer.commit(scenario.stream, scenario.post_change())
    assert refused.value.extensions == {"code": "RATE_LIMITED", "retryAfterMs": 1000}
    CountingMongo.may_start.set()
    await asyncio.gather(first, *waiting)
    await sequencer.commit(scenario.stream, scenario.post_change())
    await assert_consistent(scenario, MAX_WAITING + 2)


@pytest.mark.parametrize(
    ("error", "expected"), [(AutoReconnect("connection closed"), Unavailable), (NotFound("topic", "t"), NotFound)]
)
async def test_failure_of_a_whole_batch_is_not_retried_one_by_one(
    scenario: TopicScenario, error: Exception, expected: type[Exception]
) -> None:
    class FailingMongo(AttemptCountingMongo):
        attempts = 0

        async def transact(self, work: Any, deadline_s: float = 5.0, backoffs_s: Sequence[float] = ()) -> Any:
            type(self).attempts += 1
            raise error

    stores, changes = scenario.stores, [scenario.post_change() for _ in range(3)]
    mongo = with_class(stores.mongo, FailingMongo)
    sequencer = Sequencer(mongo, lambda *_: None, lambda _: None)
    commits = (sequencer.commit(scenario.stream, change) for change in changes)
    results = await asyncio.gather(*commits, return_exceptions=True)
    assert [type(each) for each in results] == [expected] * 3
    assert mongo.attempts == 1


async def test_changes_after_a_split_batch_are_committed_together(scenario: TopicScenario) -> None:
    stores, may_fail = scenario.stores, asyncio.Event()

    class FirstBatchRefusingMongo(AttemptCountingMongo):
        attempts = 0

        async def transact(self, work: Any, deadline_s: float = 5.0, backoffs_s: Sequence[float] = ()) -> Any:
            if type(self).attempts == 0:
                type(self).attempts += 1
                await may_fail.wait()
                raise OperationFailure("refused", ILLEGAL_OPERATION)
            return await AttemptCountingMongo.transact(self, work, deadline_s, backoffs_s)

    mongo = with_class(stores.mongo, FirstBatchRefusingMongo)
    sequencer = Sequencer(mongo, lambda *_: None, lambda _: None)

    def submit(count: int) -> list[asyncio.Task[Message]]:
        changes = [scenario.post_change() for _ in range(count)]
        return [asyncio.create_task(sequencer.commit(scenario.stream, each)) for each in changes]

    split_batch = submit(3)
    while mongo.attempts == 0:
        await asyncio.sleep(0.01)
    later = submit(4)
    await asyncio.sleep(0)
    may_fail.set()
    await asyncio.gather(*split_batch, *later)
    assert mongo.attempts == 1 + 3 + 1
    await assert_consistent(scenario, 7)


@dataclass(slots=True)
class NeedyEdit(EditMessage):
    """An edit that also reads another document."""

    needed_id: str = ""

    def needs(self) -> Sequence[DocumentKey]:
        return [*EditMessage.needs(self), ("reactions", self.needed_id)]


async def test_batches_read_documents_in_their_transactions(scenario: TopicScenario) -> None:
    """A read outside the transaction could miss a change that the replica set's majority does not know yet."""
    sessions: list[Session | None] = []

    class RecordingMongo(Mongo):
        async def find(self, *arguments: Any, **options: Any) -> list[Document]:
            sessions.append(options.get("session"))
            return await super().find(*arguments, **options)

        async def aggregate(
            self, collection: str, pipeline: Sequence[Document], session: Session | None = None
        ) -> list[Document]:
            sessions.append(session)
            return await super().aggregate(collection, pipeline, session)

    stores, message = scenario.stores, await scenario.post()
    mongo = with_class(stores.mongo, RecordingMongo)
    sequencer = Sequencer(mongo, lambda *_: None, lambda _: None)
    for count in (1, MAX_JOINT_DOCUMENTS):
        edits = [EditMessage(message.key, "ann", f"edit {number}", ()) for number in range(count)]
        await asyncio.gather(*(sequencer.commit(scenario.stream, edit) for edit in edits))
        assert sessions
        assert None not in sessions
        sessions.clear()


async def test_batch_of_documents_too_large_to_join_commits_singly(scenario: TopicScenario) -> None:
    """All documents of a joint find together may have 16 MB; each of these changes needs 9 MB."""
    stores = scenario.stores
    for name in ("a", "b"):
        await stores.mongo["reactions"].insert_one({"_id": name, "text": "x" * 9_000_000})
    changes = [NeedyEdit((await scenario.post()).key, "ann", "edited", (), name) for name in ("a", "b")]
    results = await commit_together(scenario, changes)
    assert [getattr(result, "text", result) for result in results] == ["edited", "edited"]


async def test_changes_of_split_batch_are_refused_together_in_outage(
    own_scenario: TopicScenario, own_mongod: Mongod
) -> None:
    stores, changes = own_scenario.stores, [own_scenario.post_change(f"text {n}") for n in range(50)]

    class BatchRefusingMongo(AttemptCountingMongo):
        """A client that refuses the whole batch once, as MongoDB does with a value that it cannot store."""

        async def transact(self, work: Any, deadline_s: float = 5.0, backoffs_s: Sequence[float] = ()) -> Any:
            if type(self).attempts == 0:
                type(self).attempts += 1
                raise OperationFailure("refused", ILLEGAL_OPERATION)
            return await AttemptCountingMongo.transact(self, work, deadline_s, backoffs_s)

    BatchRefusingMongo.attempts = 0
    mongo = with_class(stores.mongo, BatchRefusingMongo)
    sequencer = Sequencer(mongo, lambda *_: None, lambda _: None)
    with sigstopped(own_mongod.pid):
        commits = (sequencer.commit(own_scenario.stream, change) for change in changes)
        results = await asyncio.gather(*commits, return_exceptions=True)
    assert {type(each) for each in results} == {Unavailable}
    assert BatchRefusingMongo.attempts <= 3
