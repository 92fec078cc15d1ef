"""The MongoDB deployments on which the product runs: replica sets, and nothing else."""

from collections.abc import Mapping
from typing import Any

from pymongo.monitoring import ServerClosedEvent, ServerDescriptionChangedEvent, ServerListener, ServerOpeningEvent

MONGOS = "the server is a mongos, and sharded clusters are not supported: name the members of one replica set"
STANDALONE = (
    "the server is a standalone mongod, and transactions need a replica set: start it with --replSet and run "
    "rs.initiate()"
)


def unsupported_reason(hello: Mapping[str, Any]) -> str | None:
    """Returns why the server that gave this answer to `hello` can't be used; None for a member of a replica set."""
    if hello.get("msg") == "isdbgrid":
        return MONGOS
    return None if "setName" in hello else STANDALONE


class UnsupportedServerListener(ServerListener):
    """Records why a server that the driver found can't be used. The driver drops such servers from its topology."""

    def __init__(self) -> None:
        self.fault: str | None = None
        """Why a server that was found can't be used."""

    def opened(self, event: ServerOpeningEvent) -> None:
        """Does nothing."""

    def description_changed(self, event: ServerDescriptionChangedEvent) -> None:
        """Records the fault of a server that is no member of a replica set."""
        faults = {"Mongos": MONGOS, "Standalone": STANDALONE}
        self.fault = faults.get(event.new_description.server_type_name, self.fault)

    def closed(self, event: ServerClosedEvent) -> None:
        """Does nothing."""
