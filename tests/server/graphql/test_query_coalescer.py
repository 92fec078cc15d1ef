"""The query coalescer: which requests share an execution, and which requests wait for the next one."""

import asyncio
from collections.abc import Callable, Sequence
from collections.abc import Set as AbstractSet
from contextlib import suppress

import pytest
from starlette.responses import Response

import server.graphql.coalescing
from server.graphql.coalescing import ANSWERS, MAX_REQUESTS, QueryCoalescer, SharedAnswer
from storage.errors import RateLimited, Unavailable
from storage.identity.records import User

pytestmark = pytest.mark.anyio


def user(id_: str) -> User:
    return User(id_, id_, id_, "org", (), 0, 0)


ANN, BOB = user("ann"), user("bob")
NO_VIEWERS: frozenset[str] = frozenset()


class HeldExecution:
    """An execution that waits until it is released, and records the viewers that each run serves."""

    def __init__(self, excluded_ids: AbstractSet[str] = NO_VIEWERS) -> None:
        self.audiences: list[frozenset[str]] = []
        self.released = asyncio.Event()
        self.respond: Callable[[], Response] = Response
        self._excluded_ids = excluded_ids

    async def __call__(self, viewers: Sequence[User]) -> SharedAnswer:
        ids = frozenset(each.id for each in viewers)
        assert len(ids) == len(viewers)
        self.audiences.append(ids)
        await self.released.wait()
        return SharedAnswer(self.respond(), self._excluded_ids if len(ids) > 1 else NO_VIEWERS)


async def start_requests(
    coalescer: QueryCoalescer, execution: HeldExecution, *viewers: User
) -> list["asyncio.Task[Response]"]:
    """Starts one request for each viewer, and returns once all of them wait for an answer."""
    tasks = [asyncio.create_task(coalescer.answer("query", viewer, execution)) for viewer in viewers]
    for _ in range(3):
        await asyncio.sleep(0)
    return tasks


async def test_request_during_an_execution_waits_for_the_next() -> None:
    coalescer, execution = QueryCoalescer(), HeldExecution()
    (first,) = await start_requests(coalescer, execution, ANN)
    later = await start_requests(coalescer, execution, BOB, ANN, BOB)
    assert execution.audiences == [{"ann"}]
    execution.released.set()
    responses = await asyncio.gather(first, *later)
    assert execution.audiences == [{"ann"}, {"ann", "bob"}]
    assert responses[0] is not responses[1]
    assert len({id(response) for response in responses[1:]}) == 1


async def test_excluded_viewer_gets_separate_execution() -> None:
    coalescer, execution = QueryCoalescer(), HeldExecution({"bob"})
    tasks = [*await start_requests(coalescer, execution, ANN), *await start_requests(coalescer, execution, ANN, BOB)]
    execution.released.set()
    responses = await asyncio.gather(*tasks)
    assert execution.audiences == [{"ann"}, {"ann", "bob"}, {"bob"}]
    assert len({id(response) for response in responses}) == 3


async def test_failure_reaches_only_the_requests_of_its_execution() -> None:
    coalescer, execution = QueryCoalescer(), HeldExecution()

    def fail() -> Response:
        execution.respond = Response
        raise OSError("gone")

    execution.respond = fail
    first = await start_requests(coalescer, execution, ANN, BOB)
    later = await start_requests(coalescer, execution, BOB)
    execution.released.set()
    results = await asyncio.gather(*first, *later, return_exceptions=True)
    assert [type(each) for each in results] == [OSError, OSError, Response]
    assert isinstance(await coalescer.answer("query", ANN, execution), Response)


async def test_cancelled_request_is_left_out_and_harms_no_other() -> None:
    coalescer, execution = QueryCoalescer(), HeldExecution()
    (first,) = await start_requests(coalescer, execution, ANN)
    cancelled, remaining = await start_requests(coalescer, execution, ANN, BOB)
    for task in (first, cancelled):
        task.cancel()
        with suppress(asyncio.CancelledError):
            await task
    execution.released.set()
    assert isinstance(await remaining, Response)
    assert execution.audiences == [{"ann"}, {"bob"}]


async def test_failure_reaches_other_requests_after_one_is_cancelled() -> None:
    coalescer, execution = QueryCoalescer(), HeldExecution()

    def fail() -> Response:
        raise OSError("gone")

    execution.respond = fail
    cancelled, remaining = await start_requests(coalescer, execution, ANN, BOB)
    cancelled.cancel()
    execution.released.set()
    outcomes = await asyncio.gather(cancelled, remaining, return_exceptions=True)
    assert [type(each) for each in outcomes] == [asyncio.CancelledError, OSError]


async def test_answers_are_counted_by_outcome() -> None:
    def counts() -> dict[str, float]:
        return {each: ANSWERS.labels(each)._value.get() for each in ("executed", "shared", "excluded")}

    coalescer, execution, before = QueryCoalescer(), HeldExecution(), counts()
    execution.released.set()
    await asyncio.gather(*await start_requests(coalescer, execution, ANN, BOB))
    assert {each: counts()[each] - before[each] for each in before} == {"executed": 1, "shared": 1, "excluded": 0}


async def test_cancelled_requests_cause_no_execution() -> None:
    coalescer, execution = QueryCoalescer(), HeldExecution()
    (first,) = await start_requests(coalescer, execution, ANN)
    cancelled = await start_requests(coalescer, execution, ANN, BOB)
    for task in cancelled:
        task.cancel()
    execution.released.set()
    await asyncio.gather(first, *cancelled, return_exceptions=True)
    assert isinstance(await coalescer.answer("query", BOB, execution), Response)
    assert execution.audiences == [{"ann"}, {"bob"}]


async def test_cancelled_execution_leaves_no_request_waiting() -> None:
    coalescer, execution = QueryCoalescer(), HeldExecution()

    def raise_cancelled() -> Response:
        raise asyncio.CancelledError

    execution.respond = raise_cancelled
    tasks = [*await start_requests(coalescer, execution, ANN), *await start_requests(coalescer, execution, BOB)]
    execution.released.set()
    results = await asyncio.gather(*tasks, return_exceptions=True)
    assert [type(each) for each in results] == [asyncio.CancelledError] * 2
    execution.respond = Response
    assert isinstance(await coalescer.answer("query", ANN, execution), Response)


class TimedExecution(HeldExecution):
    """An execution that takes a number of seconds."""

    def __init__(self, seconds: float) -> None:
        super().__init__()
        self._seconds = seconds

    async def __call__(self, viewers: Sequence[User]) -> SharedAnswer:
        self.audiences.append(frozenset(each.id for each in viewers))
        await asyncio.sleep(self._seconds)
        return SharedAnswer(Response(), NO_VIEWERS)


async def test_repeating_readers_share_each_execution() -> None:
    """Without the regroup window, the first reader to return would get an execution alone, while all others wait."""
    coalescer, execution, repetitions = QueryCoalescer(), TimedExecution(0.02), 6
    readers = [user(str(number)) for number in range(10)]

    async def read(reader: User) -> None:
        for _ in range(repetitions):
            assert await coalescer.answer("query", reader, execution) is not None
            # Each reader pauses for a different time.
            await asyncio.sleep(0.0005 * int(reader.id))

    await asyncio.gather(*map(read, readers))
    # Without the regroup window there would be twice as many executions.
    assert len(execution.audiences) <= 1.5 * repetitions


async def test_single_returning_reader_gets_separate_execution() -> None:
    coalescer, execution = QueryCoalescer(), TimedExecution(0.05)
    await asyncio.gather(*(coalescer.answer("query", each, execution) for each in (ANN, BOB)))
    assert await coalescer.answer("query", ANN, execution) is not None
    assert [len(each) for each in execution.audiences] == [2, 1]


FOREVER_S = 60.0
"""Longer than any of the tests takes."""


async def share_execution_and_return(
    coalescer: QueryCoalescer,
    execution: HeldExecution,
    viewers: Sequence[User],
    returning_viewers: Sequence[User],
    iterations: int = 10,
) -> None:
    """Lets all viewers share an execution. Then the returning viewers repeat the request, one after another.

    Each request is made `iterations` iterations of the event loop after the request before it.
    """
    first = await start_requests(coalescer, execution, ANN)
    shared = await start_requests(coalescer, execution, *viewers)
    execution.released.set()
    await asyncio.gather(*first, *shared)

    async def request_after(iterations_before: int, viewer: User) -> Response:
        for _ in range(iterations_before):
            await asyncio.sleep(0)
        return await coalescer.answer("query", viewer, execution)

    async with asyncio.timeout(FOREVER_S / 4):
        await asyncio.gather(
            *(request_after(iterations * number, each) for number, each in enumerate(returning_viewers))
        )


@pytest.mark.parametrize("count", [2, 5])
async def test_regroup_window_ends_when_all_answered_viewers_wait(monkeypatch: pytest.MonkeyPatch, count: int) -> None:
    monkeypatch.setattr(server.graphql.coalescing, "REGROUP_WINDOW_S", FOREVER_S)
    monkeypatch.setattr(server.graphql.coalescing, "REGROUP_POLL_S", FOREVER_S)
    coalescer, execution = QueryCoalescer(), HeldExecution()
    viewers = [user(str(number)) for number in range(count)]
    await share_execution_and_return(coalescer, execution, viewers, viewers)
    assert [len(each) for each in execution.audiences] == [1, count, count]


async def test_request_of_new_viewer_shares_regrouped_execution(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(server.graphql.coalescing, "REGROUP_WINDOW_S", FOREVER_S)
    monkeypatch.setattr(server.graphql.coalescing, "REGROUP_POLL_S", FOREVER_S)
    coalescer, execution = QueryCoalescer(), HeldExecution()
    viewers = [user(str(number)) for number in range(5)]
    await share_execution_and_return(coalescer, execution, viewers, [])
    async with asyncio.timeout(FOREVER_S / 4):
        await asyncio.gather(*await start_requests(coalescer, execution, *viewers, BOB))
    assert [len(each) for each in execution.audiences] == [1, 5, 6]


async def test_regroup_window_ends_after_two_polls_without_request(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(server.graphql.coalescing, "REGROUP_WINDOW_S", FOREVER_S)
    coalescer, execution = QueryCoalescer(), HeldExecution()
    viewers = [user(str(number)) for number in range(5)]
    await share_execution_and_return(coalescer, execution, viewers, viewers[:1])
    assert [len(each) for each in execution.audiences] == [1, 5, 1]


async def test_regroup_window_stays_open_while_requests_arrive(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(server.graphql.coalescing, "REGROUP_WINDOW_S", FOREVER_S)
    monkeypatch.setattr(server.graphql.coalescing, "REGROUP_POLL_S", 0.0)
    coalescer, execution = QueryCoalescer(), HeldExecution()
    viewers = [user(str(number)) for number in range(20)]
    await share_execution_and_return(coalescer, execution, viewers, viewers, iterations=1)
    assert [len(each) for each in execution.audiences] == [1, 20, 20]


async def test_regroup_window_of_zero_delays_no_request(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(server.graphql.coalescing, "REGROUP_WINDOW_S", 0.0)
    monkeypatch.setattr(server.graphql.coalescing, "REGROUP_POLL_S", FOREVER_S)
    coalescer, execution = QueryCoalescer(), HeldExecution()
    viewers = [user(str(number)) for number in range(5)]
    await share_execution_and_return(coalescer, execution, viewers, viewers[:3])
    assert [len(each) for each in execution.audiences] == [1, 5, 1, 1, 1]


async def test_requests_over_the_limit_wait_for_another_execution() -> None:
    coalescer, execution = QueryCoalescer(), HeldExecution()
    many = [user(str(number)) for number in range(MAX_REQUESTS + 2)]
    tasks = await start_requests(coalescer, execution, ANN)
    tasks += await start_requests(coalescer, execution, *many)
    execution.released.set()
    assert all(await asyncio.gather(*tasks))
    assert [len(each) for each in execution.audiences] == [1, MAX_REQUESTS, 2]


async def test_unavailable_service_fails_waiting_requests_at_once() -> None:
    coalescer, execution = QueryCoalescer(), HeldExecution()

    def fail() -> Response:
        raise Unavailable("No primary.")

    execution.respond = fail
    started = await start_requests(coalescer, execution, ANN)
    waiting = await start_requests(coalescer, execution, ANN, BOB)
    execution.released.set()
    outcomes = await asyncio.gather(*started, *waiting, return_exceptions=True)
    assert [type(outcome) for outcome in outcomes] == [Unavailable] * 3
    assert execution.audiences == [{"ann"}]


async def test_request_over_the_limit_of_waiting_requests_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(server.graphql.coalescing, "MAX_WAITING", 1)
    coalescer, execution = QueryCoalescer(), HeldExecution()
    admitted = await start_requests(coalescer, execution, ANN)
    admitted += await start_requests(coalescer, execution, ANN)
    with pytest.raises(RateLimited):
        await coalescer.answer("query", BOB, execution)
    execution.released.set()
    assert len(await asyncio.gather(*admitted)) == 2
