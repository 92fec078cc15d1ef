"""Ends the sessions and sockets of users whose access was reduced, within seconds and without Redis.

Each web process reads the changes of access from MongoDB every 2 s. If the reads fail for more than 6 s, every further
failure removes all cached sessions.
"""

import asyncio
import time
from collections import defaultdict
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager, suppress
from datetime import datetime

import structlog

from server.auth.viewers import ViewerSessions
from storage.identity.access_changes import AccessChanges
from storage.ids import UserKey
from storage.mongo.clock import DatabaseClock

READ_EVERY_S = 2.0
READ_TIMEOUT_S = 3.0
TRUST_SESSIONS_S = 6.0
"""How long cached sessions are trusted after the last successful read of the changes.

A failed read checks this time, so sessions are removed at most 10 s after the last successful read.
"""

CheckSocket = Callable[[], Coroutine[None, None, None]]
"""Authenticates a socket again, and closes it if it has lost its access."""

log = structlog.get_logger(__name__)


class AccessWatch:
    """Reads the changes of access. Removes the cached sessions of the users, and checks their sockets again."""

    def __init__(self, changes: AccessChanges, clock: DatabaseClock, sessions: ViewerSessions) -> None:
        self.sessions = sessions
        self._changes = changes
        self._clock = clock
        self._checks: defaultdict[UserKey, set[CheckSocket]] = defaultdict(set)
        self._running: set[asyncio.Task[None]] = set()
        self._read_until: datetime | None = None
        self._read_at = time.monotonic()

    def add(self, user: UserKey, check: CheckSocket) -> None:
        """Calls `check` whenever the access of the user is reduced, until `remove`."""
        self._checks[user].add(check)

    def remove(self, user: UserKey, check: CheckSocket) -> None:
        """Ends the calls of `check`."""
        self._checks[user].discard(check)
        if not self._checks[user]:
            del self._checks[user]

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """Reads the changes in the background."""
        task = asyncio.create_task(self._run())
        try:
            yield
        finally:
            task.cancel()
            with suppress(asyncio.CancelledError):
                await task

    async def _run(self) -> None:
        while True:
            try:
                async with asyncio.timeout(READ_TIMEOUT_S):
                    self._apply(await self._read())
            except Exception as error:
                # Catches any error: if this task ended, no later change would be applied.
                self._forget_untrusted_sessions(error)
            await asyncio.sleep(READ_EVERY_S)

    async def _read(self) -> set[UserKey]:
        now = await self._clock.now()
        users = await self._changes.users_since(self._read_until or now)
        self._read_until, self._read_at = now, time.monotonic()
        return users

    def _apply(self, users: set[UserKey]) -> None:
        self.sessions.forget(users)
        for user in users & self._checks.keys():
            for check in self._checks[user]:
                task = asyncio.create_task(check())
                self._running.add(task)
                task.add_done_callback(self._running.discard)

    def _forget_untrusted_sessions(self, error: Exception) -> None:
        if time.monotonic() - self._read_at > TRUST_SESSIONS_S:
            self.sessions.forget_all()
            log.warning("access_changes_unread", error=str(error) or type(error).__name__)
