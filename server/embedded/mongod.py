"""An embedded mongod as a replica set of one, because transactions need a replica set.

For development and tests, not for production.
"""

import asyncio
import json
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

import structlog

from server.embedded.binaries import MONGOD_VARIABLE
from server.embedded.private_server import HOST, PrivateServer
from server.processes import POLL_INTERVAL_S

if TYPE_CHECKING:
    from pymongo import AsyncMongoClient

REPLICA_SET = "rs0"
NOT_YET_INITIALIZED = 94

log = structlog.get_logger(__name__)


class Mongod(PrivateServer):
    """One mongod. With `initiate=False` it starts as a member without configuration; the caller initiates the set."""

    name: ClassVar[str] = "mongod"
    address_variable: ClassVar[str] = "MONGODB_URI"
    program_variable: ClassVar[str] = MONGOD_VARIABLE

    def __init__(self, folder: Path, binary: Path, *, initiate: bool = True, options: tuple[str, ...] = ()) -> None:
        super().__init__(folder, binary)
        self._initiate = initiate
        self._options = options

    @property
    def address(self) -> str:
        return f"{HOST}:{self.port}"

    @property
    def uri(self) -> str:
        return f"mongodb://{self.address}/?directConnection=true"

    def command(self) -> list[str]:
        return [
            *(str(self.binary), "--dbpath", str(self.data), "--replSet", REPLICA_SET),
            *("--bind_ip", HOST, "--port", str(self.port), "--nounixsocket", "--quiet"),
            *("--oplogSize", "64", "--wiredTigerCacheSizeGB", "0.25"),
            *("--setParameter", "diagnosticDataCollectionEnabled=false", *self._options),
        ]

    async def wait_until_ready(self) -> None:
        # Imported here, because the import is slow and most commands don't need it.
        from pymongo import AsyncMongoClient

        client: AsyncMongoClient[dict[str, Any]] = AsyncMongoClient(self.uri, serverMonitoringMode="poll")
        async with client:
            while not await self._is_ready(client):  # noqa: ASYNC110 - another process can set no event
                await asyncio.sleep(POLL_INTERVAL_S)

    async def _is_ready(self, client: "AsyncMongoClient[dict[str, Any]]") -> bool:
        from pymongo.errors import PyMongoError

        try:
            hello = await client.admin.command("hello")
            if not self._initiate or hello["isWritablePrimary"]:
                return True
            await self._configure(client)
        except PyMongoError as error:
            # During start and election mongod refuses some commands and closes connections.
            log.debug("mongod_not_ready", reason=str(error))
        return False

    async def _configure(self, client: "AsyncMongoClient[dict[str, Any]]") -> None:
        from pymongo.errors import OperationFailure

        try:
            config = (await client.admin.command("replSetGetConfig"))["config"]
        except OperationFailure as error:
            if error.code != NOT_YET_INITIALIZED:
                raise
            member = {"_id": 0, "host": self.address}
            await client.admin.command("replSetInitiate", {"_id": REPLICA_SET, "members": [member]})
        else:
            await self._update_member_address(client, config)

    async def _update_member_address(self, client: "AsyncMongoClient[dict[str, Any]]", config: dict[str, Any]) -> None:
        # The configuration holds the member's address. With an old port the set would never elect a primary.
        if config["members"][0]["host"] != self.address:
            config["members"][0]["host"] = self.address
            await client.admin.command("replSetReconfig", config, force=True)

    def failure_reason(self, log_lines: list[str]) -> str:
        for line in reversed(log_lines):
            entry = _log_entry(line)
            if entry.get("s") in ("F", "E"):
                return f"{entry.get('msg')} {json.dumps(entry.get('attr', {}))}"
        return super().failure_reason(log_lines)


def _log_entry(line: str) -> dict[str, Any]:
    try:
        entry = json.loads(line)
    except ValueError:
        return {}
    return entry if isinstance(entry, dict) else {}
