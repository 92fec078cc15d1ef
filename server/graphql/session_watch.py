"""Checks the access of an open connection: when its credential expires, and whenever its viewer's access is reduced."""

import asyncio
import time
from collections.abc import Awaitable, Callable

from server.graphql.protocols import Application, Session

MAX_TIMER_S = 7 * 86_400.0

ROLES_CHANGED = "The roles of the user have changed"


class SessionWatch:
    """Watches the session of one socket or event stream until `stop`."""

    __slots__ = ("_application", "_authenticate", "_close", "_is_stopped", "_session", "_timer")

    def __init__(
        self,
        application: Application,
        session: Session,
        authenticate: Callable[[], Awaitable[Session | None]],
        close: Callable[[str], Awaitable[None]],
    ) -> None:
        """Begins to watch. A person is online meanwhile.

        `authenticate` returns the session of the connection's credential, or closes the connection and returns None.
        `close` closes the connection of a viewer whose roles have changed.
        """
        self._application, self._session, self._is_stopped = application, session, False
        self._authenticate, self._close = authenticate, close
        self._timer = self._start_timer(session.expires_at)
        application.socket_opened(session, self.check)

    async def check(self) -> None:
        """Closes the connection if its session has ended or its roles have changed. Otherwise adopts its end."""
        session = await self._authenticate()
        if session is None or self._is_stopped:
            return
        if session.roles != self._session.roles:
            await self._close(ROLES_CHANGED)
        else:
            self._timer.cancel()
            self._timer = self._start_timer(session.expires_at)

    def stop(self) -> None:
        """Ends the checks."""
        self._is_stopped = True
        self._timer.cancel()
        self._application.socket_closed(self._session, self.check)

    def _start_timer(self, expires_at: float) -> asyncio.TimerHandle:
        """Starts the timer of a check at the expiry, which other requests of the browser may have deferred."""
        # The event loop's timers overflow after some weeks.
        wait_s = min(expires_at - time.time(), MAX_TIMER_S)
        return asyncio.get_running_loop().call_later(wait_s, self._start_check)

    def _start_check(self) -> None:
        asyncio.ensure_future(self.check())
