"""How a stream's head moves: the one update that hands out timestamps and event numbers (docs/semantics.md, 1)."""

import math
import secrets
from typing import Any

from storage.mongo import Document
from storage.streams.log import Stream

HEAT_TAU_S = 300.0
"""How fast a topic cools: its rate decays by e in five minutes."""

_NOW_MS: Document = {"$toLong": "$$NOW"}
_NOW_TAU: Document = {"$divide": [_NOW_MS, HEAT_TAU_S * 1000]}


def spread_us(stream: Stream) -> int:
    """How far into the clock's millisecond the timestamps of a batch begin.

    Posts of many authors must not meet in one microsecond of their organization, nor the last messages of many topics
    in one of their community; of all others only one stream knows.
    """
    return secrets.randbelow(1000) if stream.kind in ("author", "topic") else 0


def head_update(stream: Stream, timestamps: int, events: int, epoch: str, spread_us: int = 0) -> list[Document]:
    """The update pipeline that allocates: `last = max(last + k, now_us + spread_us + k - 1)`, `n += events`.

    `now` is the database's clock ($$NOW), so hosts with wrong clocks do no harm, and a primary whose clock is behind
    can't make timestamps fall. `epoch` is used when the stream is new. `before` is what a batch that takes no timestamp
    after all puts back: a topic where nothing was posted has had no activity.
    """
    fields: dict[str, Any] = {
        "n": {"$add": [{"$ifNull": ["$n", 0]}, events]},
        "epoch": {"$ifNull": ["$epoch", epoch]},
        "committed_at": "$$NOW",
        "before": {"last": "$last", "heat": "$heat"},
    }
    if timestamps:
        now_us: Document = {"$multiply": [_NOW_MS, 1000]}
        free = {"$add": [{"$ifNull": ["$last", 0]}, timestamps]}
        fields["last"] = {"$max": [free, {"$add": [now_us, spread_us + timestamps - 1]}]}
    if timestamps and stream.kind == "topic":
        fields["heat"] = _heated(timestamps)
    return [{"$set": fields}]


def messages_per_minute(heat: float | None, now_s: float) -> float:
    """The decayed posting rate that a heat stands for at a moment (Unix seconds)."""
    return 0.0 if heat is None else math.exp(min(heat - now_s / HEAT_TAU_S, 50.0)) * 60 / HEAT_TAU_S


def _heated(posts: int) -> Document:
    """ln(decayed count) + now/tau: it orders topics by rate at any moment without being touched again."""
    # Below -50 the old rate is nothing beside one post, and exp would underflow.
    old = {"$max": [-50.0, {"$subtract": [{"$ifNull": ["$heat", 0.0]}, _NOW_TAU]}]}
    return {"$add": [{"$ln": {"$add": [{"$exp": old}, posts]}}, _NOW_TAU]}
