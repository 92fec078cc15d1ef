"""The events that were read from a request, and the items of the request that gave none."""

from dataclasses import dataclass, field

from storage.mail.records import DeliveryEvent, RejectedDelivery


@dataclass(slots=True)
class ReadEvents:
    """Events of the items of a request, such as lines or elements of an array. An item may have several events.

    `indexes` has the index of each event's item.
    """

    events: list[DeliveryEvent] = field(default_factory=list)
    indexes: list[int] = field(default_factory=list)
    rejected: list[RejectedDelivery] = field(default_factory=list)
    ignored: int = 0
    """Number of items that were understood and show no outcome of a delivery."""

    def add(self, index: int, event: DeliveryEvent) -> None:
        """Adds an event of an item."""
        self.events.append(event)
        self.indexes.append(index)

    def ignore(self) -> None:
        """Counts an item that shows no outcome of a delivery."""
        self.ignored += 1

    def reject(self, index: int, message: str, event_id: str = "") -> None:
        """Adds an item that was not understood."""
        self.rejected.append(RejectedDelivery(index, event_id, message))
