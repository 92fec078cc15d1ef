"""The call lists of the demo's operators. All numbers come from the range that Ofcom reserves for drama."""

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import cycle, islice

from server.demo.cast import DemoUser, user

_NAMES = ("Aya", "Ben", "Chie", "Dario", "Eun-ji", "Fatima", "Goro", "Helen", "Ikram", "Jun", "Kamala", "Leo", "Mio")
_WEEKENDS = {"start": "10:00", "end": "12:00", "timeZone": "Asia/Tokyo", "weekdays": ["SAT", "SUN"]}


@dataclass(frozen=True, slots=True)
class DemoCallList:
    """An operator's call list. `more` holds further input fields of launchCallJob.

    `key` is the idempotency key, so it and the input must not change.
    """

    key: str
    operator: DemoUser
    name: str
    scenario: str
    csv: str
    more: Mapping[str, object]

    @property
    def input(self) -> dict[str, object]:
        """Returns the input of launchCallJob."""
        fields = {"name": self.name, "scenario": self.scenario, "csv": self.csv, "idempotencyKey": self.key}
        return {**fields, **self.more}


def call_limits() -> tuple[tuple[DemoUser, dict[str, object]], ...]:
    """Returns the call limits of each organization, with the admin who sets them."""
    return (
        (user("hana"), {"concurrentCalls": 4, "callsPerSecond": 1.0}),
        (user("priya"), {"concurrentCalls": 2, "callsPerSecond": 0.5}),
    )


def call_lists() -> tuple[DemoCallList, ...]:
    """Returns the lists. The first takes half an hour, the second has invalid rows, the third is for weekends.

    The last list is of the other organization.
    """
    ken, liam = user("ken"), user("liam")
    hike = "{name}さん、土曜の山歩会はいらっしゃいますか。"
    retries = {"maxAttempts": 2, "retryDelayS": 120}
    return (
        DemoCallList("demo-calls-hike", ken, "土曜の山歩会", hike, _csv(0, 150), retries),
        DemoCallList("demo-calls-typos", ken, "新しい会員", "ようこそ、{name}さん。", _csv(150, 20) + _TYPOS, {}),
        DemoCallList(
            "demo-calls-books", ken, "返却のお願い", "本をお返しください。", _csv(180, 40), {"window": _WEEKENDS}
        ),
        DemoCallList("demo-calls-drill", liam, "On-call drill", "This is a drill, {name}.", _csv(300, 60), retries),
    )


_TYPOS = "090-1234-5678,Nao\n+4477,Omar\n"


def _csv(first: int, count: int) -> str:
    names = islice(cycle(_NAMES), count)
    rows = (f"+447700900{number:03},{name}\n" for number, name in enumerate(names, first))
    return "phone_number,name\n" + "".join(rows)
