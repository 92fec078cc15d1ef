"""A topic compared with a model: any sequence of posts, repetitions, edits, deletions, reactions and pages."""

import asyncio
from collections import Counter
from collections.abc import Coroutine, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, ClassVar, TypeVar

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import Bundle, RuleBasedStateMachine, multiple, rule
from hypothesis.stateful import run_state_machine_as_test as run_machine

from storage.chat.records import Message
from storage.chat.roles import Moderator
from storage.errors import Conflict, DomainError, Forbidden, NotFound
from storage.identity.roles import Role
from storage.ids import MessageKey
from storage.mongo import Driver
from storage.stores import Stores, open_stores
from storage.timeline import NOW, timeline_range
from tests.storage.timeline_rule import PageArguments, actual_page, expected_around, expected_page
from tests.storage.topic_scenario import TopicScenario, create_topic_scenario, keep_all
from tests.waiting import poll_until_true

Result = TypeVar("Result")

PEOPLE = ("ann", "bob", "cyd")
USERS = st.sampled_from(PEOPLE)
TEXTS = st.sampled_from(["", "hello", "狼煙", "see https://example.com"])
EMOJIS = st.sampled_from(["👍", "🎉", "👩‍👧"])
KEYS = st.sampled_from([None, None, "k1", "k2"])
LIMITS = st.integers(1, 6)


@dataclass(frozen=True)
class ProcessStorage:
    """The storage of one process, and the event loop that it runs on."""

    runner: asyncio.Runner
    stores: Stores


@dataclass
class ModelMessage:
    """A message of the model."""

    author: str
    text: str
    is_deleted: bool = False
    reactions: set[tuple[str, str]] = field(default_factory=set)


class MessageMachine(RuleBasedStateMachine):
    """Applies each rule to the topic and to the model, and compares the results."""

    process: ClassVar[ProcessStorage]
    posted = Bundle("posted")

    def __init__(self) -> None:
        super().__init__()
        self.run = self.process.runner.run
        self.scenario: TopicScenario = self.run(create_topic_scenario(self.process.stores))
        self.messages = self.process.stores.messages
        organization_id, sign_in = self.scenario.organization_id, self.process.stores.users.sign_in
        for each in PEOPLE:
            self.run(sign_in(organization_id, each, (Role.ADMIN,), None, None))
        self.model: dict[int, ModelMessage] = {}
        self.keys: dict[tuple[str, str], tuple[str, int]] = {}
        self.event_count = 0
        self.read_timestamps: list[int] = []

    @property
    def timeline(self) -> list[int]:
        return list(self.model)

    def key(self, timestamp: int) -> MessageKey:
        return MessageKey(self.scenario.topic.id, timestamp)

    @rule(target=posted, posts=st.lists(st.tuples(USERS, TEXTS, KEYS), min_size=1, max_size=3))
    def post(self, posts: list[tuple[str, str, str | None]]) -> Any:
        """Posts concurrently. The posts share a batch, and may repeat each other's keys."""
        work = (self.scenario.post(text, author, key) for author, text, key in posts)
        outcomes = self.run(gather_results(work))
        return multiple(*(self.check_post(*post, outcome) for post, outcome in zip(posts, outcomes, strict=True)))

    def check_post(self, author: str, text: str, key: str | None, outcome: Message | DomainError) -> int:
        earlier = self.keys.get((author, key)) if key else None
        if earlier is None:
            assert isinstance(outcome, Message)
            return self.add(author, text, key, outcome)
        earlier_text, timestamp = earlier
        if earlier_text != text:
            assert isinstance(outcome, Conflict)
        else:
            self.check_message(timestamp, outcome)
        return timestamp

    def add(self, author: str, text: str, key: str | None, message: Message) -> int:
        """Asserts that the timestamp exceeds every timestamp that was stored or returned, and adds the message."""
        assert message.timestamp > max([0, *self.model, *self.read_timestamps])
        assert (message.author_id, message.text, message.deleted_at) == (author, text, None)
        self.model[message.timestamp] = ModelMessage(author, text)
        self.event_count += 1
        if key:
            self.keys[author, key] = text, message.timestamp
        return message.timestamp

    @rule(timestamp=posted, editor=USERS, text=TEXTS)
    def edit(self, timestamp: int, editor: str, text: str) -> None:
        model_message = self.model[timestamp]
        outcome = self.attempt(self.messages.edit(self.key(timestamp), editor, text, ()))
        if model_message.is_deleted:
            assert isinstance(outcome, Conflict)
        elif editor != model_message.author:
            assert isinstance(outcome, Forbidden)
        elif not text:
            assert isinstance(outcome, DomainError)
        else:
            model_message.text = text
            self.event_count += 1
            self.check_message(timestamp, outcome)

    @rule(timestamp=posted, deleter=USERS, is_admin=st.booleans())
    def delete(self, timestamp: int, deleter: str, is_admin: bool) -> None:
        model_message = self.model[timestamp]
        outcome = self.attempt(self.messages.delete(self.key(timestamp), Moderator(deleter, is_admin)))
        # Ann owns the community.
        if not is_admin and deleter not in (model_message.author, "ann"):
            assert isinstance(outcome, Forbidden)
            return
        self.event_count += not model_message.is_deleted
        model_message.text, model_message.is_deleted, model_message.reactions = "", True, set()
        self.check_message(timestamp, outcome)

    @rule(timestamp=posted, user=USERS, emoji=EMOJIS)
    def react(self, timestamp: int, user: str, emoji: str) -> None:
        model_message, key = self.model[timestamp], self.key(timestamp)
        outcome = self.attempt(self.messages.add_reaction(self.scenario.organization_id, key, user, emoji))
        if model_message.is_deleted:
            assert isinstance(outcome, Conflict)
            return
        self.event_count += (emoji, user) not in model_message.reactions
        model_message.reactions.add((emoji, user))
        self.check_message(timestamp, outcome)

    @rule(timestamp=posted, user=USERS, emoji=EMOJIS)
    def unreact(self, timestamp: int, user: str, emoji: str) -> None:
        model_message, key = self.model[timestamp], self.key(timestamp)
        outcome = self.attempt(self.messages.remove_reaction(self.scenario.organization_id, key, user, emoji))
        self.event_count += (emoji, user) in model_message.reactions
        model_message.reactions.discard((emoji, user))
        self.check_message(timestamp, outcome)

    @rule(offset=st.integers(1, 10**9), user=USERS)
    def find_missing_message(self, offset: int, user: str) -> None:
        missing = self.key(max([0, *self.model]) + offset)
        assert isinstance(self.attempt(self.messages.delete(missing, Moderator(user, is_admin=True))), NotFound)
        assert self.run(self.messages.find(missing)) is None

    @rule(data=st.data(), limit=LIMITS, inclusive=st.booleans(), blocked=st.sets(USERS, max_size=2))
    def page(self, data: st.DataObject, limit: int, inclusive: bool, blocked: set[str]) -> None:
        near = sorted({t + step for t in self.model for step in (-1, 0, 1)}) or [5]
        bounds = st.none() | st.sampled_from(near)
        oldest = data.draw(bounds, "oldest")
        latest = data.draw(st.just(NOW) | (bounds if oldest is not None else st.sampled_from(near)), "latest")
        arguments = PageArguments(oldest, latest, limit, inclusive)
        page = self.run(self.messages.page(self.scenario.topic.id, arguments.range, frozenset(blocked)))
        visible = [t for t, model_message in self.model.items() if model_message.author not in blocked]
        assert actual_page(page, [m.timestamp for m in page.items]) == expected_page(visible, arguments)
        for message in page.items:
            self.check_message(message.timestamp, message)

    @rule(data=st.data(), limit=LIMITS, blocked=st.sets(USERS, max_size=2))
    def around(self, data: st.DataObject, limit: int, blocked: set[str]) -> None:
        timestamp = data.draw(st.sampled_from([t + step for t in self.model for step in (-1, 0, 1)] or [5]))
        page = self.run(self.messages.around(self.scenario.topic.id, timestamp, limit, frozenset(blocked)))
        visible = [t for t, model_message in self.model.items() if model_message.author not in blocked]
        assert actual_page(page, [m.timestamp for m in page.items]) == expected_around(visible, timestamp, limit)
        for message in page.items:
            self.check_message(message.timestamp, message)

    @rule(limit=LIMITS, posts=st.integers(0, 3))
    def read_next_page_during_posts(self, limit: int, posts: int) -> None:
        """Asserts that a reader who pages by `oldest` misses no message that is posted meanwhile."""
        cursor = self.read_timestamps[-1] if self.read_timestamps else 0
        next_range = timeline_range(oldest=cursor, limit=limit, inclusive=False)
        reading = self.messages.page(self.scenario.topic.id, next_range)
        page, messages = self.run(
            gather_both(reading, gather_results(self.scenario.post("more") for _ in range(posts)))
        )
        self.read_timestamps += [message.timestamp for message in page.items]
        for message in sorted(messages, key=lambda message: message.timestamp):
            self.model[message.timestamp] = ModelMessage("ann", "more")
            self.event_count += 1
        assert self.read_timestamps == self.timeline[: len(self.read_timestamps)]

    def attempt(self, work: Coroutine[Any, Any, Message]) -> Message | DomainError:
        return self.run(result_or_error(work))

    def check_message(self, timestamp: int, message: Message | DomainError) -> None:
        model_message = self.model[timestamp]
        assert isinstance(message, Message)
        assert (message.timestamp, message.author_id, message.text) == (
            timestamp,
            model_message.author,
            model_message.text,
        )
        assert (message.deleted_at is not None) == model_message.is_deleted
        assert dict(message.reaction_counts) == Counter(emoji for emoji, _ in model_message.reactions)

    def teardown(self) -> None:
        self.run(self.check_log())
        self.run(self.check_received_reactions())

    async def check_log(self) -> None:
        events = await self.scenario.events()
        assert [event["_id"]["n"] for event in events] == list(range(1, self.event_count + 1))
        assert [event["ref"] for event in events if event["kind"] == "MessagePosted"] == self.timeline
        assert [message["_id"]["ts"] for message in await self.scenario.messages()] == self.timeline

    async def check_received_reactions(self) -> None:
        """Asserts that each author eventually receives the reactions of all other users."""
        for author in ("ann", "bob", "cyd"):
            expected = {
                (timestamp, emoji, user)
                for timestamp, model_message in self.model.items()
                for emoji, user in model_message.reactions
                if model_message.author == author != user
            }
            assert await poll_until_true(lambda: self.has_received(author, expected)), (author, expected)  # noqa: B023

    async def has_received(self, author: str, expected: set[tuple[int, str, str]]) -> bool:
        everything = timeline_range(latest=NOW, limit=999)
        reactions = self.scenario.stores.reactions
        page = await reactions.received(self.scenario.organization_id, author, everything, frozenset(), keep_all)
        return {(item.message.timestamp, item.emoji, item.user_id) for item in page.items} == expected


async def result_or_error(work: Coroutine[Any, Any, Message]) -> Message | DomainError:
    try:
        return await work
    except DomainError as error:
        return error


async def gather_results(work: Iterator[Coroutine[Any, Any, Message]] | Any) -> list[Any]:
    return list(await asyncio.gather(*(result_or_error(each) for each in work)))


async def gather_both(one: Coroutine[Any, Any, Any], other: Coroutine[Any, Any, Any]) -> tuple[Any, Any]:
    first, second = await asyncio.gather(one, other)
    return first, second


@contextmanager
def machine(mongodb_uri: str, redis_url: str, database: str, driver: Driver) -> Iterator[type[MessageMachine]]:
    """Yields the machine's class with stores on a separate event loop, because Hypothesis is synchronous."""
    with asyncio.Runner() as runner:
        stores_context = open_stores(mongodb_uri, redis_url, database, driver, is_prepared=True)
        stores = runner.run(stores_context.__aenter__())
        try:
            yield type("BoundMachine", (MessageMachine,), {"process": ProcessStorage(runner, stores)})
        finally:
            runner.run(stores_context.__aexit__(None, None, None))


def machine_settings(examples: int, steps: int) -> settings:
    return settings(
        max_examples=examples,
        stateful_step_count=steps,
        deadline=None,
        suppress_health_check=list(HealthCheck),
        print_blob=True,
    )


def test_topic_agrees_with_model_in_any_history(
    mongodb_uri: str, redis_url: str, database: str, mongo_driver: Driver
) -> None:
    with machine(mongodb_uri, redis_url, database, mongo_driver) as bound_machine:
        run_machine(bound_machine, settings=machine_settings(16, 25))


@pytest.mark.soak
def test_topic_agrees_with_model_in_any_long_history(
    mongodb_uri: str, redis_url: str, database: str, mongo_driver: Driver
) -> None:
    with machine(mongodb_uri, redis_url, database, mongo_driver) as bound_machine:
        run_machine(bound_machine, settings=machine_settings(1000, 100))
