"""Records the lines of Postfix's log that log shippers send (docs/mail.md)."""

from typing import Any
from zoneinfo import ZoneInfo

from cachetools import LRUCache
from starlette.requests import Request

from jobs.mail.inlets.postfix_lines import PostfixLineReader
from resolvers.arguments import checked_time_zone
from server.http.ingest.items import item_batches
from server.http.ingest.recording import Recording
from storage.identity.records import User
from storage.stores import Stores

MAX_LOGS = 50
"""The most logs whose deferred recipients a process keeps. Those of the log that was not read for longest are lost."""


class PostfixInlet:
    """Records the events of lines. A key's requests with the same time zone are one log."""

    def __init__(self, stores: Stores) -> None:
        self._stores = stores
        self._readers: LRUCache[tuple[str, str, str], PostfixLineReader] = LRUCache(MAX_LOGS)

    async def record(self, request: Request, sender: User, body: bytes) -> dict[str, Any]:
        """Records one event for each line of a delivery. The parameter `timeZone` is that of times without a zone.

        Raises: BadUserInput.
        """
        zone = checked_time_zone(request.query_params.get("timeZone", "UTC"))
        reader = self._readers.setdefault((*sender.key, zone), PostfixLineReader(ZoneInfo(zone)))
        recording, now = Recording(self._stores.ledger, sender), await self._stores.mongo.now()
        async for items in item_batches(body):
            await recording.add(reader.read(items, now))
        return recording.answer(names_ignored=True)
