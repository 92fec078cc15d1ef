"""The deadline of executions, over HTTP and WebSocket, while MongoDB does not answer reads."""

import asyncio
from collections.abc import Iterator

import pytest

from server.embedded import Mongod
from server.graphql.deadlines import deadline
from storage.errors import Unavailable
from tests.client import Client, GraphQLFailed, client
from tests.serving import WebProcess, web_process
from tests.storage.faults import failpoint

DEADLINE_S = 1.0
BLOCKED_MS = 5_000
COMMUNITIES = "{ communities(limit: 3) { id } }"
JOIN = 'mutation { joinCommunity(communityId: "x") { id } }'

pytestmark = pytest.mark.anyio


@pytest.fixture(scope="module")
def web(tmp_path_factory: pytest.TempPathFactory, own_mongod: Mongod, redis_url: str) -> Iterator[WebProcess]:
    folder = tmp_path_factory.mktemp("web")
    with web_process(folder, own_mongod.uri, redis_url, NOROSHI_EXECUTION_TIMEOUT_S=str(DEADLINE_S)) as web:
        yield web


async def assert_stopped_over_http(ann: Client, query: str) -> None:
    """Asserts that the query is answered at its deadline."""
    loop = asyncio.get_running_loop()
    began_s = loop.time()
    assert await ann.expect_error(query) == {"code": "UNAVAILABLE", "retryAfterMs": 1000}
    assert loop.time() - began_s >= DEADLINE_S * 0.9


@pytest.mark.parametrize("query", [COMMUNITIES, JOIN], ids=["query", "mutation"])
async def test_operation_is_stopped_at_its_deadline(web: WebProcess, own_mongod: Mongod, query: str) -> None:
    async with client(web.url, web.token()) as ann:
        await ann.execute(query)
        async with failpoint(own_mongod.uri, "find", blockConnection=True, blockTimeMS=BLOCKED_MS):
            await asyncio.gather(*(assert_stopped_over_http(ann, query) for _ in range(5)))
        assert "errors" not in await ann.execute(COMMUNITIES)


async def test_operation_over_websocket_is_stopped_at_its_deadline(web: WebProcess, own_mongod: Mongod) -> None:
    async with client(web.url, web.token()) as ann, ann.socket() as socket:
        async with failpoint(own_mongod.uri, "find", blockConnection=True, blockTimeMS=BLOCKED_MS):
            await socket.subscribe(COMMUNITIES)
            with pytest.raises(GraphQLFailed) as error:
                await socket.next_event()
            assert error.value.codes == ["UNAVAILABLE"]
        assert "errors" not in await ann.execute(COMMUNITIES)


async def test_deadline_leaves_other_timeouts_unchanged() -> None:
    with pytest.raises(TimeoutError):
        async with deadline(60):
            raise TimeoutError
    with pytest.raises(Unavailable, match="stopped after"):
        async with deadline(0.01):
            await asyncio.sleep(60)
