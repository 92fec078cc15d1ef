"""The Lua script of hot pages on a real Redis, compared with a model: commands and faults in any order."""

from dataclasses import dataclass

import redis
from hypothesis import event, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)

from storage.chat.records import Message
from storage.redis.keys import RedisKeys
from storage.timeline import MAX_TIMESTAMP
from tests.storage.chat.hot_page_scenario import LEASE_MS, HotPage, new_message

SIZE = 5


@dataclass
class HeadReading:
    """The time at which a builder or renewer read the clock, and the position that it read from MongoDB afterwards."""

    builder: str
    t0: int
    n: int | None = None


class HotPageMachine(RuleBasedStateMachine):
    """A model of a topic in MongoDB, with its hot page on a real Redis.

    `history[n]` holds the topic's messages after event n. `last_reported_n` is the number of the last event that was
    reported to a client. No page may be older than that event.
    """

    answers = 0
    client: "redis.Redis"
    prefix: str

    def __init__(self) -> None:
        super().__init__()
        self.page = HotPage(self.client, RedisKeys(self.prefix).hot_page("machine"), SIZE)
        self.page.run("drop")
        self.history: list[dict[int, Message]] = [{}]
        self.last_reported_n = self.builders = 0
        self.extensions: list[tuple[int, int, list[Message]]] = []
        self.building: list[HeadReading] = []
        self.renewals: list[HeadReading] = []
        self.saved_dumps: dict[str, bytes] = {}

    @property
    def n(self) -> int:
        return len(self.history) - 1

    @rule(posts=st.integers(1, 3), edit=st.integers(0, 7))
    def commit(self, posts: int, edit: int) -> None:
        """Commits posts and an edit of a recent message in one transaction."""
        first, messages = self.n + 1, dict(self.history[-1])
        changed = []
        if edit and len(messages) >= edit:
            timestamp = sorted(messages)[-edit]
            changed.append(new_message(timestamp, f"edited by {first}"))
        newest = max(messages, default=0)
        changed += [new_message(newest + 1 + number, "new") for number in range(posts)]
        messages |= {each.timestamp: each for each in changed}
        # No reader sees a position inside a batch, so all positions of the batch have the messages after it.
        self.history += [messages] * len(changed)
        self.extensions.append((first, self.n, changed))

    @precondition(lambda self: self.extensions)
    @rule(index=st.integers(0, 3), repeats=st.booleans())
    def extend(self, index: int, repeats: bool) -> None:
        """Applies an extension. Extensions arrive in any order, possibly more than once."""
        extension = self.extensions[index % len(self.extensions)]
        if not repeats:
            self.extensions.remove(extension)
        self.page.extend(*extension)
        self.last_reported_n = max(self.last_reported_n, extension[1])

    @precondition(lambda self: self.extensions)
    @rule(index=st.integers(0, 3))
    def lose_extension(self, index: int) -> None:
        """Lets a poster that cannot reach Redis wait for the end of the lease. Its extension may still arrive later."""
        self.pass_lease()
        self.last_reported_n = max(self.last_reported_n, self.extensions[index % len(self.extensions)][1])

    @rule()
    def pass_lease(self) -> None:
        """Lets time pass until every lease has ended."""
        self._shift_clock(-LEASE_MS)

    def _shift_clock(self, ms: int) -> None:
        self.page.pass_time(-ms)
        for each in self.building + self.renewals:
            each.t0 += ms

    @rule()
    def require(self) -> None:
        """Simulates a repeated request, which finds its change committed and requires the position of this change."""
        self.page.require(self.n)
        self.last_reported_n = self.n

    @rule()
    def begin(self) -> None:
        self.builders += 1
        if self.page.begin(str(self.builders)):
            self.building.append(HeadReading(str(self.builders), self.page.clock()))

    @precondition(lambda self: self.building)
    @rule(index=st.integers(0, 3))
    def read_mongodb(self, index: int) -> None:
        """Lets a builder read MongoDB."""
        reading = self.building[index % len(self.building)]
        reading.n = self.n if reading.n is None else reading.n

    @precondition(lambda self: any(reading.n is not None for reading in self.building))
    @rule(index=st.integers(0, 3))
    def install(self, index: int) -> None:
        finished = [each for each in self.building if each.n is not None]
        reading = finished[index % len(finished)]
        self.building.remove(reading)
        assert reading.n is not None
        newest = sorted(self.history[reading.n].items())[-SIZE:]
        floor = newest[0][0] if len(newest) == SIZE else 0
        self.page.install(reading.builder, reading.n, floor, reading.t0, [each for _, each in newest])

    @rule()
    def read_head(self) -> None:
        """Lets a renewer read the clock, then the head of the stream."""
        self.renewals.append(HeadReading("", self.page.clock(), self.n))

    @precondition(lambda self: self.renewals)
    @rule(index=st.integers(0, 3))
    def renew(self, index: int) -> None:
        reading = self.renewals.pop(index % len(self.renewals))
        assert reading.n is not None
        self.page.renew(reading.n, reading.t0)

    @initialize()
    def build_first_page(self) -> None:
        """Lets each run begin with a page that answers. Otherwise many runs would check nothing."""
        self.commit(3, 0)
        self.build()

    @rule()
    def build(self) -> None:
        """Lets a builder begin, read MongoDB and install at once."""
        self.begin()
        if self.building:
            self.read_mongodb(-1)
            self.install(-1)

    @rule(fault=st.sampled_from(["clock set back", "saved", "restarted", "meta lost", "items lost", "pending lost"]))
    def fail(self, fault: str) -> None:
        """Redis fails or loses data."""
        match fault.split():
            case ["clock", *_]:
                self._shift_clock(3_600_000)
            case ["saved"]:
                dumps = {key: self.client.dump(key) for key in self.page.keys}
                self.saved_dumps = {key: bytes(dump) for key, dump in dumps.items() if isinstance(dump, bytes)}
            case ["restarted"]:
                self._restore_saved_keys()
            case [part, "lost"]:
                self.client.delete(self.page.keys[["meta", "items", "pending"].index(part)])

    def _restore_saved_keys(self) -> None:
        self.page.run("drop")
        for key, dump in self.saved_dumps.items():
            self.client.restore(key, 60_000, dump)
        # A restarted Redis has another run id.
        self.page.set_fields(run="older")

    @rule(
        low=st.integers(0, 30),
        high=st.one_of(st.just(MAX_TIMESTAMP), st.integers(0, 30)),
        ascending=st.booleans(),
        limit=st.integers(1, 7),
    )
    def read(self, low: int, high: int, ascending: bool, limit: int) -> None:
        self._check(low, high, ascending, limit)

    @invariant()
    def answers_are_never_stale(self) -> None:
        self._check(0, MAX_TIMESTAMP, True, 1000)

    @invariant()
    def page_is_bounded_and_expires(self) -> None:
        assert int(str(self.client.zcard(self.page.keys[1]))) <= SIZE
        assert all(self.client.pttl(key) != -1 for key in self.page.keys)

    def _check(self, low: int, high: int, ascending: bool, limit: int) -> None:
        answer, n = self.page.read(low, high, ascending, limit), self.page.stored_number("n")
        if answer is None:
            return
        assert n is not None
        type(self).answers += 1
        event("answered")
        assert n >= self.last_reported_n, "The page is older than an event that was reported to a client."
        in_range = [each for at, each in sorted(self.history[n].items()) if max(low, answer.floor) <= at <= high]
        assert answer.messages == (in_range if ascending else in_range[::-1])[:limit]


def test_script_never_returns_a_stale_page(redis_url: str, database: str) -> None:
    with redis.Redis.from_url(redis_url) as client:

        class Machine(HotPageMachine):
            pass

        Machine.client, Machine.prefix = client, database
        run_state_machine_as_test(Machine, settings=settings(max_examples=40, stateful_step_count=40, deadline=None))
    assert Machine.answers > 100, "The page answered too rarely."
