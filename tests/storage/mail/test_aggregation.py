"""Aggregation counts each event once, even if events arrive repeatedly or out of order, or an aggregator is killed."""

import asyncio
import itertools
import random
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from datetime import timedelta

import pytest

from storage.locks import LockLost
from storage.mail.addresses import AddressKeys
from storage.mail.book import AddressBook
from storage.mail.counters import MAX_BOUNCES
from storage.mail.decisions.policies import MailPolicy
from storage.mail.epoch_time import DAY_MS, epoch_ms
from storage.mail.ledger import Ledger, digest, partition
from storage.stores import Stores
from tests.keys import KEY
from tests.preloaded import PreloadedProcess
from tests.storage.mail.aggregation_process import run
from tests.storage.mail.events import HOT_DOMAIN, any_events, hard, ok, soft, yesterday_noon
from tests.storage.mail.model import AddressBookModel
from tests.storage.mail.scenario import MailScenario
from tests.waiting import until

pytestmark = pytest.mark.anyio

POLICY = MailPolicy(hard_bounces=2, soft_bounce_days=2)


async def test_aggregate_of_shuffled_repeated_events_equals_model(mail: MailScenario) -> None:
    rng, model = random.Random(7), AddressBookModel()
    events = list(any_events(rng, 400, addresses=20))
    model.add_events(events)
    sent_events = [each for each in events for _ in range(rng.randint(1, 3))]
    rng.shuffle(sent_events)
    # Events with the same id are equal here, so it does not matter which is first.
    for start, limit in zip(range(0, len(sent_events), 200), itertools.cycle([50, 7, 1000, 13]), strict=False):
        await mail.record(*sent_events[start : start + 200])
        await mail.aggregate(limit)
    await mail.assert_equals(model)


async def test_hot_domain_is_written_once_per_batch(mail: MailScenario) -> None:
    await mail.record(*(ok(f"a{number}@{HOT_DOMAIN}") for number in range(300)))
    lock = await mail.acquire_lock(partition(HOT_DOMAIN))
    database = mail.stores.mongo.database
    await database.command("profile", 2)
    try:
        assert await mail.stores.aggregator.aggregate_batch(lock, partition(HOT_DOMAIN)) == 300
    finally:
        await database.command("profile", 0)
        await mail.stores.locks.release(lock)
    writes = {"ns": f"{database.name}.mail_domains", "op": {"$in": ["insert", "update"]}}
    assert await database["system.profile"].count_documents(writes) == 1
    assert (await mail.domain_standing(HOT_DOMAIN)).success == 300


async def test_aggregate_address_with_40_000_bounces_succeeds(mail: MailScenario) -> None:
    await mail.add_events(soft(message="first"))
    id_ = mail.stores.ledger._keys.id(mail.org, "ann@example.org")
    at = epoch_ms(yesterday_noon() - timedelta(days=1))
    bounces = [[number.to_bytes(8), at // DAY_MS, at, "452 4.2.2"] for number in range(40_000)]
    more = {"by.0.messages": {"$each": bounces}, "by.0.hards": {"$each": [[at, "550 5.1.1"]] * 40_000}}
    await mail.stores.mongo["mail_addresses"].update_one({"_id": id_}, {"$push": more})
    await mail.record(*(soft(message=f"m{number}") for number in range(1000)))
    assert await mail.aggregate() == 1000
    standing = await mail.standing()
    assert (standing.soft_bounce, standing.hard_bounce) == (41_001, 40_000)
    stored = await mail.stores.mongo["mail_addresses"].find_one({"_id": id_})
    assert len(stored["by"][0]["messages"]) == len(stored["by"][0]["hards"]) == MAX_BOUNCES


async def test_event_with_record_time_before_checkpoint_is_aggregated(mail: MailScenario) -> None:
    partition_number = partition("example.org")
    lock, aggregator = await mail.acquire_lock(partition_number), mail.stores.aggregator
    await mail.record(*(ok() for _ in range(4)))
    assert await aggregator.aggregate_batch(lock, partition_number, 2) == 2
    await mail.record(ok(id_="slow"))
    long_ago = {"recorded_at": await mail.stores.mongo.now() - timedelta(minutes=1)}
    id_ = digest(mail.org, "slow", size=16)
    await mail.stores.mongo["mail_ledger"].update_one({"_id": id_}, {"$set": long_ago})
    assert [await aggregator.aggregate_batch(lock, partition_number, 2) for _ in range(3)] == [2, 1, 0]
    await mail.stores.locks.release(lock)
    assert (await mail.standing()).success == 5


async def test_aggregate_with_lost_lock_counts_nothing(mail: MailScenario) -> None:
    partition_number = partition("example.org")
    old_lock = await mail.acquire_lock(partition_number)
    await mail.stores.locks.release(old_lock)
    new_lock = await mail.acquire_lock(partition_number)
    await mail.record(ok())
    assert await mail.stores.aggregator.aggregate_batch(new_lock, partition_number) == 1
    await mail.record(ok())
    with pytest.raises(LockLost):
        await mail.stores.aggregator.aggregate_batch(old_lock, partition_number)
    assert await mail.stores.aggregator.aggregate_batch(new_lock, partition_number) == 1
    await mail.stores.locks.release(new_lock)
    assert (await mail.standing()).success == 2


async def test_concurrent_aggregators_count_each_event_once(mail: MailScenario) -> None:
    """All aggregators hold the same lock, so only marking counted events in each transaction prevents double counts."""
    partition_number = partition("example.org")
    lock = await mail.acquire_lock(partition_number)
    await mail.record(*(ok() for _ in range(200)))
    aggregator = mail.stores.aggregator
    await asyncio.gather(*(aggregator.aggregate_batch(lock, partition_number, 40) for _ in range(12)))
    while await aggregator.aggregate_batch(lock, partition_number):
        pass
    await mail.stores.locks.release(lock)
    assert (await mail.standing()).success == 200
    assert (await mail.domain_standing()).success == 200


async def test_address_moves_to_new_key_with_its_counters(mail: MailScenario, mail_stores: Stores) -> None:
    await mail.add_events(hard(days=3), ok("bob@example.org"))
    await mail.record(soft(days=2))
    both_keys = AddressKeys([(2, b"another key of thirty-two bytes!"), (1, KEY)])
    mail_with_both_keys = MailScenario(_with_keys(mail_stores, both_keys), mail.org)
    assert (await mail_with_both_keys.standing()).hard_bounce == 1
    await mail_with_both_keys.record(soft(days=1))
    # One soft bounce waits in the ledger under the old key, the other under the new key.
    await mail_with_both_keys.aggregate()
    await mail.add_events(ok("bob@example.org"), soft(days=0))
    standing = await mail_with_both_keys.standing()
    assert (standing.hard_bounce, standing.soft_bounce) == (1, 3)
    assert (await mail_with_both_keys.standing("bob@example.org")).success == 2
    mail_with_new_key = MailScenario(
        _with_keys(mail_stores, AddressKeys([(2, b"another key of thirty-two bytes!")])), mail.org
    )
    assert (await mail_with_new_key.standing()).soft_bounce == 3


def _with_keys(stores: Stores, keys: AddressKeys) -> Stores:
    return replace(stores, ledger=Ledger(stores.mongo, keys), address_book=AddressBook(stores.mongo, keys))


@contextmanager
def aggregators(arguments: Sequence[str], process_count: int) -> Iterator[Callable[[int], None]]:
    """Runs processes that aggregate. Yields a function that kills the process with an id, and starts another."""
    running = [PreloadedProcess(run, *arguments) for _ in range(process_count)]

    def kill_and_restart(pid: int) -> None:
        killed = next((each for each in running if each.pid == pid), running[0])
        killed.kill()
        killed.wait()
        running[running.index(killed)] = PreloadedProcess(run, *arguments)

    try:
        yield kill_and_restart
    finally:
        for each in running:
            each.kill()
            each.wait()


async def wait_for_batch(mail: MailScenario, has_recorded: asyncio.Event) -> None:
    """Waits until an aggregator takes some waiting events of the hot domain, or has taken all that were recorded."""
    ledger, waiting = mail.stores.mongo["mail_ledger"], {"waiting": partition(HOT_DOMAIN)}
    count = 0

    async def has_fewer() -> bool:
        nonlocal count
        previous, count = count, await ledger.count_documents(waiting)
        return count < previous or (not count and has_recorded.is_set())

    await until(has_fewer, interval_s=0.1)


async def hot_aggregator_id(mail: MailScenario) -> int:
    """Returns the id of the process that aggregates the hot domain, or did so last."""
    lock = await mail.stores.mongo["process_locks"].find_one({"_id": f"mail:{partition(HOT_DOMAIN)}"})
    assert lock is not None
    return int(lock["holder"].rpartition("/")[2])


async def change_policy(mail: MailScenario) -> None:
    """Sets the policy three times at once, as a client that repeats a request does."""
    policies = mail.stores.address_book.policies
    versions = await asyncio.gather(*(policies.set(mail.org, POLICY, 0, "op", "why", None) for _ in range(3)))
    assert [each.version for each in versions] == [1, 1, 1]


async def aggregate_with_kills(
    mail: MailScenario,
    arguments: Sequence[str],
    event_count: int,
    address_count: int,
    kills: int,
    pause_s: tuple[float, float],
) -> None:
    """Records `event_count` events, shuffled and repeated, while two processes aggregate and are killed and replaced.

    The policy is changed meanwhile. A process is killed `pause_s` seconds after a batch of the hot domain, while it
    aggregates that domain. Asserts that the standings equal the model's, and that the bounce rates count the same
    events.
    """
    rng, model = random.Random(11), AddressBookModel(POLICY.hard_bounces, POLICY.soft_bounce_days)
    events = list(any_events(rng, event_count, address_count))
    model.add_events(events)
    sent_events = [each for each in events for _ in range(rng.randint(1, 5))]
    rng.shuffle(sent_events)
    has_recorded = asyncio.Event()
    with aggregators(arguments, 2) as kill_and_restart:

        async def kill() -> None:
            for _ in range(kills):
                await wait_for_batch(mail, has_recorded)
                await asyncio.sleep(rng.uniform(*pause_s))
                kill_and_restart(await hot_aggregator_id(mail))

        killer = asyncio.create_task(kill())
        starts = range(0, len(sent_events), 1000)
        for start in starts:
            await mail.record(*sent_events[start : start + 1000])
            if start == starts[len(starts) // 2]:
                await change_policy(mail)
        has_recorded.set()
        await killer
        ends_at = time.monotonic() + 600
        while await mail.stores.aggregator.pending_partitions() and time.monotonic() < ends_at:
            await asyncio.sleep(0.1)
    await mail.assert_equals(model)
    assert len(await mail.stores.address_book.policies.versions(mail.org, 10)) == 1
    rates = await mail.stores.bounce_rates._sums_of_organization(mail.org, 0, 10**6)
    domains = [model.domain_standing(domain) for domain in model.domains]
    assert sum(sent for sent, *_ in rates.values()) == sum(each.success + each.soft + each.hard for each in domains)
    assert sum(bounced for _, bounced, _ in rates.values()) == sum(each.soft + each.hard for each in domains)


async def test_killed_aggregators_count_each_event_once(
    mail: MailScenario, mongodb_uri: str, redis_url: str, shared_database: str
) -> None:
    await aggregate_with_kills(mail, [mongodb_uri, redis_url, shared_database], 2_000, 100, kills=3, pause_s=(0, 0.1))


@pytest.mark.soak
@pytest.mark.timeout(0)
@pytest.mark.parametrize(
    ("event_count", "kills", "pause_s"), [(50_000, 20, (0.5, 1.5)), (200_000, 10, (0.5, 3)), (1_000_000, 50, (1, 8))]
)
async def test_many_events_count_once_despite_up_to_50_kills(
    mail: MailScenario,
    mongodb_uri: str,
    redis_url: str,
    shared_database: str,
    event_count: int,
    kills: int,
    pause_s: tuple[float, float],
) -> None:
    await aggregate_with_kills(
        mail, [mongodb_uri, redis_url, shared_database], event_count, event_count // 10, kills, pause_s
    )
