"""Stored documents of the stamps of organizations. Instants are aware UTC datetimes, by the database's clock."""

from datetime import datetime
from typing import NotRequired, TypedDict


class OwnStampDocument(TypedDict):
    """A stamp inside of its pack."""

    name: str
    """Name, unique in the organization."""

    file: str
    """Id of the file with the picture."""

    at: datetime
    """When the stamp was added."""


class StampRuleDocument(TypedDict):
    """The rule by which people earn a pack, inside of the pack."""

    kind: str
    """Value of `StampRuleKind`."""

    threshold: int
    """The number from which on a person owns the pack."""


class StampPackDocument(TypedDict):
    """A pack inside of its catalogue."""

    id: str
    """Pack id."""

    name: str
    """Name as written."""

    at: datetime
    """When the pack was created."""

    stamps: list[OwnStampDocument]
    """The stamps, the earliest first."""

    availability: NotRequired[str]
    """Value of `StampPackAvailability`; absent for EVERYONE."""

    rule: NotRequired[StampRuleDocument]
    """Present for EARNED."""


class StampCatalogueDocument(TypedDict):
    """The packs of an organization, in `stamp_catalogues`. Never deleted.

    One document has all packs, so that each change checks their number and the names of all stamps.
    """

    _id: str
    """Organization id."""

    at: datetime
    """When an administrator last changed the packs."""

    packs: NotRequired[list[StampPackDocument]]
    """The packs, the earliest first; absent before the first one."""

    due: NotRequired[datetime]
    """When workers next walk over the people; absent without a rule and anything to clean up. A claim moves it."""

    after: NotRequired[str]
    """Id of the last user whom the current walk has evaluated; absent before the first page."""


class StampOwnershipDocumentId(TypedDict):
    """The `_id` of an ownership: one per person and pack."""

    o: str
    """Organization id."""

    u: str
    """User id."""

    p: str
    """Pack id."""


class StampOwnershipDocument(TypedDict):
    """A pack that a person owns, in `stamp_ownerships`.

    Deleted when an ADMIN takes the pack back, some time after the pack was removed, or by an erasure of the person.
    """

    _id: StampOwnershipDocumentId
    at: datetime
    """When the person got the pack."""

    by: NotRequired[str]
    """Id of the person who gave the pack; absent if it was earned."""


class StampScanDocument(TypedDict):
    """Up to when workers have looked for people who may earn packs, in `stamp_scans`. One document, never deleted."""

    _id: str
    """The value of `SCAN_ID`."""

    at: datetime
    """Events up to this time have been read."""
