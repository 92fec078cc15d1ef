"""The pools' script on a real Redis, command by command, and in every order against a model."""

from collections.abc import Iterator
from dataclasses import dataclass

import pytest
import redis
from hypothesis import event, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule, run_state_machine_as_test

from storage.chat.records import Message
from storage.keys import Keys
from storage.timeline import END
from tests.storage.pool_world import LEASE_MS, Pool, message

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


@dataclass
class Look:
    """Somebody who builds: since when, and what was seen in MongoDB."""

    builder: str
    t0: int
    n: int | None = None


class PoolMachine(RuleBasedStateMachine):
    """A topic in MongoDB, and everything that may happen to its pool.

    `history[n]` are the topic's messages after event n. `told` is the last event that somebody was told is done.
    """

    answers = 0
    client: "redis.Redis"
    prefix: str

    def __init__(self) -> None:
        super().__init__()
        self.pool = Pool(self.client, Keys(self.prefix).pool("machine"), SIZE)
        self.pool.run("drop")
        self.history: list[dict[int, Message]] = [{}]
        self.told = self.builders = 0
        self.extensions: list[tuple[int, int, list[Message]]] = []
        self.looks: list[Look] = []
        self.renewals: list[Look] = []
        self.saved: dict[str, bytes] = {}

    @property
    def n(self) -> int:
        return len(self.history) - 1

    @rule(posts=st.integers(1, 3), edit=st.integers(0, 7))
    def commit(self, posts: int, edit: int) -> None:
        """A batch of posts, and an edit of one of the newest, as one transaction."""
        first, messages = self.n + 1, dict(self.history[-1])
        changed = []
        if edit and len(messages) >= edit:
            timestamp = sorted(messages)[-edit]
            changed.append(message(timestamp, f"edited by {first}"))
        top = max(messages, default=0)
        changed += [message(top + 1 + number, "new") for number in range(posts)]
        messages |= {each.timestamp: each for each in changed}
        # Nobody ever sees a position inside a batch.
        self.history += [messages] * len(changed)
        self.extensions.append((first, self.n, changed))

    @precondition(lambda self: self.extensions)
    @rule(which=st.integers(0, 3), again=st.booleans())
    def extend(self, which: int, again: bool) -> None:
        """An extension arrives, in any order, perhaps more than once."""
        extension = self.extensions[which % len(self.extensions)]
        if not again:
            self.extensions.remove(extension)
        self.pool.extend(*extension)
        self.told = max(self.told, extension[1])

    @precondition(lambda self: self.extensions)
    @rule(which=st.integers(0, 3))
    def lose(self, which: int) -> None:
        """A poster who can't reach Redis waits; what he sent may arrive later."""
        self.wait()
        self.told = max(self.told, self.extensions[which % len(self.extensions)][1])

    @rule()
    def wait(self) -> None:
        """Two seconds go by."""
        self._shift(-LEASE_MS)

    def _shift(self, ms: int) -> None:
        self.pool.pass_time(-ms)
        for each in self.looks + self.renewals:
            each.t0 += ms

    @rule()
    def find_done(self) -> None:
        """Somebody's change was done already."""
        self.pool.reach(self.n)
        self.told = self.n

    @rule()
    def begin(self) -> None:
        self.builders += 1
        if self.pool.begin(str(self.builders)):
            self.looks.append(Look(str(self.builders), self.pool.clock()))

    @precondition(lambda self: self.looks)
    @rule(which=st.integers(0, 3))
    def look(self, which: int) -> None:
        """A builder reads MongoDB."""
        look = self.looks[which % len(self.looks)]
        look.n = self.n if look.n is None else look.n

    @precondition(lambda self: any(look.n is not None for look in self.looks))
    @rule(which=st.integers(0, 3))
    def install(self, which: int) -> None:
        ready = [look for look in self.looks if look.n is not None]
        look = ready[which % len(ready)]
        self.looks.remove(look)
        assert look.n is not None
        newest = sorted(self.history[look.n].items())[-SIZE:]
        floor = newest[0][0] if len(newest) == SIZE else 0
        self.pool.install(look.builder, look.n, floor, look.t0, [each for _, each in newest])

    @rule()
    def compare(self) -> None:
        """Somebody who renews reads the clock, then the head."""
        self.renewals.append(Look("", self.pool.clock(), self.n))

    @precondition(lambda self: self.renewals)
    @rule(which=st.integers(0, 3))
    def renew(self, which: int) -> None:
        look = self.renewals.pop(which % len(self.renewals))
        assert look.n is not None
        self.pool.renew(look.n, look.t0)

    @rule()
    def build(self) -> None:
        """Somebody begins and is done at once."""
        self.begin()
        if self.looks:
            self.look(-1)
            self.install(-1)

    @rule(what=st.sampled_from(["clock set back", "saved", "restarted", "meta lost", "items lost", "pending lost"]))
    def suffer(self, what: str) -> None:
        """What may happen to a Redis."""
        match what.split():
            case ["clock", *_]:
                self._shift(3_600_000)
            case ["saved"]:
                dumps = {key: self.client.dump(key) for key in self.pool.keys}
                self.saved = {key: bytes(dump) for key, dump in dumps.items() if isinstance(dump, bytes)}
            case ["restarted"]:
                self._restart_from_the_file()
            case [part, "lost"]:
                self.client.delete(self.pool.keys[["meta", "items", "pending"].index(part)])

    def _restart_from_the_file(self) -> None:
        self.pool.run("drop")
        for key, dump in self.saved.items():
            self.client.restore(key, 60_000, dump)
        # It is another run that finds what an earlier one left.
        self.pool.set(run="older")

    @rule(
        low=st.integers(0, 30),
        high=st.one_of(st.just(END), st.integers(0, 30)),
        ascending=st.booleans(),
        limit=st.integers(1, 7),
    )
    def read(self, low: int, high: int, ascending: bool, limit: int) -> None:
        self._check(low, high, ascending, limit)

    @invariant()
    def it_answers_with_nothing_old(self) -> None:
        self._check(0, END, True, 1000)

    @invariant()
    def it_stays_small_and_goes_away(self) -> None:
        assert int(str(self.client.zcard(self.pool.keys[1]))) <= SIZE
        assert all(self.client.pttl(key) != -1 for key in self.pool.keys)

    def _check(self, low: int, high: int, ascending: bool, limit: int) -> None:
        answer, n = self.pool.read(low, high, ascending, limit), self.pool.meta("n")
        if answer is None:
            return
        assert n is not None
        type(self).answers += 1
        event("answered")
        assert n >= self.told, "somebody was told of more than this"
        inside = [each for at, each in sorted(self.history[n].items()) if max(low, answer.floor) <= at <= high]
        assert answer.messages == (inside if ascending else inside[::-1])[:limit]


def test_whatever_a_pool_answers_is_the_topic_at_its_position_and_nothing_told_is_missing(
    redis_url: str, database: str
) -> None:
    with redis.Redis.from_url(redis_url) as client:

        class Machine(PoolMachine):
            pass

        Machine.client, Machine.prefix = client, database
        run_state_machine_as_test(Machine, settings=settings(max_examples=80, stateful_step_count=40, deadline=None))
    assert Machine.answers > 100, "it hardly ever answered"
