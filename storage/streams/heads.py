"""Updates of a stream's head. One update allocates timestamps and event numbers (docs/semantics.md, 1)."""

import math
import secrets
from datetime import datetime
from typing import Any

from storage.mongo import Document
from storage.streams.documents import HeadFields
from storage.streams.log import Stream

HEAT_TAU_S = 300.0
"""Time constant of a topic's posting rate: the rate decays by the factor e in five minutes."""

MIN_LOG_RATE = -50.0
"""Lower bound for the logarithm of the rate before a post. Lower rates are negligible, and `exp` would underflow."""

_NOW_MS: Document = {"$toLong": "$$NOW"}
_NOW_TAU: Document = {"$divide": [_NOW_MS, HEAT_TAU_S * 1000]}
"""The database's clock in multiples of the time constant."""


def timestamp_offset_us(stream: Stream) -> int:
    """Returns how many microseconds after the clock's millisecond the timestamps of a batch begin.

    The offset is random for authors and topics. A timeline that merges posts of several authors, or the last messages
    of several topics, then rarely has two items of the same microsecond. No timeline merges other streams: their
    offset is 0.
    """
    return secrets.randbelow(1000) if stream.kind in ("author", "topic") else 0


def head_update(
    stream: Stream, timestamp_count: int, event_count: int, epoch: str, offset_us: int = 0
) -> list[Document]:
    """Returns the update pipeline that allocates k = `timestamp_count` timestamps and `event_count` event numbers.

    It sets `last = max(last + k, now_us + offset_us + k - 1)` and `n += event_count`. `now_us` is the database's clock
    ($$NOW), so wrong clocks of hosts do no harm. Timestamps rise even if the clock of a new primary is behind. Only a
    new stream gets `epoch`. The field `before` keeps the old values for `head_correction`.
    """
    fields: dict[str, Any] = {
        "n": {"$add": [{"$ifNull": ["$n", 0]}, event_count]},
        "epoch": {"$ifNull": ["$epoch", epoch]},
        "committed_at": "$$NOW",
        "before": {"last": "$last", "heat": "$heat"},
    }
    if timestamp_count:
        now_us: Document = {"$multiply": [_NOW_MS, 1000]}
        after_last = {"$add": [{"$ifNull": ["$last", 0]}, timestamp_count]}
        fields["last"] = {"$max": [after_last, {"$add": [now_us, offset_us + timestamp_count - 1]}]}
    if timestamp_count and stream.kind == "topic":
        fields["heat"] = _heat_expression(timestamp_count)
    return [{"$set": fields}]


def head_correction(stream: Stream, head: HeadFields, n: int, last: int, taken: int) -> Document:
    """Returns the update that corrects an allocated head to the numbers and timestamps that its batch used.

    The batch ended at event `n` and took `taken` timestamps, of which `last` is the greatest. If it took none, `last`
    and `heat` are restored: a topic without new posts has no new activity.
    """
    before = head["before"]
    if not taken:
        absent = {field: "" for field in ("last", "heat") if field not in before}
        return {"$set": {"n": n, **before}, **({"$unset": absent} if absent else {})}
    heat = {"heat": _heat(before.get("heat"), taken, head["committed_at"])} if stream.kind == "topic" else {}
    return {"$set": {"n": n, "last": last, **heat}}


def messages_per_minute(heat: float | None, now_s: float) -> float:
    """Returns the decayed posting rate of a topic with this heat at an instant in Unix seconds."""
    return 0.0 if heat is None else math.exp(min(heat - now_s / HEAT_TAU_S, 50.0)) * 60 / HEAT_TAU_S


def _heat_expression(post_count: int) -> Document:
    """Returns ln(decayed count + post_count) + now/tau, which orders topics by rate at any instant without updates."""
    old = {"$max": [MIN_LOG_RATE, {"$subtract": [{"$ifNull": ["$heat", 0.0]}, _NOW_TAU]}]}
    return {"$add": [{"$ln": {"$add": [{"$exp": old}, post_count]}}, _NOW_TAU]}


def _heat(before: float | None, post_count: int, now: datetime) -> float:
    """Computes the value of `_heat_expression` without the database."""
    now_tau = now.timestamp() / HEAT_TAU_S
    old = max(MIN_LOG_RATE, (before or 0.0) - now_tau)
    return math.log(math.exp(old) + post_count) + now_tau
