"""Withholds a new primary until it knows all writes that were acknowledged before its election (ADR 56).

A member can hold a write without knowing that a majority holds it. If it becomes primary, its majority reads lack the
write until an entry of its own term, the first of which it writes itself, has reached a majority.
"""

from typing import Any

from bson import ObjectId
from pymongo.monitoring import (
    ServerHeartbeatFailedEvent,
    ServerHeartbeatListener,
    ServerHeartbeatStartedEvent,
    ServerHeartbeatSucceededEvent,
)
from pymongo.server_description import ServerDescription

HEARTBEAT_S = 1.0
"""How often a server reports its state, and so the longest time until a settled primary is found."""


class SettledPrimaries(ServerHeartbeatListener):
    """The elections whose primaries show all acknowledged writes to majority reads."""

    def __init__(self) -> None:
        self._elections: dict[Any, ObjectId | None] = {}
        """The newest settled election of each address."""

    def select(self, servers: list[ServerDescription]) -> list[ServerDescription]:
        """Returns the servers without primaries that are not settled. The driver then waits for another heartbeat."""
        return [each for each in servers if not each.is_writable or self._is_settled(each)]

    def succeeded(self, event: ServerHeartbeatSucceededEvent) -> None:
        """Records whether the server is a primary whose majority has an entry of its own term."""
        hello = event.reply.document
        last = hello.get("lastWrite", {})
        if event.reply.is_writable and _term(last, "majorityOpTime") == _term(last, "opTime"):
            self._elections[event.connection_id] = hello.get("electionId")

    def started(self, event: ServerHeartbeatStartedEvent) -> None:
        """Does nothing."""

    def failed(self, event: ServerHeartbeatFailedEvent) -> None:
        """Does nothing."""

    def _is_settled(self, server: ServerDescription) -> bool:
        return self._elections.get(server.address) == server.election_id


def _term(last_write: dict[str, Any], name: str) -> Any:
    return last_write.get(name, {}).get("t")
