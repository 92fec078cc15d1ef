"""Trends of topics: how many people posted lately. Each person counts once, and less with time (docs/semantics.md, 2).

The head of a topic holds the people who posted last. A person who posts again is moved to the end of the list. That
happens at most once a minute, so that most batches do not write the list.
"""

import math
from collections.abc import Sequence

from storage.chat.documents import PosterDocument
from storage.streams.changes import Batch
from storage.streams.heads import HEAT_TAU_S

MAX_POSTERS = 50
"""Maximum number of people whom a topic remembers and counts: those who posted last."""

RENEWED_AFTER_S = 60
"""How long a person who posts again keeps the earlier time. A shorter time would cost more writes."""

COUNTED_S = 1800
"""How recently a person must have posted to be among the `people` of a trending topic."""


def count_poster(batch: Batch, user_id: str) -> None:
    """Counts the author of a message among the people of the topic."""
    now_s = int(batch.at.timestamp())
    posters: list[PosterDocument] = batch.head.get("posters", [])
    if any(each["u"] == user_id and now_s - each["at"] < RENEWED_AFTER_S for each in posters):
        return
    others = [each for each in posters if each["u"] != user_id]
    newest = [*others, PosterDocument(u=user_id, at=now_s)][-MAX_POSTERS:]
    batch.change_head(posters=newest, trend=_trend(newest))


def _trend(posters: Sequence[PosterDocument]) -> float:
    """Returns ln(decayed number of people) + now/tau, which orders topics at any instant without updates."""
    newest = max(each["at"] for each in posters)
    return math.log(math.fsum(math.exp((each["at"] - newest) / HEAT_TAU_S) for each in posters)) + newest / HEAT_TAU_S


def trend_of(people: float, now_s: float) -> float:
    """Returns the trend of a topic with this decayed number of people at an instant in Unix seconds."""
    return math.log(people) + now_s / HEAT_TAU_S


def recent_people(posters: Sequence[PosterDocument], now_s: float) -> int:
    """Returns how many of the people posted in the last half hour, at most 50."""
    return sum(now_s - each["at"] < COUNTED_S for each in posters)
