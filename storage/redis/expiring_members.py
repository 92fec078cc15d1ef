"""Sets in Redis whose members expire one by one, by the clock of Redis."""

from collections.abc import Awaitable, Callable, Iterator, Sequence
from functools import partial
from typing import Any

from redis.asyncio import Redis

from storage.redis.circuit_breaker import CircuitBreaker

MAX_AT_ONCE = 500
"""Maximum number of members or sets of one command, since a command holds up all other clients of Redis."""

_NOW = """
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
"""

_ADD = (
    _NOW
    + """
redis.call('ZREMRANGEBYSCORE', KEYS[1], '-inf', now)
local room = ARGV[2] - redis.call('ZCARD', KEYS[1])
for i = 3, #ARGV do
  if room > 0 or redis.call('ZSCORE', KEYS[1], ARGV[i]) then
    room = room - redis.call('ZADD', KEYS[1], now + ARGV[1], ARGV[i])
  end
end
redis.call('PEXPIRE', KEYS[1], ARGV[1])
"""
)

_MEMBERS = (
    _NOW
    + """
local found = {}
for i, key in ipairs(KEYS) do found[i] = redis.call('ZRANGEBYSCORE', key, now, '+inf') end
return found
"""
)

_AMONG = (
    _NOW
    + """
local found = {}
for _, member in ipairs(ARGV) do
  local expires = redis.call('ZSCORE', KEYS[1], member)
  if expires and tonumber(expires) >= now then table.insert(found, member) end
end
return found
"""
)


_Script = Callable[..., Awaitable[Any]]


class ExpiringMembers:
    """Adds, removes and reads members. Every method raises one of FAILURES if Redis does not answer."""

    def __init__(self, redis: Redis) -> None:
        self._add = redis.register_script(_ADD)
        self._remove = redis.register_script("redis.call('ZREM', KEYS[1], ARGV[1])")
        self._members = redis.register_script(_MEMBERS)
        self._among = redis.register_script(_AMONG)
        self._breaker = CircuitBreaker()

    async def add(self, key: str, members: Sequence[str], life_s: float, max_members: int) -> None:
        """Adds the members or renews them. Leaves out new members of a set that holds `max_members`."""
        for some in _chunks(members):
            await self._run(self._add, [key], [round(life_s * 1000), max_members, *some])

    async def remove(self, key: str, member: str) -> None:
        """Removes a member."""
        await self._run(self._remove, [key], [member])

    async def members(self, keys: Sequence[str]) -> list[list[str]]:
        """Returns the members of each set, in the order in which they expire."""
        found: list[list[bytes]] = []
        for some in _chunks(keys):
            found += await self._run(self._members, some)
        return [[member.decode() for member in each] for each in found]

    async def members_among(self, key: str, values: Sequence[str]) -> set[str]:
        """Returns those of the values that are members of the set."""
        found: list[bytes] = []
        for some in _chunks(values):
            found += await self._run(self._among, [key], some)
        return {member.decode() for member in found}

    async def _run(self, script: _Script, keys: Sequence[str], arguments: Sequence[str | int] = ()) -> Any:
        return await self._breaker.run(partial(script, keys=keys, args=arguments))


def _chunks(values: Sequence[str]) -> Iterator[Sequence[str]]:
    return (values[start : start + MAX_AT_ONCE] for start in range(0, len(values), MAX_AT_ONCE))
