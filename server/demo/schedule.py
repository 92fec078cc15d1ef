"""Scheduled posts of the demo: one is due at once, the others within days."""

from dataclasses import dataclass
from datetime import datetime, timedelta
from zoneinfo import ZoneInfo

from server.demo.cast import DemoUser, user

ZONE = ZoneInfo("Asia/Tokyo")
_PLAN = (
    (0, "", "のろし山歩会のページを新しくしました。A new page for our walks!"),
    (1, "07:30", "おはようございます。今日は山頂まで見えています。"),
    (1, "18:00", "Gear night: bring the stove that never lights."),
    (2, "12:15", "お昼の山便り: 稜線の紅葉が見ごろです。"),
    (3, "09:00", "The next walk: two hills, one beacon, soup at the top."),
    (3, "21:00", "初心者向けの歩き方講座、参加者を募集中です。"),
    (5, "09:00", "道具の手入れ、はじめの一歩。"),
    (6, "19:45", "Last call for the winter hut: six beds left."),
    (8, "10:00", "今月の一枚: 朝焼けと狼煙台。"),
)
"""Days from today, local time of day (empty: now) and text of each post."""


@dataclass(frozen=True, slots=True)
class DemoScheduledPost:
    """A post to the followers. It is recognised by its text, which must not change."""

    text: str
    due_at: datetime


def planner() -> DemoUser:
    """Returns the user who schedules all posts."""
    return user("ken")


def scheduled_posts(now: datetime) -> list[DemoScheduledPost]:
    """Returns the posts in order of due times: one due now, the others from tomorrow on."""
    return [DemoScheduledPost(text, _due(now, days, clock)) for days, clock, text in _PLAN]


def _due(now: datetime, days: int, clock: str) -> datetime:
    if not clock:
        return now
    hour, minute = map(int, clock.split(":"))
    return (now.astimezone(ZONE) + timedelta(days=days)).replace(hour=hour, minute=minute, second=0, microsecond=0)
