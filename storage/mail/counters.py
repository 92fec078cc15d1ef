"""What is remembered of an address and of a domain, apart for each source, and what follows from it. Pure; no I/O.

Facts are sums, maxima and sets, so the order in which events come in does not matter, and a source can be taken out
again as if it had never been (ADR 25). Instants are milliseconds and days are counted, both since the Unix epoch.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

from storage.mail.classifier import EXPIRED, KILLS_DOMAIN, Outcome
from storage.mail.epoch_time import DAY_MS
from storage.mail.records import VerdictRule

Facts = dict[str, Any]
WINDOW_DAYS = 14
"""For so long the ledger is kept: nothing older than 13 days comes in any more."""

SOFT_DAYS = 3
DEAD_DAYS = 3
DEAD_MESSAGES = 20
HISTORY_DAYS = 400
RECENT_DAYS = 3
"""Yesterday and today, and tomorrow by the clocks of mail servers that are ahead."""

DAILY_SUMS = ("old_softs", "old_hards")
MAX_BOUNCES = 10_000
"""So many bounces of an address are kept one by one for each source, the newest; older ones as sums of their days."""


@dataclass(frozen=True, slots=True)
class LedgerEvent:
    """An event as the ledger keeps it. `message` tells messages apart, `failed` is a connection that failed."""

    id: bytes
    source: str
    address: bytes
    domain: str
    at: int
    outcome: Outcome
    message: bytes
    smtp_code: int | None = None
    status: str | None = None
    failed: bool = False

    @property
    def day(self) -> int:
        """The UTC day of the event."""
        return self.at // DAY_MS

    @property
    def answered(self) -> bool:
        """Whether somebody at the domain did. Who ran out of time or complains much later says nothing of that."""
        expired = self.smtp_code is None and self.status == EXPIRED
        return not (self.failed or expired or self.outcome is Outcome.COMPLAINT)

    @property
    def code(self) -> str:
        """What the server answered, for people: "550 5.1.1"."""
        return " ".join(str(part) for part in (self.smtp_code, self.status) if part)


@dataclass(slots=True)
class OutcomeCounts:
    """What a day's events add to a domain."""

    success: int = 0
    soft: int = 0
    hard: int = 0


# ---- an address


def new_address(organization_id: str, domain: str) -> Facts:
    """An address of which nothing is known."""
    return {"org": organization_id, "domain": domain, "by": []}


def source_entry(document: Facts, source: str) -> Facts:
    """What one source said; made when it is the first time."""
    by: list[Facts] = document["by"]
    for entry in by:
        if entry["source"] == source:
            return entry
    by.append({"source": source})
    return by[-1]


def add_event(document: Facts, row: LedgerEvent) -> OutcomeCounts:
    """Adds an event to its address, which is then to be pruned. Returns what it counts for the domain."""
    entry = source_entry(document, row.source)
    entry["last"] = max(entry.get("last", 0), row.at)
    counts = OutcomeCounts()
    # What came before somebody unblocked the address counts for the domain only.
    is_new = row.at > _unblocked_at(document)
    match row.outcome:
        case Outcome.DELIVERED:
            counts.success = 1
            if is_new:
                entry["success"] = entry.get("success", 0) + 1
                entry["ok"] = max(entry.get("ok", 0), row.at)
        case Outcome.HARD:
            counts.hard = 1
            if is_new:
                entry.setdefault("hards", []).append([row.at, row.code])
        case Outcome.SOFT | Outcome.DOMAIN:
            soft_at = row.at if is_new and row.outcome is Outcome.SOFT else 0
            counts.soft = int(_note_message(entry, row, soft_at))
        case Outcome.COMPLAINT if is_new:
            entry["complaint"] = max(entry.get("complaint", 0), row.at)
    return counts


def _unblocked_at(document: Facts) -> int:
    unblocked: Facts = document.get("unblocked", {})
    return int(unblocked.get("at", -1))


def _note_message(entry: Facts, row: LedgerEvent, soft_at: int) -> bool:
    """Notes a message's soft bounce of a day at its latest; whether that message and day are new."""
    by_message, key = _by_message(entry), (row.message, row.day)
    noted = by_message.get(key)
    if noted is None:
        by_message[key] = [row.message, row.day, soft_at, row.code if soft_at else ""]
    elif soft_at > noted[2]:
        noted[2], noted[3] = soft_at, row.code
    return noted is None


def _by_message(entry: Facts) -> dict[tuple[bytes, int], list[Any]]:
    """Soft bounces by message and day, for as long as events are added; `prune` makes a list of them again."""
    noted = entry.get("messages", [])
    if not isinstance(noted, dict):
        noted = entry["messages"] = {(bytes(each[0]), each[1]): each for each in noted}
    return noted


def prune(document: Facts, now: int) -> None:
    """Forgets bounces before the window that their source's success cleared, and sums up the oldest of too many."""
    oldest_day = now // DAY_MS - WINDOW_DAYS - 1
    for entry in document["by"]:
        ok = entry.get("ok", 0)
        if messages := entry.get("messages"):
            listed = list(messages.values()) if isinstance(messages, dict) else messages
            kept = [each for each in listed if each[1] >= oldest_day or each[2] > ok]
            entry["messages"] = _keep_newest(
                entry, "old_softs", kept, lambda each: (each[1], each[2]), lambda each: each[2:]
            )
        if hards := entry.get("hards"):
            kept = [each for each in hards if each[0] // DAY_MS >= oldest_day or each[0] >= ok]
            entry["hards"] = _keep_newest(entry, "old_hards", kept, lambda each: each[0], lambda each: each)
        for sums in DAILY_SUMS:
            if sums in entry:
                entry[sums] = [each for each in entry[sums] if each[0] >= oldest_day or each[2] >= ok]


def _keep_newest(
    entry: Facts, sums: str, bounces: list[Any], when: Callable[[Any], Any], bounce: Callable[[Any], list[Any]]
) -> list[Any]:
    """The newest of the bounces. The others go into the sums of their days: day, how many, the latest and its code."""
    if len(bounces) <= MAX_BOUNCES:
        return bounces
    bounces.sort(key=when)
    for each in bounces[:-MAX_BOUNCES]:
        at, code = bounce(each)
        if at:
            _add_daily_sum(entry, sums, [at // DAY_MS, 1, at, code])
    return bounces[-MAX_BOUNCES:]


def _add_daily_sum(entry: Facts, sums: str, added: list[Any]) -> None:
    days: list[list[Any]] = entry.setdefault(sums, [])
    for each in reversed(days):
        if each[0] == added[0]:
            each[1:] = [each[1] + added[1], *max(each[2:], added[2:])]
            return
    days.append(added)


def reset_counters(document: Facts, at: int) -> None:
    """Starts the counters over as of an instant. Which messages were counted for the domain stays known."""
    document["unblocked"] = {"at": max(at, document.get("told", {}).get("last", 0))}
    for entry in document["by"]:
        kept = {name: entry[name] for name in ("source", "last", "import") if name in entry}
        kept["messages"] = [[message, day, 0, ""] for message, day, *_ in entry.get("messages", ())]
        entry.clear()
        entry.update(kept)


def merge(document: Facts, other: Facts) -> None:
    """Adds what is known under another hash of the same address; no event may be in both."""
    for theirs in other["by"]:
        ours = source_entry(document, theirs["source"])
        for name in ("ok", "last", "complaint"):
            if name in theirs:
                ours[name] = max(ours.get(name, 0), theirs[name])
        ours["success"] = ours.get("success", 0) + theirs.get("success", 0)
        for name in ("hards", "messages"):
            ours[name] = [*ours.get(name, ()), *theirs.get(name, ())]
        for name in DAILY_SUMS:
            for each in theirs.get(name, ()):
                _add_daily_sum(ours, name, each)
        if "import" in theirs:
            ours.setdefault("import", theirs["import"])
    if "unblocked" in other:
        document.setdefault("unblocked", other["unblocked"])


def latest_import(document: Facts) -> Facts:
    """What the latest import said of an address; empty when none did."""
    found: list[Facts] = [entry["import"] for entry in document["by"] if "import" in entry]
    return max(found, key=lambda entry: (entry["at"], entry["success"], entry["soft"], entry["hard"]), default={})


def summarize(document: Facts) -> None:
    """Writes down under `told` what follows from all sources together: what a lookup reads, without zeros."""
    by, old = document["by"], latest_import(document)
    if old and old["at"] <= _unblocked_at(document):
        old = {}
    ok = max((entry.get("ok", 0) for entry in by), default=0)
    hards = [each for entry in by for each in entry.get("hards", ()) if each[0] >= ok]
    softs = list(_softs(by, ok).values())
    # What was summed up counts as a whole: a success in the middle of a day does not take a day's sum apart.
    old_softs, old_hards = (
        [each for entry in by for each in entry.get(name, ()) if each[2] >= ok] for name in DAILY_SUMS
    )
    counts = old if old and old["at"] >= ok else {}
    days = {at // DAY_MS for at, _ in softs} | {each[0] for each in old_softs}
    if counts.get("soft"):
        days.add(old["at"] // DAY_MS)
    latest_hards = [*hards, *(each[2:] for each in old_hards)]
    if counts.get("hard"):
        latest_hards.append([old["at"], "in the older book"])
    complaint = max((entry.get("complaint", 0) for entry in by), default=0)
    document["told"] = _omit_zeros(
        success=sum(entry.get("success", 0) for entry in by) + old.get("success", 0),
        soft=len(softs) + sum(each[1] for each in old_softs) + counts.get("soft", 0),
        hard=len(hards) + sum(each[1] for each in old_hards) + counts.get("hard", 0),
        last=max((entry.get("last", 0) for entry in by), default=0),
        saw=_blocking_reason(complaint, latest_hards, [*softs, *(each[2:] for each in old_softs)], days),
        unblocked=document.get("unblocked"),
    )


def _omit_zeros(**told: Any) -> Facts:
    """An index holds it too, for each address and each domain."""
    return {name: value for name, value in told.items() if value}


def _softs(by: Iterable[Facts], ok: int) -> dict[tuple[bytes, int], list[Any]]:
    """Soft bounces since the last success by message and day, each at its latest."""
    softs: dict[tuple[bytes, int], list[Any]] = {}
    for entry in by:
        for message, day, at, code in entry.get("messages", ()):
            if at and at >= ok and [at, code] > softs.get((bytes(message), day), [0, ""]):
                softs[bytes(message), day] = [at, code]
    return softs


def _blocking_reason(complaint: int, hards: list[Any], softs: list[Any], days: set[int]) -> list[Any] | None:
    """The rule that blocks, and what it saw: an instant, a code, a number of days. None when nothing blocks."""
    if complaint:
        return [VerdictRule.COMPLAINED, complaint, "", 0]
    if hards:
        return [VerdictRule.HARD_BOUNCED, *max(hards), 0]
    if len(days) >= SOFT_DAYS:
        return [VerdictRule.SOFT_BOUNCED_REPEATEDLY, *max(softs), len(days)]
    return None


# ---- a domain


def new_domain(organization_id: str, domain: str) -> Facts:
    """A domain of which nothing is known."""
    return {"org": organization_id, "domain": domain, "by": []}


def add_event_to_domain(document: Facts, row: LedgerEvent, counts: OutcomeCounts) -> None:
    """Adds an event, and what it counts, to its domain."""
    entry = source_entry(document, row.source)
    if row.status in KILLS_DOMAIN and row.outcome is Outcome.HARD:
        entry["gone"] = max(entry.get("gone", [0, ""]), [row.at, row.code])
    day = _day(entry, row.day)
    day[1] += counts.success
    day[2] += counts.soft
    day[3] += counts.hard
    if row.answered:
        day[4] = True
    elif row.failed and row.message not in day[5]:
        day[5] = [*day[5], row.message][:DEAD_MESSAGES]


def _day(entry: Facts, day: int) -> list[Any]:
    """A day's counts: day, success, soft, hard, whether anybody answered, messages whose connections failed."""
    days: list[list[Any]] = entry.setdefault("days", [])
    found = next((each for each in reversed(days) if each[0] == day), None)
    if found is None:
        found = [day, 0, 0, 0, False, []]
        days.append(found)
    return found


def summarize_domain(document: Facts) -> None:
    """Writes down under `told` what follows from all sources together, and lets old days go into the sums."""
    by = document["by"]
    for entry in by:
        _compact(entry)
    days = [each for entry in by for each in entry.get("days", ())]
    sums = {
        name: sum(each[place] for each in days) + sum(entry.get(name, 0) for entry in by)
        for place, name in enumerate(("success", "soft", "hard"), 1)
    }
    gone = max((entry["gone"] for entry in by if "gone" in entry), default=None)
    dead = [*gone, 0, 0] if gone else _unreachable(days)
    document["told"] = _omit_zeros(**sums, dead=dead, hand=document.get("hand"))
    document["recent"] = _recent(days)


def _recent(days: Iterable[list[Any]]) -> list[Facts]:
    """The last three days by themselves, by which whoever looks for high rates finds the domain."""
    sums: dict[int, list[int]] = {}
    for day, success, soft, hard, *_ in days:
        sent, bounced = sums.get(day, (0, 0))
        sums[day] = [sent + success + soft + hard, bounced + soft + hard]
    return [{"day": day, "sent": sums[day][0], "bounced": sums[day][1]} for day in sorted(sums)[-RECENT_DAYS:]]


def _compact(entry: Facts) -> None:
    """Keeps 400 days, and the names of failed messages only where they may still tell something."""
    days = entry.get("days", [])
    days.sort()
    for each in days[:-HISTORY_DAYS]:
        for place, name in enumerate(("success", "soft", "hard"), 1):
            entry[name] = entry.get(name, 0) + each[place]
    del days[:-HISTORY_DAYS]
    for each in days:
        if each[4]:
            each[5] = []


def _unreachable(days: list[list[Any]]) -> list[Any] | None:
    """The last three days on which anything was sent, if all connections failed then, on 20 messages or more."""
    # On a day on which messages only ran out of time nobody tried, and nobody was reached.
    last = sorted({each[0] for each in days if each[4] or each[5]})[-DEAD_DAYS:]
    these = [each for each in days if each[0] in last]
    messages = {bytes(message) for each in these for message in each[5]}
    if len(last) < DEAD_DAYS or any(each[4] for each in these) or len(messages) < DEAD_MESSAGES:
        return None
    return [last[-1] * DAY_MS, "", DEAD_DAYS, DEAD_MESSAGES]
