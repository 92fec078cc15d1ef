"""The pools' script on a real Redis, command by command."""

from collections.abc import Iterator

import pytest
import redis

from storage.keys import Keys
from tests.storage.chat.hot_page_scenario import LEASE_MS, Pool, message

SIZE = 5
FIRST, SECOND, THIRD, FOURTH = (message(number, str(number)) for number in (10, 20, 30, 40))


@pytest.fixture
def pool(redis_url: str, database: str) -> Iterator[Pool]:
    """A pool that nobody has built yet."""
    with redis.Redis.from_url(redis_url) as client:
        yield Pool(client, Keys(database).pool("t"), SIZE)


def test_a_pool_that_was_extended_in_order_answers_with_everything(pool: Pool) -> None:
    pool.build(1, [FIRST])
    assert pool.extend(2, 2, [SECOND]) == 1
    assert pool.extend(3, 4, [THIRD, message(20, "edited")]) == 1
    assert pool.texts() == ["10", "edited", "30"]


def test_an_extension_before_its_predecessor_waits_and_nothing_is_answered_meanwhile(pool: Pool) -> None:
    pool.build(1, [FIRST])
    assert pool.extend(4, 4, [FOURTH]) == 0
    assert pool.extend(3, 3, [THIRD]) == 0
    assert pool.read() is None
    assert pool.extend(2, 2, [SECOND]) == 1
    assert pool.texts() == ["10", "20", "30", "40"]


def test_an_extension_that_overlaps_with_what_is_there_drops_the_pool(pool: Pool) -> None:
    pool.build(2, [FIRST, SECOND])
    assert pool.extend(2, 3, [SECOND, THIRD]) == -1
    assert not any(map(pool.redis.exists, pool.keys))


def test_an_extension_that_the_builder_saw_already_leaves_the_pool_as_it_is(pool: Pool) -> None:
    pool.build(3, [FIRST, SECOND, message(10, "edited later")])
    assert pool.extend(1, 2, [FIRST, SECOND]) == 1
    assert pool.texts() == ["edited later", "20"]


def test_extensions_wait_while_the_pool_is_built(pool: Pool) -> None:
    assert pool.begin("a")
    t0 = pool.clock()
    assert pool.extend(2, 2, [SECOND]) == 0
    assert pool.extend(3, 3, [THIRD]) == 0
    assert pool.read() is None
    assert pool.install("a", 2, 0, t0, [FIRST, SECOND])
    assert pool.texts() == ["10", "20", "30"]


def test_the_very_first_extension_waits_for_the_builder_too(pool: Pool) -> None:
    assert pool.begin("a")
    assert pool.extend(1, 1, [FIRST]) == 0
    assert pool.install("a", 0, 0, pool.clock(), [])
    assert pool.texts() == ["10"]


def test_a_builder_who_was_overtaken_installs_nothing(pool: Pool) -> None:
    assert pool.begin("a")
    t0 = pool.clock()
    assert pool.extend(2, 2, [SECOND]) == 0, "told to somebody, and unknown to a"
    assert not pool.begin("b"), "a builds"
    pool.pass_time(1000)
    assert pool.begin("b")
    assert not pool.install("a", 1, 0, t0, [FIRST])
    assert pool.read() is None
    assert pool.install("b", 2, 0, pool.clock(), [FIRST, SECOND])
    assert pool.texts() == ["10", "20"]


def test_nobody_builds_anew_within_the_lease(pool: Pool) -> None:
    pool.build(1, [FIRST])
    assert not pool.begin("b")
    pool.pass_time(LEASE_MS)
    assert pool.begin("b")


def test_a_pool_answers_only_within_its_lease(pool: Pool) -> None:
    pool.build(1, [FIRST])
    assert pool.texts() == ["10"]
    pool.pass_time(LEASE_MS)
    assert pool.read() is None
    assert pool.renew(1, pool.clock())
    assert pool.texts() == ["10"]


def test_a_lease_runs_from_when_the_head_was_about_to_be_read(pool: Pool) -> None:
    pool.build(1, [FIRST])
    assert pool.renew(1, pool.clock() - LEASE_MS)
    assert pool.read() is None
    assert pool.begin("b")
    assert pool.install("b", 1, 0, pool.clock() - LEASE_MS, [FIRST])
    assert pool.read() is None


def test_a_pool_that_is_behind_the_head_is_not_renewed(pool: Pool) -> None:
    pool.build(1, [FIRST])
    assert not pool.renew(2, pool.clock())
    assert pool.extend(3, 3, [THIRD]) == 0
    assert not pool.renew(1, pool.clock()), "it knows of a third"


def test_what_somebody_found_done_already_is_waited_for(pool: Pool) -> None:
    pool.build(1, [FIRST])
    pool.reach(1)
    assert pool.texts() == ["10"]
    pool.reach(2)
    assert pool.read() is None
    assert pool.extend(2, 2, [SECOND]) == 1
    assert pool.texts() == ["10", "20"]


def test_a_pool_that_was_built_from_before_what_somebody_found_done_is_silent(pool: Pool) -> None:
    assert pool.begin("a")
    t0 = pool.clock()
    pool.reach(2)
    assert pool.install("a", 1, 0, t0, [FIRST])
    assert pool.read() is None


def test_a_pool_of_another_run_is_dropped(pool: Pool) -> None:
    pool.build(1, [FIRST])
    pool.set(run="0" * 40)
    assert pool.read() is None
    assert not any(map(pool.redis.exists, pool.keys))


@pytest.mark.parametrize("part", range(3), ids=["meta", "items", "pending"])
def test_a_pool_that_lost_a_part_is_no_pool(pool: Pool, part: int) -> None:
    pool.build(1, [FIRST])
    assert pool.extend(3, 3, [THIRD]) == 0
    pool.redis.delete(pool.keys[part])
    assert pool.read() is None
    pool.extend(2, 2, [SECOND])
    assert pool.read() is None, "nobody has the third any more"


def test_a_lease_from_before_the_clock_was_set_back_is_worth_nothing(pool: Pool) -> None:
    pool.build(1, [FIRST])
    pool.pass_time(-3_600_000)
    assert pool.read() is None
    assert pool.begin("b"), "and a new pool need not wait for the old lease to end"


@pytest.mark.parametrize("part", range(3), ids=["meta", "items", "pending"])
def test_a_key_of_another_type_is_dropped_and_the_pool_can_be_built(pool: Pool, part: int) -> None:
    pool.build(1, [FIRST])
    pool.redis.set(pool.keys[part], "something else")
    assert pool.extend(3, 3, [THIRD]) != 1
    assert pool.read() is None
    pool.run("begin", "b")
    assert pool.begin("c") or pool.install("b", 1, 0, pool.clock(), [FIRST])


@pytest.mark.parametrize("field", ["n", "known", "floor", "count", "lease_ms"])
def test_a_number_that_is_none_drops_the_pool(pool: Pool, field: str) -> None:
    pool.build(1, [FIRST])
    pool.set(**{field: "many"})
    assert pool.read() is None
    assert pool.begin("b")


def test_a_pool_keeps_the_newest_and_knows_where_it_begins(pool: Pool) -> None:
    pool.build(0, [])
    for n in range(1, 9):
        pool.extend(n, n, [message(10 * n, str(n))])
    answer = pool.read()
    assert answer is not None
    assert answer.floor == 40
    assert [each.text for each in answer.messages] == ["4", "5", "6", "7", "8"]
    pool.extend(9, 9, [message(20, "edited")])
    assert pool.texts() == ["4", "5", "6", "7", "8"], "what is below the floor stays out"


def test_what_is_below_the_floor_of_a_pool_that_is_not_full_stays_out_too(pool: Pool) -> None:
    pool.build(3, [THIRD], floor=30)
    assert pool.extend(4, 4, [message(10, "edited")]) == 1
    assert pool.texts() == ["30"]


def test_more_that_wait_than_a_pool_can_remember_drop_it(pool: Pool) -> None:
    pool.build(1, [FIRST])
    for n in range(3, 120):
        pool.extend(n, n, [message(n)])
    assert not pool.redis.exists(pool.keys[2])
    assert pool.read() is None


def test_every_key_goes_away_a_minute_after_the_last_renewal(pool: Pool) -> None:
    pool.build(0, [])
    for n in (1, 2, 4):
        pool.extend(n, n, [message(10 if n < 4 else 20)])
        pool.redis.pexpire(pool.keys[0], 30_000)
    pool.extend(6, 6, [message(30)])
    assert all(0 < int(str(pool.redis.pttl(key))) <= 30_000 for key in pool.keys)
