"""Counters of an address and of a domain, separate for each source, and the summary computed from them.

Pure; no I/O. Counters are sums, maxima and sets. So the order of events does not matter, and a source can be removed
as if it had never existed (ADR 25). Instants are milliseconds and days are numbers, both since the Unix epoch.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Literal, TypeVar

from storage.mail.classifier import EXPIRED, DeliveryOutcome
from storage.mail.decisions.bounce_classes import hard_bounce_class, soft_bounce_class
from storage.mail.decisions.policies import COMPLAINT, DEFAULT_POLICY, join_faults, stored_faults
from storage.mail.documents import (
    COUNTS,
    AddressDocument,
    AddressSourceEntry,
    DailySum,
    DayCounts,
    DomainDocument,
    DomainSourceEntry,
    HardBounce,
    ImportedCounts,
    MessageBounce,
    RecentDay,
)
from storage.mail.epoch_time import DAY_MS
from storage.mail.records import IMPORTED_HARD_BOUNCE, VerdictRule
from storage.mail.unreachable import DEAD_MESSAGES, failed_days

WINDOW_DAYS = 14
"""How long the ledger is kept, in days. Events older than 13 days are rejected."""

HISTORY_DAYS = 400
"""How many days of a domain are kept one by one."""

RECENT_DAYS = 3
"""How many of a domain's latest days with events `recent` holds: yesterday, today, and tomorrow for clocks ahead."""

MAX_BOUNCES = 10_000
"""How many bounces of an address are kept one by one for each source. Older bounces become daily sums."""

MAXIMA: tuple[Literal["ok", "last", "complaint"], ...] = ("ok", "last", "complaint")
"""Fields of a source's entry that hold the latest instant."""

DailySumName = Literal["old_softs", "old_hards"]
DAILY_SUMS: tuple[DailySumName, ...] = ("old_softs", "old_hards")
"""Fields of a source's entry that hold sums of days."""

CHOICES = ("unblocked", "decision", "unsubscribed", "readable")
LISTS: tuple[Literal["hards", "messages"], ...] = ("hards", "messages")
"""Fields of a source's entry that list bounces."""
Entry = TypeVar("Entry", AddressSourceEntry, DomainSourceEntry)


@dataclass(frozen=True, slots=True)
class LedgerEvent:
    """An event of the ledger. `message` is a digest that identifies the message."""

    id: bytes
    source: str
    address: bytes
    domain: str
    at: int
    outcome: DeliveryOutcome
    message: bytes
    smtp_code: int | None = None
    status: str | None = None
    connection_failed: bool = False
    blocks_domain: bool = False
    reason: str = ""

    @property
    def day(self) -> int:
        """The UTC day of the event."""
        return self.at // DAY_MS

    @property
    def domain_answered(self) -> bool:
        """Whether the event shows that the domain's server answered. An expired message or a complaint does not."""
        has_expired = self.smtp_code is None and self.status == EXPIRED
        return not (self.connection_failed or has_expired or self.outcome is DeliveryOutcome.COMPLAINT)

    @property
    def code(self) -> str:
        """The server's answer as shown to people: "550 5.1.1", or "554 (no such mailbox)" if its text decided."""
        code = " ".join(str(part) for part in (self.smtp_code, self.status) if part)
        return f"{code} ({self.reason})" if self.reason else code


@dataclass(slots=True)
class OutcomeCounts:
    """Numbers of outcomes that count for a domain."""

    success: int = 0
    soft: int = 0
    hard: int = 0


# ---- an address


def new_address(organization_id: str, domain: str) -> AddressDocument:
    """Returns the document of an address without events."""
    return {"org": organization_id, "domain": domain, "by": []}


def source_entry(by: list[Entry], source: str) -> Entry:
    """Returns a source's entry of a document's `by`. Adds the entry if it does not exist."""
    for entry in by:
        if entry["source"] == source:
            return entry
    by.append({"source": source})
    return by[-1]


def add_event(document: AddressDocument, event: LedgerEvent) -> OutcomeCounts:
    """Adds an event to its address. Returns the event's counts for the domain. Call `prune` before saving."""
    entry = source_entry(document["by"], event.source)
    entry["last"] = max(entry.get("last", 0), event.at)
    counts = OutcomeCounts()
    # Events before the address was unblocked count for the domain only.
    counts_for_address = event.at > _unblocked_at(document)
    match event.outcome:
        case DeliveryOutcome.DELIVERED:
            counts.success = 1
            if counts_for_address:
                entry["success"] = entry.get("success", 0) + 1
                entry["ok"] = max(entry.get("ok", 0), event.at)
        case DeliveryOutcome.HARD:
            counts.hard = 1
            if counts_for_address:
                entry.setdefault("hards", []).append([event.at, event.code])
        case DeliveryOutcome.SOFT | DeliveryOutcome.DOMAIN:
            soft_at = event.at if counts_for_address and event.outcome is DeliveryOutcome.SOFT else 0
            counts.soft = int(_record_message(entry, event, soft_at))
        case DeliveryOutcome.COMPLAINT if counts_for_address:
            entry["complaint"] = max(entry.get("complaint", 0), event.at)
    return counts


def _unblocked_at(document: AddressDocument) -> int:
    return document["unblocked"]["at"] if "unblocked" in document else -1


def _record_message(entry: AddressSourceEntry, event: LedgerEvent, soft_at: int) -> bool:
    """Records that a message failed on a day, and its latest soft bounce of the day.

    Returns whether this is the first such event of the message on the day. `soft_at` is the instant of the soft bounce,
    or 0 if the event does not count for the address.
    """
    by_message, key = _by_message(entry), (event.message, event.day)
    recorded = by_message.get(key)
    if recorded is None:
        by_message[key] = [event.message, event.day, soft_at, event.code if soft_at else ""]
    elif soft_at > recorded[2]:
        recorded[2], recorded[3] = soft_at, event.code
    return recorded is None


def _by_message(entry: AddressSourceEntry) -> dict[tuple[bytes, int], MessageBounce]:
    """Returns `messages` by message and day. The entry holds the dict until `prune` makes it a list again."""
    messages: Any = entry.get("messages", [])
    if not isinstance(messages, dict):
        messages = {(bytes(each[0]), each[1]): each for each in messages}
        entry["messages"] = messages
    by_message: dict[tuple[bytes, int], MessageBounce] = messages
    return by_message


def prune(document: AddressDocument, now: int) -> None:
    """Removes old bounces that a later delivery cleared. Beyond the limit, sums up the oldest bounces by day.

    A bounce is old if it happened before the window, so that no other event of its day can still arrive.
    """
    oldest_day = now // DAY_MS - WINDOW_DAYS - 1
    for entry in document["by"]:
        ok = entry.get("ok", 0)
        messages: Any = entry.get("messages")
        if messages:
            listed = list(messages.values()) if isinstance(messages, dict) else messages
            # The instant is 0 if the message has no soft bounce that counts for the address.
            kept = [each for each in listed if each[1] >= oldest_day or each[2] >= max(ok, 1)]
            entry["messages"] = _keep_newest(
                entry, "old_softs", kept, lambda message: (message[1], message[2]), lambda message: message[2:]
            )
        if hards := entry.get("hards"):
            kept = [each for each in hards if each[0] // DAY_MS >= oldest_day or each[0] >= ok]
            entry["hards"] = _keep_newest(entry, "old_hards", kept, lambda hard: hard[0], lambda hard: hard)
        for sums in DAILY_SUMS:
            if sums in entry:
                entry[sums] = [each for each in entry[sums] if each[0] >= oldest_day or each[2] >= ok]


def _keep_newest(
    entry: AddressSourceEntry,
    sums: DailySumName,
    bounces: list[Any],
    sort_key: Callable[[Any], Any],
    at_and_code: Callable[[Any], HardBounce],
) -> list[Any]:
    """Returns the newest bounces, and adds older bounces to the daily sums."""
    if len(bounces) <= MAX_BOUNCES:
        return bounces
    bounces.sort(key=sort_key)
    for bounce in bounces[:-MAX_BOUNCES]:
        at, code = at_and_code(bounce)
        if at:
            _add_daily_sum(entry, sums, [at // DAY_MS, 1, at, code])
    return bounces[-MAX_BOUNCES:]


def _add_daily_sum(entry: AddressSourceEntry, sums: DailySumName, added: DailySum) -> None:
    days = entry.setdefault(sums, [])
    for each in reversed(days):
        if each[0] == added[0]:
            each[1:] = [each[1] + added[1], *max(each[2:], added[2:])]
            return
    days.append(added)


def reset_counters(document: AddressDocument, at: int) -> None:
    """Resets the counters of an address as of an instant. Keeps the messages, which were counted for the domain."""
    last = document["summary"].get("last", 0) if "summary" in document else 0
    document["unblocked"] = {"at": max(at, last)}
    document["by"] = [_without_counters(entry) for entry in document["by"]]


def _without_counters(entry: AddressSourceEntry) -> AddressSourceEntry:
    kept: AddressSourceEntry = {"source": entry["source"]}
    if "last" in entry:
        kept["last"] = entry["last"]
    if "import" in entry:
        kept["import"] = entry["import"]
    kept["messages"] = [[message, day, 0, ""] for message, day, *_ in entry.get("messages", ())]
    return kept


def merge(document: AddressDocument, other: AddressDocument) -> None:
    """Adds the counters of `other`, the document of the same address under another hash. They share no events."""
    for added in other["by"]:
        entry = source_entry(document["by"], added["source"])
        for instant in MAXIMA:
            if instant in added:
                entry[instant] = max(entry.get(instant, 0), added[instant])
        entry["success"] = entry.get("success", 0) + added.get("success", 0)
        for name in LISTS:
            entry[name] = [*entry.get(name, ()), *added.get(name, ())]
        for sums in DAILY_SUMS:
            for each in added.get(sums, ()):
                _add_daily_sum(entry, sums, each)
        if "import" in added:
            entry.setdefault("import", added["import"])
    merged: Any = document
    for choice, value in other.items():
        if choice in CHOICES:
            merged.setdefault(choice, value)


def latest_import(document: AddressDocument) -> ImportedCounts | None:
    """Returns the latest imported row of an address; None if there is none."""
    rows = [entry["import"] for entry in document["by"] if "import" in entry]
    return max(rows, key=lambda row: (row["at"], row["success"], row["soft"], row["hard"]), default=None)


def summarize(document: AddressDocument) -> None:
    """Sets `summary`, the summary of all sources that lookups read."""
    by, imported = document["by"], latest_import(document)
    if imported and imported["at"] <= _unblocked_at(document):
        imported = None
    ok = max((entry.get("ok", 0) for entry in by), default=0)
    # A delivery after the import clears the imported bounces.
    imported_bounces = imported if imported and imported["at"] >= ok else None
    hards = [*_hards(by, ok), *_imported(imported_bounces, "hard", IMPORTED_HARD_BOUNCE)]
    softs = [*_softs(by, ok), *_imported(imported_bounces, "soft", "")]
    complaint = max((entry.get("complaint", 0) for entry in by), default=0)
    faults = join_faults(
        [
            *([hard_bounce_class(code), count, at, code, [day]] for day, count, at, code in hards),
            *([soft_bounce_class(code), count, at, code, [day]] for day, count, at, code in softs),
            *([[COMPLAINT, 1, complaint, "", [complaint // DAY_MS]]] if complaint else []),
        ]
    )
    ended = [VerdictRule.UNSUBSCRIBED, document["unsubscribed"], "", 0] if "unsubscribed" in document else None
    document["summary"] = _omit_zeros(
        success=sum(entry.get("success", 0) for entry in by) + (imported["success"] if imported else 0),
        soft=sum(each[1] for each in softs),
        hard=sum(each[1] for each in hards),
        last=max((entry.get("last", 0) for entry in by), default=0),
        verdict=DEFAULT_POLICY.blocking_reason(faults, 0) or ended,
        unblocked=document.get("unblocked"),
        decision=document.get("decision"),
        ended=document.get("unsubscribed"),
    )
    # The index of addresses that may be blocked finds summaries with this field.
    if faults or "decision" in document or "unsubscribed" in document:
        document["summary"]["faults"] = stored_faults(faults)


def _hards(by: Iterable[AddressSourceEntry], ok: int) -> list[DailySum]:
    """Returns the hard bounces since the last delivery, at `ok`, in the form of daily sums."""
    listed = [[at // DAY_MS, 1, at, code] for entry in by for at, code in entry.get("hards", ()) if at >= ok]
    return listed + [each for entry in by for each in entry.get("old_hards", ()) if each[2] >= ok]


def _softs(by: Sequence[AddressSourceEntry], ok: int) -> list[DailySum]:
    """Returns the soft bounces since the last delivery, at `ok`, in the form of daily sums."""
    # A daily sum counts as a whole, even if a delivery happened in the middle of the day.
    listed = [[at // DAY_MS, 1, at, code] for at, code in _latest_softs(by, ok).values()]
    return listed + [each for entry in by for each in entry.get("old_softs", ()) if each[2] >= ok]


def _imported(row: ImportedCounts | None, name: Literal["soft", "hard"], code: str) -> list[DailySum]:
    """Returns the bounces of an imported row in the form of daily sums."""
    return [[row["at"] // DAY_MS, row[name], row["at"], code]] if row and row[name] else []


def _omit_zeros(**summary: Any) -> Any:
    """Returns the summary without zeros, to keep the index that holds all summaries small."""
    return {name: value for name, value in summary.items() if value}


def _latest_softs(by: Iterable[AddressSourceEntry], ok: int) -> dict[tuple[bytes, int], list[Any]]:
    """Returns the latest soft bounce since the last delivery, at `ok`, by message and day."""
    softs: dict[tuple[bytes, int], list[Any]] = {}
    for entry in by:
        for message, day, at, code in entry.get("messages", ()):
            if at and at >= ok and [at, code] > softs.get((bytes(message), day), [0, ""]):
                softs[bytes(message), day] = [at, code]
    return softs


# ---- a domain


def new_domain(organization_id: str, domain: str) -> DomainDocument:
    """Returns the document of a domain without events."""
    return {"org": organization_id, "domain": domain, "by": []}


def add_event_to_domain(document: DomainDocument, event: LedgerEvent, counts: OutcomeCounts) -> None:
    """Adds an event and its counts to its domain."""
    entry = source_entry(document["by"], event.source)
    if event.blocks_domain:
        entry["refusal"] = max(entry.get("refusal", [0, ""]), [event.at, event.code])
    day = _day_counts(entry, event.day)
    for place, count in enumerate((counts.success, counts.soft, counts.hard), 1):
        day[place] += count
    if event.domain_answered:
        day[4] = True
    elif event.connection_failed and event.message not in day[5]:
        day[5] = [*day[5], event.message][:DEAD_MESSAGES]


def _day_counts(entry: DomainSourceEntry, day: int) -> DayCounts:
    """Returns the counts of a day. Adds them if they do not exist."""
    days = entry.setdefault("days", [])
    counts = next((each for each in reversed(days) if each[0] == day), None)
    if counts is None:
        counts = [day, 0, 0, 0, False, []]
        days.append(counts)
    return counts


def summarize_domain(document: DomainDocument) -> None:
    """Sets `summary` and `recent`, the summaries of all sources. Adds days beyond the history to the sums."""
    by = document["by"]
    for entry in by:
        _compact(entry)
    days = [each for entry in by for each in entry.get("days", ())]
    sums = {
        name: sum(each[place] for each in days) + sum(entry.get(name, 0) for entry in by)
        for place, name in enumerate(COUNTS, 1)
    }
    refusal = max((entry["refusal"] for entry in by if "refusal" in entry), default=None)
    failed = [] if refusal else failed_days(by)
    document["summary"] = _omit_zeros(**sums, refusal=refusal, failed_days=failed, decision=document.get("decision"))
    document["recent"] = _recent(days)


def _recent(days: Iterable[DayCounts]) -> list[RecentDay]:
    """Returns the mail of the latest three days, which is indexed to find high bounce rates."""
    sums: dict[int, list[int]] = {}
    for day, success, soft, hard, *_ in days:
        sent, bounced = sums.get(day, (0, 0))
        sums[day] = [sent + success + soft + hard, bounced + soft + hard]
    return [{"day": day, "sent": sums[day][0], "bounced": sums[day][1]} for day in sorted(sums)[-RECENT_DAYS:]]


def _compact(entry: DomainSourceEntry) -> None:
    """Keeps 400 days, and adds earlier days to the sums. Drops the digests of days on which a server answered."""
    days = entry.get("days", [])
    days.sort()
    for each in days[:-HISTORY_DAYS]:
        for place, name in enumerate(COUNTS, 1):
            entry[name] = entry.get(name, 0) + each[place]
    del days[:-HISTORY_DAYS]
    for each in days:
        if each[4]:
            each[5] = []
