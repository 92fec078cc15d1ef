"""Each event is counted once: by aggregators with lost locks or killed, in any order and with any repetition."""

import asyncio
import random
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest

from storage.locks import LockLost
from storage.mail.addresses import AddressKeys
from storage.mail.book import AddressBook
from storage.mail.counters import MAX_BOUNCES
from storage.mail.epoch_time import DAY_MS, epoch_ms
from storage.mail.ledger import Ledger, digest, partition
from storage.stores import Stores
from tests.keys import KEY
from tests.product import environment
from tests.storage.mail.events import any_events, hard, ok, soft, today
from tests.storage.mail.model import Model
from tests.storage.mail.organization_mail import OrganizationMail

pytestmark = pytest.mark.anyio


async def test_aggregate_shuffled_repeated_events_equals_model(mail: OrganizationMail) -> None:
    dice, model = random.Random(7), Model()
    events = list(any_events(dice, 800, addresses=40))
    model.take(events)
    sent = [each for each in events for _ in range(dice.randint(1, 3))]
    dice.shuffle(sent)
    # Events with the same id are equal here, so it does not matter which is first.
    for start in range(0, len(sent), 400):
        await mail.record(*sent[start : start + 400])
        await mail.aggregate(limit=dice.choice([1, 7, 50, 1000]) if start < 800 else 1000)
    await mail.assert_equals(model)


async def test_aggregate_hot_domain_is_written_once_per_batch(mail: OrganizationMail) -> None:
    await mail.record(*(ok(f"a{number}@hot.example") for number in range(300)))
    lock = await mail.lock(partition("hot.example"))
    profile = mail.stores.mongo.database
    await profile.command("profile", 2)
    try:
        assert await mail.stores.aggregator.aggregate(lock, partition("hot.example")) == 300
    finally:
        await profile.command("profile", 0)
        await mail.stores.locks.release(lock)
    writes = {"ns": f"{profile.name}.mail_domains", "op": {"$in": ["insert", "update"]}}
    assert await profile["system.profile"].count_documents(writes) == 1
    assert (await mail.domain("hot.example")).success == 300


async def test_aggregate_address_with_40_000_bounces_succeeds(mail: OrganizationMail) -> None:
    await mail.take(soft(message="first"))
    id_ = mail.stores.ledger._keys.id(mail.org, "ann@example.org")
    at = epoch_ms(today() - timedelta(days=1))
    bounces = [[number.to_bytes(8), at // DAY_MS, at, "452 4.2.2"] for number in range(40_000)]
    more = {"by.0.messages": {"$each": bounces}, "by.0.hards": {"$each": [[at, "550 5.1.1"]] * 40_000}}
    await mail.stores.mongo["mail_addresses"].update_one({"_id": id_}, {"$push": more})
    await mail.record(*(soft(message=f"m{number}") for number in range(1000)))
    assert await mail.aggregate() == 1000
    standing = await mail.standing()
    assert (standing.soft_bounce, standing.hard_bounce) == (41_001, 40_000)
    stored = await mail.stores.mongo["mail_addresses"].find_one({"_id": id_})
    assert len(stored["by"][0]["messages"]) == len(stored["by"][0]["hards"]) == MAX_BOUNCES


async def test_event_recorded_behind_checkpoint_is_aggregated(mail: OrganizationMail) -> None:
    place = partition("example.org")
    lock, aggregator = await mail.lock(place), mail.stores.aggregator
    await mail.record(*(ok() for _ in range(4)))
    assert await aggregator.aggregate(lock, place, 2) == 2
    await mail.record(ok(id_="slow"))
    long_ago = {"recorded_at": await mail.stores.mongo.now() - timedelta(minutes=1)}
    id_ = digest(mail.org, "slow", size=16)
    await mail.stores.mongo["mail_ledger"].update_one({"_id": id_}, {"$set": long_ago})
    assert [await aggregator.aggregate(lock, place, 2) for _ in range(3)] == [2, 1, 0]
    await mail.stores.locks.release(lock)
    assert (await mail.standing()).success == 5


async def test_aggregate_with_lost_lock_counts_nothing(mail: OrganizationMail) -> None:
    place = partition("example.org")
    old = await mail.lock(place)
    await mail.stores.locks.release(old)
    new = await mail.lock(place)
    await mail.record(ok())
    assert await mail.stores.aggregator.aggregate(new, place) == 1
    await mail.record(ok())
    with pytest.raises(LockLost):
        await mail.stores.aggregator.aggregate(old, place)
    assert await mail.stores.aggregator.aggregate(new, place) == 1
    await mail.stores.locks.release(new)
    assert (await mail.standing()).success == 2


async def test_concurrent_aggregators_count_each_event_once(mail: OrganizationMail) -> None:
    """All use one lock, so that only the guard in the transaction protects the counters."""
    place = partition("example.org")
    lock = await mail.lock(place)
    await mail.record(*(ok() for _ in range(200)))
    aggregator = mail.stores.aggregator
    await asyncio.gather(*(aggregator.aggregate(lock, place, 40) for _ in range(12)))
    while await aggregator.aggregate(lock, place):
        pass
    await mail.stores.locks.release(lock)
    assert (await mail.standing()).success == 200
    assert (await mail.domain()).success == 200


async def test_address_moves_to_new_key_with_its_counters(mail: OrganizationMail, mail_stores: Stores) -> None:
    await mail.take(hard(days=3), ok("bob@example.org"))
    await mail.record(soft(days=2))
    both = AddressKeys([(2, b"another key of thirty-two bytes!"), (1, KEY)])
    rotated = OrganizationMail(_with_keys(mail_stores, both), mail.org)
    assert (await rotated.standing()).hard_bounce == 1
    await rotated.record(soft(days=1))
    # The waiting event was stored under the old key.
    await rotated.aggregate()
    await mail.take(ok("bob@example.org"), soft(days=0))
    found = await rotated.standing()
    assert (found.hard_bounce, found.soft_bounce) == (1, 3)
    assert (await rotated.standing("bob@example.org")).success == 2
    only_new = OrganizationMail(
        _with_keys(mail_stores, AddressKeys([(2, b"another key of thirty-two bytes!")])), mail.org
    )
    assert (await only_new.standing()).soft_bounce == 3


def _with_keys(stores: Stores, keys: AddressKeys) -> Stores:
    return replace(stores, ledger=Ledger(stores.mongo, keys), address_book=AddressBook(stores.mongo, keys))


@contextmanager
def aggregators(arguments: list[str], number: int) -> Iterator[Callable[[int], None]]:
    """Runs aggregating processes. Yields a function that kills one and starts another in its place."""
    command = [sys.executable, "-P", "-m", "tests.storage.mail.aggregation_process", *arguments]

    def start() -> subprocess.Popen[bytes]:
        return subprocess.Popen(command, cwd=Path(__file__).parents[3], env=environment(), stdout=subprocess.DEVNULL)

    running = [start() for _ in range(number)]

    def kill_one(place: int) -> None:
        running[place].kill()
        running[place].wait()
        running[place] = start()

    try:
        yield kill_one
    finally:
        for each in running:
            each.kill()
            each.wait()


async def flood(
    mail: OrganizationMail, arguments: list[str], number: int, addresses: int, kills: int, pause_s: tuple[float, float]
) -> None:
    dice, model = random.Random(11), Model()
    events = list(any_events(dice, number, addresses))
    model.take(events)
    sent = [each for each in events for _ in range(dice.randint(1, 5))]
    dice.shuffle(sent)
    with aggregators(arguments, 2) as kill_one:

        async def kill() -> None:
            for _ in range(kills):
                await asyncio.sleep(dice.uniform(*pause_s))
                kill_one(dice.randrange(2))

        killer = asyncio.create_task(kill())
        for begin in range(0, len(sent), 1000):
            await mail.record(*sent[begin : begin + 1000])
        await killer
        ends_at = time.monotonic() + 600
        while await mail.stores.aggregator.pending_partitions() and time.monotonic() < ends_at:
            await asyncio.sleep(0.1)
    await mail.assert_equals(model)
    rates = await mail.stores.bounce_rates._of_all(mail.org, 0, 10**6)
    domains = [model.domain(domain) for domain in model.domains]
    assert sum(sent for sent, _ in rates.values()) == sum(each.success + each.soft + each.hard for each in domains)
    assert sum(bounced for _, bounced in rates.values()) == sum(each.soft + each.hard for each in domains)


async def test_killed_aggregators_count_each_event_once(
    mail: OrganizationMail, mongodb_uri: str, redis_url: str, shared_database: str
) -> None:
    await flood(mail, [mongodb_uri, redis_url, shared_database], 12_000, 600, kills=5, pause_s=(0.5, 1.2))


@pytest.mark.soak
@pytest.mark.timeout(0)
@pytest.mark.parametrize(("number", "kills", "pause_s"), [(50_000, 20, (0.5, 1.5)), (1_000_000, 50, (1, 8))])
async def test_million_events_with_50_kills_count_once(
    mail: OrganizationMail,
    mongodb_uri: str,
    redis_url: str,
    shared_database: str,
    number: int,
    kills: int,
    pause_s: tuple[float, float],
) -> None:
    await flood(mail, [mongodb_uri, redis_url, shared_database], number, number // 10, kills, pause_s)
