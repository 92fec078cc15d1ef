"""Reads stored bounces again by today's table of codes. Pure; no I/O.

The texts of answers are not stored, since they hold addresses. A bounce that a text could decide keeps its outcome.
"""

from collections import Counter
from dataclasses import dataclass, field

from storage.mail.documents import AddressDocument, DomainDocument

SENDER_STATUSES = frozenset({"4.1.7", "4.1.8"})
"""Statuses that blame the sender. Earlier versions counted them as soft bounces."""

NO_SUCH_RECIPIENT = "5.1.10"
"""A status that earlier versions took for the answer of a domain without mail."""


@dataclass(frozen=True, slots=True)
class ReadBounces:
    """Changes by reading an organization's stored bounces again."""

    dropped_softs: int = 0
    """Soft bounces that count for nobody now."""

    dropped_domain_blocks: int = 0
    """Domains whose block rested on an answer that speaks of one address only."""

    unread: Counter[str] = field(default_factory=Counter)
    """By source, bounces that keep their outcome, because a text that is not stored might decide otherwise."""

    def __add__(self, other: "ReadBounces") -> "ReadBounces":
        return ReadBounces(
            self.dropped_softs + other.dropped_softs,
            self.dropped_domain_blocks + other.dropped_domain_blocks,
            self.unread + other.unread,
        )


def reread_address(document: AddressDocument) -> ReadBounces:
    """Drops soft bounces whose status blames the sender, whatever the text said."""
    dropped, unread = 0, Counter[str]()
    for entry in document["by"]:
        for bounce in entry.get("messages", ()):
            if bounce[2] and _status(bounce[3]) in SENDER_STATUSES:
                bounce[2:] = [0, ""]
                dropped += 1
        unread[entry["source"]] += len(entry.get("hards", ()))
    return ReadBounces(dropped_softs=dropped, unread=+unread)


def reread_domain(document: DomainDocument) -> ReadBounces:
    """Ends a block by 5.1.10 that no text explains. It speaks of one address."""
    dropped = 0
    for entry in document["by"]:
        if "refusal" in entry and _status(entry["refusal"][1]) == NO_SUCH_RECIPIENT:
            del entry["refusal"]
            dropped = 1
    return ReadBounces(dropped_domain_blocks=dropped)


def _status(code: str) -> str:
    """Returns the status in a stored code such as "550 5.1.10"; no status if a text decided."""
    return code.rpartition(" ")[2]
