"""Queries that are the same, asked at the same moment: executed once for everybody who asked (ADR 44).

While one execution runs, whoever asks the same waits, and the next execution answers them all as one crowd. Each begins
after everybody in it asked, so no answer is older than its question, and nothing is kept that could become stale.
"""

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable, Hashable
from dataclasses import dataclass, field

from prometheus_client import Counter
from starlette.responses import Response

from resolvers.context import Crowd
from storage.identity.records import User

MAX_CROWD = 500
PATIENCE_S = 0.02
"""So long the next execution waits for those to ask again whom the last one answered."""

LOOK_EVERY_S = 0.001
"""Twice as long without anybody who asks, and it waits no longer."""

ANSWERS = Counter(
    "noroshi_crowd_answers",
    "Queries that crowds may share: executed, answered by another's execution, put apart to be executed alone.",
    ["outcome"],
)
EXECUTED, SHARED, APART = (ANSWERS.labels(outcome) for outcome in ("executed", "shared", "apart"))

Execute = Callable[[User, Crowd | None], Awaitable[Response]]
"""Executes the query: for the viewer alone, or for the whole crowd that the viewer is one of."""


@dataclass(slots=True, eq=False)
class _Asking:
    viewer: User
    answer: asyncio.Future[Response | Crowd]


@dataclass(slots=True, eq=False)
class _Query:
    """One query, and who waits for it."""

    execute: Execute
    waiting: deque[_Asking] = field(default_factory=deque)
    task: asyncio.Task[None] | None = None
    expected: int = 0
    all_back: asyncio.Future[None] | None = None

    def add(self, asking: _Asking) -> None:
        """Somebody more who waits."""
        self.waiting.append(asking)
        if self.all_back is not None and not self.all_back.done() and len(self.waiting) >= self.expected:
            self.all_back.set_result(None)

    def next_ones(self) -> list[_Asking]:
        """Those who are answered next, without those who gave up."""
        count = min(len(self.waiting), MAX_CROWD)
        return [each for each in (self.waiting.popleft() for _ in range(count)) if not each.answer.done()]

    async def returned(self, count: int) -> None:
        """Returns when as many ask again as were just answered, or soon when nobody does.

        Who reads a hot page asks again at once. The first one back must not have an execution alone, for which all the
        others wait.
        """
        loop = asyncio.get_running_loop()
        self.expected, self.all_back = min(len(self.waiting) + count, MAX_CROWD), loop.create_future()
        ends_at, quiet_looks = loop.time() + PATIENCE_S, 0
        while len(self.waiting) < self.expected and quiet_looks < 2 and loop.time() < ends_at:
            before = len(self.waiting)
            await asyncio.wait((self.all_back,), timeout=LOOK_EVERY_S)
            quiet_looks = quiet_looks + 1 if len(self.waiting) == before else 0


class Crowds:
    """The queries that somebody in this process waits for, by what makes them the same."""

    def __init__(self) -> None:
        self._queries: dict[Hashable, _Query] = {}

    async def ask(self, key: Hashable, viewer: User, execute: Execute) -> Response | Crowd:
        """The answer; for a viewer who was put apart and must ask alone, the crowd that was left.

        Raises: what `execute` raises.
        """
        query = self._queries.get(key)
        if query is None:
            query = self._queries[key] = _Query(execute)
            query.task = asyncio.create_task(self._serve(key, query), name="crowd")
        asking = _Asking(viewer, asyncio.get_running_loop().create_future())
        query.add(asking)
        return await asking.answer

    async def _serve(self, key: Hashable, query: _Query) -> None:
        """One execution after the other, as long as anybody waits."""
        asking: list[_Asking] = []
        try:
            while query.waiting:
                asking = query.next_ones()
                answered = await _answer(query.execute, asking) if asking else 0
                if answered > 1:
                    await query.returned(answered)
        finally:
            # Nothing is awaited between the last look and this, so nobody is forgotten.
            del self._queries[key]
            for each in (*asking, *query.waiting):
                each.answer.cancel()


async def _answer(execute: Execute, asking: list[_Asking]) -> int:
    """Tells each the answer, or why there is none; how many were given one."""
    ids = frozenset(each.viewer.id for each in asking)
    # One viewer who asks twice sees what one who asks once does.
    crowd = Crowd(ids) if len(ids) > 1 else None
    try:
        response = await execute(asking[0].viewer, crowd)
    except Exception as error:
        for each in asking:
            if not each.answer.done():
                each.answer.set_exception(error)
        return 0
    stay = 0
    for each in asking:
        is_apart = crowd is not None and each.viewer.id in crowd.apart
        stay += not is_apart
        if not each.answer.done():
            each.answer.set_result(crowd if crowd is not None and is_apart else response)
    EXECUTED.inc()
    if len(asking) > 1:
        SHARED.inc(max(stay - 1, 0))
        APART.inc(len(asking) - stay)
    return stay
