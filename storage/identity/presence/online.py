"""People who are online: those with an open socket. Each process renews its own people in Redis.

People of a process that died vanish when their entries expire. Without Redis it is unknown who is online.
"""

import asyncio
import time
from collections import Counter, defaultdict
from collections.abc import Collection

import structlog
from redis.asyncio import Redis

from storage.ids import UserKey
from storage.redis.circuit_breaker import FAILURES
from storage.redis.expiring_members import ExpiringMembers
from storage.redis.keys import RedisKeys

RENEW_EVERY_S = 5.0
ONLINE_S = 15.0
"""How long a person counts as online after the last renewal, in seconds."""

MAX_ONLINE = 200_000
"""Maximum number of people of an organization who are online at a time. Others are shown as offline."""

log = structlog.get_logger(__name__)


class OnlinePeople:
    """Counts the sockets of this process by person, and keeps their people online. Reads who is online."""

    def __init__(self, redis: Redis, keys: RedisKeys) -> None:
        self._members = ExpiringMembers(redis)
        self._keys = keys
        self._sockets: Counter[UserKey] = Counter()
        self._arrived: set[UserKey] = set()
        self._has_arrived = asyncio.Event()
        self._task: asyncio.Task[None] | None = None

    def start(self) -> None:
        """Starts renewing."""
        self._task = asyncio.create_task(self._run(), name="online people")

    async def close(self) -> None:
        """Stops renewing."""
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)

    def connect(self, person: UserKey) -> None:
        """Counts a socket of the person, and makes the person online."""
        self._sockets[person] += 1
        self._arrived.add(person)
        self._has_arrived.set()

    def disconnect(self, person: UserKey) -> None:
        """Ends the count of a socket. The person stays online for some seconds, in case the page is loaded again."""
        self._sockets[person] -= 1
        if not self._sockets[person]:
            del self._sockets[person]

    async def online_among(self, organization_id: str, user_ids: Collection[str]) -> set[str] | None:
        """Returns those of the people who are online; None if Redis does not answer."""
        try:
            return await self._members.members_among(self._keys.online(organization_id), list(user_ids))
        except FAILURES:
            return None

    async def _run(self) -> None:
        while True:
            renew_at = time.monotonic() + RENEW_EVERY_S
            await self._renew(list(self._sockets))
            while (left_s := renew_at - time.monotonic()) > 0:
                await self._wait_for_arrivals(left_s)
                arrived, self._arrived = self._arrived, set()
                await self._renew(arrived)

    async def _wait_for_arrivals(self, timeout_s: float) -> None:
        try:
            async with asyncio.timeout(timeout_s):
                await self._has_arrived.wait()
        except TimeoutError:
            return
        self._has_arrived.clear()

    async def _renew(self, people: Collection[UserKey]) -> None:
        by_organization: defaultdict[str, list[str]] = defaultdict(list)
        for person in people:
            by_organization[person.organization_id].append(person.user_id)
        try:
            for organization_id, user_ids in by_organization.items():
                await self._members.add(self._keys.online(organization_id), user_ids, ONLINE_S, MAX_ONLINE)
        except Exception as error:
            # Any error, since without this task nobody would stay online.
            log.warning("online_people_not_renewed", people=len(people), error=repr(error))
