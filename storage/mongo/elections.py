"""Withholds a new primary until it knows all writes that were acknowledged before its election (ADR 56).

A member can hold a write without knowing that a majority holds it. If this member becomes primary, it first writes an
entry of its own term. Its majority reads lack the earlier write until this entry reaches a majority. From then on the
primary is settled.
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
"""Interval of each server's heartbeats. A settled primary is found after this time at the latest."""


class SettledPrimaries(ServerHeartbeatListener):
    """Elections whose primaries are settled, so that their majority reads show all acknowledged writes."""

    def __init__(self) -> None:
        self._elections: dict[Any, ObjectId | None] = {}
        """The newest election of each address whose primary is settled."""

    def select(self, servers: list[ServerDescription]) -> list[ServerDescription]:
        """Returns the servers except unsettled primaries. If none is left, the driver waits for another heartbeat."""
        return [each for each in servers if not each.is_writable or self._is_settled(each)]

    def succeeded(self, event: ServerHeartbeatSucceededEvent) -> None:
        """Records the election of a primary if a majority has an entry of its own term."""
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
