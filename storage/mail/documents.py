"""Stored documents of the bounce address book.

Instants are int64 milliseconds since the Unix epoch, except those typed `datetime`, which are aware and in UTC. Days
are UTC days counted since the Unix epoch. Addresses are stored as keyed hashes, and encrypted where an organization
keeps them readable.
"""

from datetime import datetime
from typing import Any, Literal, NotRequired, Required, TypedDict

CountName = Literal["success", "soft", "hard"]
COUNTS: tuple[CountName, ...] = ("success", "soft", "hard")

MessageBounce = list[Any]
"""A message's bounces on one day: [digest of the message, day, instant of the latest soft bounce or 0, its code]."""

HardBounce = list[Any]
"""A hard bounce: [instant, code]."""

DailySum = list[Any]
"""The bounces of a day that are no longer kept one by one: [day, number, latest instant, code of the latest bounce]."""

DayCounts = list[Any]
"""A domain's day: [day, success, soft, hard, whether a server answered, digests of messages without a connection]."""


class LedgerDocument(TypedDict):
    """A delivery event, in `mail_ledger`. Deleted 14 days after aggregation; a retention rule may empty it earlier."""

    _id: bytes
    """Digest of the organization id and the event id."""

    org: str
    """Organization id."""

    source: str
    """Name of the source that sent the event."""

    address: bytes
    """Keyed hash of the address, by the newest key."""

    older: NotRequired[list[bytes]]
    """Keyed hashes of the address by older keys, if there are any."""

    domain: str
    """Normalized domain of the address."""

    at: datetime
    """When the event happened, by the clock of the mail server."""

    recorded_at: datetime
    """When the event was recorded, by the clock of the database."""

    outcome: str
    """`Outcome` of the event."""

    message: bytes
    """Digest of the message id, or of the event id where the event has no message id."""

    smtp: NotRequired[int]
    """SMTP reply code, if the event has one."""

    status: NotRequired[str]
    """RFC 3463 status, if the event has one."""

    connection_failed: NotRequired[bool]
    """True if no connection could be made; absent otherwise."""

    reason: NotRequired[str]
    """Reason that the text of the answer gave; absent if a code decided."""

    blocks_domain: NotRequired[bool]
    """True if the answer says that nobody at the domain can get mail; absent otherwise."""

    readable: NotRequired[bytes]
    """Encrypted address, if the organization keeps it readable; absent once the event was aggregated."""

    waiting: NotRequired[int]
    """Partition in which the event waits for aggregation; absent afterwards."""

    aggregated_at: NotRequired[datetime]
    """When the event was aggregated, by the clock of the database."""


class MailSourceId(TypedDict):
    """The `_id` of a source."""

    org: str
    """Organization id."""

    source: str
    """Name of the source."""


class SourceDocument(TypedDict):
    """A source of events or imported rows, in `mail_sources`. Deleted when the source is removed from the book."""

    _id: MailSourceId
    removed_at: NotRequired[datetime]
    """When an operator began to remove the source, by the database's clock; absent before."""


class Unblocking(TypedDict):
    """The latest unblocking of an address by an operator."""

    at: int
    """When the address was unblocked. Events until this instant count for the domain only."""

    by: NotRequired[str]
    """User id of the operator."""

    reason: NotRequired[str]
    """Reason that the operator gave."""


class OutcomeSums(TypedDict):
    """Numbers of outcomes."""

    success: int
    """Deliveries."""

    soft: int
    """Soft bounces. A day's sum includes failed connections, one per message."""

    hard: int
    """Hard bounces."""


class ImportedCounts(OutcomeSums):
    """A row of the legacy book."""

    at: int
    """When the row was imported."""


# `import` is a keyword, so a class body can't declare it.
_ImportedEntry = TypedDict("_ImportedEntry", {"import": ImportedCounts}, total=False)


class AddressSourceEntry(_ImportedEntry, total=False):
    """The events of one source about an address. `import` is the row of the legacy book that the source imported."""

    source: Required[str]
    """Name of the source."""

    success: int
    """Deliveries; after an unblocking of the address, those since then."""

    ok: int
    """Instant of the latest delivery."""

    last: int
    """Instant of the latest event."""

    complaint: int
    """Instant of the latest complaint."""

    hards: list[HardBounce]
    """Hard bounces, at most 10,000."""

    messages: list[MessageBounce]
    """Messages that bounced softly or count for the domain, one entry per message and day, at most 10,000."""

    old_softs: list[DailySum]
    """Soft bounces that are older than the entries of `messages`, summed up by day."""

    old_hards: list[DailySum]
    """Hard bounces that are older than the entries of `hards`, summed up by day."""


class AddressSummary(TypedDict, total=False):
    """The standing of an address, computed from all sources. A covering index holds it. Zeros are left out."""

    success: int
    """Deliveries."""

    soft: int
    """Soft bounces since the latest delivery, one per message and day."""

    hard: int
    """Hard bounces since the latest delivery."""

    last: int
    """Instant of the latest event."""

    verdict: list[Any]
    """Why the default policy blocks: [`VerdictRule`, instant, code, days with soft bounces]; absent if it does not."""

    unblocked: Unblocking
    """Copy of the document's `unblocked`."""

    decision: "ManualSetting"
    """Copy of the document's `decision`."""

    ended: int
    """Copy of the document's `unsubscribed`."""

    faults: list[list[Any]]
    """Facts to which policies apply: a `Fault` for each class, with its latest 14 days."""


class AddressDocument(TypedDict):
    """An address, in `mail_addresses`. Deleted when it has no source, no decision and no unsubscription left.

    A document under an older key's hash is replaced by `{_id, moved: bytes, moved_at: datetime}` when the address
    moves to the newest key's hash; that document is deleted after 15 days.
    """

    _id: NotRequired[bytes]
    """Keyed hash of the address; absent until the document is first saved."""

    org: str
    """Organization id."""

    domain: str
    """Normalized domain of the address."""

    by: list[AddressSourceEntry]
    """One entry per source."""

    unblocked: NotRequired[Unblocking]
    """The latest unblocking by an operator; absent if there was none."""

    decision: NotRequired["ManualSetting"]
    """An operator's block by hand; absent if there is none."""

    unsubscribed: NotRequired[int]
    """When the owner ended digests by a mail's link; absent once they are on again."""

    readable: NotRequired[bytes]
    """Encrypted address; absent unless the organization keeps it readable."""

    summary: NotRequired[AddressSummary]
    """The summary that lookups read."""


class ManualSetting(TypedDict):
    """An operator's decision about an address or a domain."""

    blocked: bool
    """Whether mail is blocked; always true for an address."""

    by: str
    """User id of the operator."""

    reason: str
    """Reason that the operator gave."""

    at: datetime
    """When the decision was stored, by the clock of the database."""


class DomainSourceEntry(TypedDict, total=False):
    """The events of one source about a domain. Source "": the sums of the latest imported row of each address."""

    source: Required[str]
    """Name of the source."""

    success: int
    """Deliveries on days before the first of `days`."""

    soft: int
    """Soft bounces on days before the first of `days`."""

    hard: int
    """Hard bounces on days before the first of `days`."""

    refusal: list[Any]
    """The latest answer that says that the domain takes no mail: [instant, code]."""

    days: list[DayCounts]
    """The latest 400 days with events."""


class DomainSummary(TypedDict, total=False):
    """The standing of a domain, computed from all sources. A covering index holds it. Zeros are left out."""

    success: int
    """Deliveries."""

    soft: int
    """Soft bounces and failed connections, one per message and day."""

    hard: int
    """Hard bounces."""

    refusal: list[Any]
    """The latest answer that says that the domain takes no mail: [instant, code]; absent if there is none."""

    failed_days: list[Any]
    """`FailedDay` list since the latest answer. Lookups decide whether they block the domain."""

    decision: ManualSetting
    """Copy of the document's `decision`."""


class RecentDay(TypedDict):
    """A domain's mail on one day."""

    day: int
    """Day."""

    sent: int
    """Messages with an outcome that counts."""

    bounced: int
    """Number of these messages that bounced, softly or hard."""


class DomainDocument(TypedDict):
    """A domain, in `mail_domains`. Deleted when it has no source left and no operator's decision."""

    _id: NotRequired[str]
    """Domain, a space, organization id; absent until the document is first saved."""

    org: str
    """Organization id."""

    domain: str
    """Normalized domain."""

    by: list[DomainSourceEntry]
    """One entry per source."""

    decision: NotRequired[ManualSetting]
    """An operator's decision, which overrides the rule; absent if there is none."""

    summary: NotRequired[DomainSummary]
    """The summary that lookups read."""

    recent: NotRequired[list[RecentDay]]
    """The latest three days with mail, indexed for the highest bounce rates."""


class DayId(MailSourceId):
    """The `_id` of a source's day."""

    day: int
    """Day."""

    lock: str
    """Name of the partition's lock, so that no two partitions write to one document."""


class DayDocument(OutcomeSums):
    """Mail of an organization on one day, in `mail_days`. Deleted when the source is removed from the book."""

    _id: DayId
    replied: NotRequired[int]
    """Deliveries that a mail server confirmed with a reply code; absent in documents of earlier releases."""

    complaints: NotRequired[int]
    """Complaints of recipients; absent in documents of earlier releases."""


class DifferenceDocument(TypedDict):
    """An address about which the two books differ, in `mail_differences`. Deleted 30 days after the latest lookup."""

    _id: bytes
    """Keyed hash of the address."""

    org: str
    """Organization id."""

    ours: bool
    """Whether this book blocks the address."""

    theirs: bool
    """Whether the legacy book blocks the address."""

    at: datetime
    """When a lookup last found the difference, by the clock of the database."""


class ReportId(TypedDict):
    """The `_id` of a report."""

    org: str
    """Organization id."""

    day: int
    """Day that the report is about."""

    kind: str
    """`summary`, `alarm`, or `alarm` and a domain after a space."""


class ReportDocument(TypedDict):
    """A summary or an alarm, in `mail_reports`. Deleted 400 days after it was claimed last."""

    _id: ReportId
    token: str
    """Random token of the worker that claimed the report last."""

    claimed_at: datetime
    """When the report was claimed last, by the clock of the database."""

    sent_at: NotRequired[datetime]
    """When the report was sent or permanently refused; absent until then."""
