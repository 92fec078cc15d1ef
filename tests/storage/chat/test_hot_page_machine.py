"""The pools' script on a real Redis against a model: everything that may happen to a pool, in any order."""

from dataclasses import dataclass

import redis
from hypothesis import event, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule, run_state_machine_as_test

from storage.chat.records import Message
from storage.keys import Keys
from storage.timeline import END
from tests.storage.chat.hot_page_scenario import LEASE_MS, Pool, message

SIZE = 5


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
        run_state_machine_as_test(Machine, settings=settings(max_examples=40, stateful_step_count=40, deadline=None))
    assert Machine.answers > 100, "it hardly ever answered"
