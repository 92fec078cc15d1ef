"""Commands to a Redis that does not answer."""

import asyncio

import pytest
from redis.exceptions import ConnectionError as RedisConnectionError

from storage.redis import circuit_breaker
from storage.redis.circuit_breaker import CircuitBreaker

pytestmark = pytest.mark.anyio


async def test_no_command_is_sent_for_a_moment_after_a_failure(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(circuit_breaker, "ANSWER_TIMEOUT_S", 0.01)
    breaker, sent = CircuitBreaker(), 0

    async def send() -> int:
        nonlocal sent
        sent += 1
        if sent == 2:
            await asyncio.Event().wait()
        return sent

    assert await breaker.run(send) == 1
    with pytest.raises(TimeoutError):
        await breaker.run(send)
    with pytest.raises(RedisConnectionError):
        await breaker.run(send)
    assert sent == 2
    monkeypatch.setattr(breaker, "_unavailable_until", 0.0)
    assert await breaker.run(send) == 3
