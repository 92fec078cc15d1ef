"""Decides whether a domain is unreachable: all connections of its last days failed, but not for the sender's own fault.

Pure; no I/O. The failed connections of a source count only on days on which servers of other domains took mail from
the source (ADR 77). These deliveries may become known later, and in another partition. So a domain's summary holds the
failed days, and each lookup decides.
"""

from collections.abc import Collection, Iterable
from typing import Any

from storage.mail.documents import DomainSourceEntry

DEAD_DAYS = 3
DEAD_MESSAGES = 20
"""A domain is dead if all connections of its last `DEAD_DAYS` days failed, for at least this many messages."""

MAX_FAILED_DAYS = 14
"""How many of a domain's latest failed days its summary holds: more than `DEAD_DAYS`, as outages add days."""

DIGEST_BYTES = 8
"""Length of a message's digest in the ledger."""

FailedDay = list[Any]
"""A day on which a source could not reach a domain: [day, name of the source, digests of the messages, joined]."""

SourceDay = tuple[int, str]
"""A day and the name of a source."""


def failed_days(by: Iterable[DomainSourceEntry]) -> list[FailedDay]:
    """Returns the days since the domain's latest answer on which connections failed, in order.

    Returns an empty list if the domain could not be dead even if all these days counted.
    """
    days = [(each, entry["source"]) for entry in by for each in entry.get("days", ())]
    answered = max((each[0] for each, _ in days if each[4]), default=-1)
    # Days without an attempt don't count: they have only expired messages and complaints.
    failed = [
        [each[0], source, b"".join(sorted(map(bytes, each[5])))]
        for each, source in days
        if each[5] and each[0] > answered
    ]
    latest = _latest_days(failed, MAX_FAILED_DAYS)
    kept = sorted(each for each in failed if each[0] in latest)
    return kept if len(latest) >= DEAD_DAYS and len(_messages(kept)) >= DEAD_MESSAGES else []


def dead_day(failed: Iterable[FailedDay], delivered: Collection[SourceDay]) -> int | None:
    """Returns the latest day that shows that a domain is dead; None if it is not. Takes days of `failed_days`.

    `delivered` has the days on which a source delivered mail. A day without deliveries of its source shows nothing.
    """
    counted = [each for each in failed if (each[0], each[1]) in delivered]
    latest = _latest_days(counted, DEAD_DAYS)
    messages = _messages(each for each in counted if each[0] in latest)
    return latest[-1] if len(latest) == DEAD_DAYS and len(messages) >= DEAD_MESSAGES else None


def _latest_days(failed: Iterable[FailedDay], count: int) -> list[int]:
    return sorted({each[0] for each in failed})[-count:]


def _messages(failed: Iterable[FailedDay]) -> set[bytes]:
    """Returns the digests of the messages, each once."""
    return {
        digests[start : start + DIGEST_BYTES]
        for digests in (bytes(each[2]) for each in failed)
        for start in range(0, len(digests), DIGEST_BYTES)
    }
