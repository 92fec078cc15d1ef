"""Coalesces identical queries: one execution answers every request that waits for it (ADR 44).

An execution answers only requests that arrived before it began, so no answer is older than its request. Answers are not
cached.
"""

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable, Hashable, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field
from typing import NamedTuple

from prometheus_client import Counter
from starlette.responses import Response

from server.graphql.protocols import Viewer
from storage.errors import RateLimited, Unavailable

MAX_REQUESTS = 500
"""Maximum number of requests that one execution answers."""

MAX_WAITING = 5_000
"""Maximum number of requests that wait for one query."""

REGROUP_WINDOW_S = 0.02
"""Longest time that the next execution waits for viewers who just received an answer to ask again."""

REGROUP_POLL_S = 0.001
"""Interval of the polls for new requests in the regroup window, which closes early after two polls without one."""

ANSWERS = Counter(
    "noroshi_coalesced_answers",
    "Coalescible queries, by outcome: executed, shared with another request's execution, or excluded from a shared "
    "answer and executed for the viewer alone.",
    ["outcome"],
)
REFUSALS = Counter("noroshi_refused_coalesced", "Coalescible queries that were refused because too many waited.")
EXECUTED, SHARED, EXCLUDED = (ANSWERS.labels(outcome) for outcome in ("executed", "shared", "excluded"))


class SharedAnswer(NamedTuple):
    """The response of one execution, and the ids of the viewers for whom it would be wrong."""

    response: Response
    excluded_ids: AbstractSet[str]


ExecuteForViewers = Callable[[Sequence[Viewer]], Awaitable[SharedAnswer]]
"""Executes the query for distinct viewers. An execution for one viewer excludes nobody."""


@dataclass(slots=True, eq=False)
class _WaitingRequest:
    viewer: Viewer
    answer: asyncio.Future[SharedAnswer]


@dataclass(slots=True, eq=False)
class _WaitingQuery:
    """One query and the requests that wait for it."""

    execute: ExecuteForViewers
    waiting: deque[_WaitingRequest] = field(default_factory=deque)
    task: asyncio.Task[None] | None = None
    expected: int = 0
    """Number of waiting requests that closes the regroup window early."""
    all_waiting: asyncio.Future[None] | None = None

    def add(self, request: _WaitingRequest) -> None:
        """Adds a waiting request; closes the regroup window when all expected requests wait."""
        self.waiting.append(request)
        if self.all_waiting is not None and not self.all_waiting.done() and len(self.waiting) >= self.expected:
            self.all_waiting.set_result(None)

    def take_next(self) -> list[_WaitingRequest]:
        """Removes and returns the requests for the next execution, without those that were cancelled."""
        count = min(len(self.waiting), MAX_REQUESTS)
        return [each for each in (self.waiting.popleft() for _ in range(count)) if not each.answer.done()]

    def take_all(self) -> list[_WaitingRequest]:
        """Removes and returns all requests that wait."""
        taken = list(self.waiting)
        self.waiting.clear()
        return taken

    async def regroup(self, count: int) -> None:
        """Waits until the `count` viewers who were just answered ask again, or until the window closes.

        Readers of a busy topic ask again at once. Without the window, the first request to arrive would be executed
        alone, and all others would wait for that execution.
        """
        loop = asyncio.get_running_loop()
        self.expected, self.all_waiting = min(len(self.waiting) + count, MAX_REQUESTS), loop.create_future()
        ends_at, quiet_polls = loop.time() + REGROUP_WINDOW_S, 0
        while len(self.waiting) < self.expected and quiet_polls < 2 and loop.time() < ends_at:
            before = len(self.waiting)
            await asyncio.wait((self.all_waiting,), timeout=REGROUP_POLL_S)
            quiet_polls = quiet_polls + 1 if len(self.waiting) == before else 0


class QueryCoalescer:
    """The coalesced queries of this process, by the key that makes them identical."""

    def __init__(self) -> None:
        self._queries: dict[Hashable, _WaitingQuery] = {}

    async def answer(self, key: Hashable, viewer: Viewer, execute: ExecuteForViewers) -> Response:
        """Returns the shared response; to an excluded viewer, the response of an execution for that viewer alone.

        Raises: what `execute` raises; RateLimited if too many requests wait.
        """
        query = self._queries.get(key)
        if query is not None and len(query.waiting) >= MAX_WAITING:
            REFUSALS.inc()
            raise RateLimited("Too many requests wait for this query.", 1000)
        if query is None:
            query = self._queries[key] = _WaitingQuery(execute)
            query.task = asyncio.create_task(self._serve(key, query), name="coalesced query")
        request = _WaitingRequest(viewer, asyncio.get_running_loop().create_future())
        query.add(request)
        shared = await request.answer
        if viewer.id in shared.excluded_ids:
            return (await execute([viewer])).response
        return shared.response

    async def _serve(self, key: Hashable, query: _WaitingQuery) -> None:
        """Executes the query while requests wait for it. Keeps running after a caller has disconnected."""
        requests: list[_WaitingRequest] = []
        try:
            while query.waiting:
                requests = query.take_next()
                answered = await _answer(query, requests) if requests else 0
                if answered > 1:
                    await query.regroup(answered)
        finally:
            # No await between the last check of `waiting` and this line, so no request is lost.
            del self._queries[key]
            for each in (*requests, *query.waiting):
                each.answer.cancel()


async def _answer(query: _WaitingQuery, requests: list[_WaitingRequest]) -> int:
    """Resolves all requests with one execution. Returns the number of requests that received its response.

    If a required service does not answer, the requests that arrived meanwhile fail too. Otherwise each further
    execution would keep the remaining requests waiting for its whole timeout.
    """
    viewers = list({each.viewer.id: each.viewer for each in requests}.values())
    try:
        answer = await query.execute(viewers)
    except Exception as error:
        failed = [*requests, *query.take_all()] if isinstance(error, Unavailable) else requests
        for each in failed:
            if not each.answer.done():
                each.answer.set_exception(error)
        return 0
    included = sum(each.viewer.id not in answer.excluded_ids for each in requests)
    for each in requests:
        if not each.answer.done():
            each.answer.set_result(answer)
    EXECUTED.inc()
    if len(requests) > 1:
        SHARED.inc(max(included - 1, 0))
        EXCLUDED.inc(len(requests) - included)
    return included
