"""The commands of the Lua script of hot pages on a real Redis."""

from collections.abc import Iterator

import pytest
import redis

from storage.redis.keys import RedisKeys
from tests.storage.chat.hot_page_scenario import LEASE_MS, HotPage, new_message

SIZE = 5
FIRST, SECOND, THIRD, FOURTH = (new_message(number, str(number)) for number in (10, 20, 30, 40))


@pytest.fixture
def hot_page(redis_url: str, database: str) -> Iterator[HotPage]:
    """A hot page that has not been built."""
    with redis.Redis.from_url(redis_url) as client:
        yield HotPage(client, RedisKeys(database).hot_page("t"), SIZE)


def test_page_extended_in_order_returns_everything(hot_page: HotPage) -> None:
    hot_page.build(1, [FIRST])
    assert hot_page.extend(2, 2, [SECOND]) == 1
    assert hot_page.extend(3, 4, [THIRD, new_message(20, "edited")]) == 1
    assert hot_page.texts() == ["10", "edited", "30"]


def test_page_with_a_gap_does_not_answer_until_it_is_filled(hot_page: HotPage) -> None:
    hot_page.build(1, [FIRST])
    assert hot_page.extend(4, 4, [FOURTH]) == 0
    assert hot_page.extend(3, 3, [THIRD]) == 0
    assert hot_page.read() is None
    assert hot_page.extend(2, 2, [SECOND]) == 1
    assert hot_page.texts() == ["10", "20", "30", "40"]


def test_overlapping_extension_drops_the_page(hot_page: HotPage) -> None:
    hot_page.build(2, [FIRST, SECOND])
    assert hot_page.extend(2, 3, [SECOND, THIRD]) == -1
    assert not any(map(hot_page.redis.exists, hot_page.keys))


def test_extension_read_by_the_builder_changes_nothing(hot_page: HotPage) -> None:
    hot_page.build(3, [FIRST, SECOND, new_message(10, "edited later")])
    assert hot_page.extend(1, 2, [FIRST, SECOND]) == 1
    assert hot_page.texts() == ["edited later", "20"]


def test_extensions_during_building_are_applied_after_install(hot_page: HotPage) -> None:
    assert hot_page.begin("a")
    t0 = hot_page.clock()
    assert hot_page.extend(2, 2, [SECOND]) == 0
    assert hot_page.extend(3, 3, [THIRD]) == 0
    assert hot_page.read() is None
    assert hot_page.install("a", 2, 0, t0, [FIRST, SECOND])
    assert hot_page.texts() == ["10", "20", "30"]


def test_first_extension_during_building_is_applied(hot_page: HotPage) -> None:
    assert hot_page.begin("a")
    assert hot_page.extend(1, 1, [FIRST]) == 0
    assert hot_page.install("a", 0, 0, hot_page.clock(), [])
    assert hot_page.texts() == ["10"]


def test_overtaken_builder_installs_nothing(hot_page: HotPage) -> None:
    assert hot_page.begin("a")
    t0 = hot_page.clock()
    assert hot_page.extend(2, 2, [SECOND]) == 0, "Builder a has not read this event, which was reported to a client."
    assert not hot_page.begin("b"), "Builder a has not finished."
    hot_page.pass_time(1000)
    assert hot_page.begin("b")
    assert not hot_page.install("a", 1, 0, t0, [FIRST])
    assert hot_page.read() is None
    assert hot_page.install("b", 2, 0, hot_page.clock(), [FIRST, SECOND])
    assert hot_page.texts() == ["10", "20"]


def test_page_is_not_rebuilt_within_its_lease(hot_page: HotPage) -> None:
    hot_page.build(1, [FIRST])
    assert not hot_page.begin("b")
    hot_page.pass_time(LEASE_MS)
    assert hot_page.begin("b")


def test_page_answers_only_within_its_lease(hot_page: HotPage) -> None:
    hot_page.build(1, [FIRST])
    assert hot_page.texts() == ["10"]
    hot_page.pass_time(LEASE_MS)
    assert hot_page.read() is None
    assert hot_page.renew(1, hot_page.clock())
    assert hot_page.texts() == ["10"]


def test_lease_runs_from_before_the_head_was_read(hot_page: HotPage) -> None:
    hot_page.build(1, [FIRST])
    assert hot_page.renew(1, hot_page.clock() - LEASE_MS)
    assert hot_page.read() is None
    assert hot_page.begin("b")
    assert hot_page.install("b", 1, 0, hot_page.clock() - LEASE_MS, [FIRST])
    assert hot_page.read() is None


def test_page_behind_the_head_is_not_renewed(hot_page: HotPage) -> None:
    hot_page.build(1, [FIRST])
    assert not hot_page.renew(2, hot_page.clock())
    assert hot_page.extend(3, 3, [THIRD]) == 0
    assert not hot_page.renew(1, hot_page.clock()), "The page has a pending third event."


def test_page_does_not_answer_before_the_required_position(hot_page: HotPage) -> None:
    hot_page.build(1, [FIRST])
    hot_page.require(1)
    assert hot_page.texts() == ["10"]
    hot_page.require(2)
    assert hot_page.read() is None
    assert hot_page.extend(2, 2, [SECOND]) == 1
    assert hot_page.texts() == ["10", "20"]


def test_page_built_before_required_position_does_not_answer(hot_page: HotPage) -> None:
    assert hot_page.begin("a")
    t0 = hot_page.clock()
    hot_page.require(2)
    assert hot_page.install("a", 1, 0, t0, [FIRST])
    assert hot_page.read() is None


def test_page_of_another_redis_run_is_dropped(hot_page: HotPage) -> None:
    hot_page.build(1, [FIRST])
    hot_page.set_fields(run="0" * 40)
    assert hot_page.read() is None
    assert not any(map(hot_page.redis.exists, hot_page.keys))


@pytest.mark.parametrize("key", range(3), ids=["meta", "items", "pending"])
def test_page_that_lost_a_key_does_not_answer(hot_page: HotPage, key: int) -> None:
    hot_page.build(1, [FIRST])
    assert hot_page.extend(3, 3, [THIRD]) == 0
    hot_page.redis.delete(hot_page.keys[key])
    assert hot_page.read() is None
    hot_page.extend(2, 2, [SECOND])
    assert hot_page.read() is None, "The third extension was lost with the key."


def test_lease_granted_before_the_clock_went_back_is_void(hot_page: HotPage) -> None:
    hot_page.build(1, [FIRST])
    hot_page.pass_time(-3_600_000)
    assert hot_page.read() is None
    assert hot_page.begin("b"), "A new page waited for the void lease to end."


@pytest.mark.parametrize("key", range(3), ids=["meta", "items", "pending"])
def test_key_of_another_type_is_dropped_and_rebuilt(hot_page: HotPage, key: int) -> None:
    hot_page.build(1, [FIRST])
    hot_page.redis.set(hot_page.keys[key], "something else")
    assert hot_page.extend(3, 3, [THIRD]) != 1
    assert hot_page.read() is None
    assert hot_page.begin("b")
    assert hot_page.install("b", 3, 0, hot_page.clock(), [FIRST, SECOND, THIRD])
    assert hot_page.texts() == ["10", "20", "30"]


@pytest.mark.parametrize("field", ["n", "known", "floor", "count", "lease_ms"])
def test_malformed_number_drops_the_page(hot_page: HotPage, field: str) -> None:
    hot_page.build(1, [FIRST])
    hot_page.set_fields(**{field: "many"})
    assert hot_page.read() is None
    assert hot_page.begin("b")


def test_page_keeps_the_newest_messages_and_its_floor(hot_page: HotPage) -> None:
    hot_page.build(0, [])
    for n in range(1, 9):
        hot_page.extend(n, n, [new_message(10 * n, str(n))])
    answer = hot_page.read()
    assert answer is not None
    assert answer.floor == 40
    assert [each.text for each in answer.messages] == ["4", "5", "6", "7", "8"]
    hot_page.extend(9, 9, [new_message(20, "edited")])
    assert hot_page.texts() == ["4", "5", "6", "7", "8"], "A message below the floor was added."


def test_message_below_the_floor_stays_out_of_a_page_with_room(hot_page: HotPage) -> None:
    hot_page.build(3, [THIRD], floor=30)
    assert hot_page.extend(4, 4, [new_message(10, "edited")]) == 1
    assert hot_page.texts() == ["30"]


def test_too_many_pending_extensions_drop_the_page(hot_page: HotPage) -> None:
    hot_page.build(1, [FIRST])
    for n in range(3, 120):
        hot_page.extend(n, n, [new_message(n)])
    assert not hot_page.redis.exists(hot_page.keys[2])
    assert hot_page.read() is None


def test_extension_does_not_postpone_the_expiry_of_keys(hot_page: HotPage) -> None:
    hot_page.build(0, [])
    for n in (1, 2, 4):
        hot_page.extend(n, n, [new_message(10 if n < 4 else 20)])
        hot_page.redis.pexpire(hot_page.keys[0], 30_000)
    hot_page.extend(6, 6, [new_message(30)])
    assert all(0 < int(str(hot_page.redis.pttl(key))) <= 30_000 for key in hot_page.keys)
