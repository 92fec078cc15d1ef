"""What the demo's operators have called. The numbers are those that the regulator keeps for films: nobody has them."""

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import cycle, islice

from server.demo.cast import DemoUser, user

_NAMES = ("Aya", "Ben", "Chie", "Dario", "Eun-ji", "Fatima", "Goro", "Helen", "Ikram", "Jun", "Kamala", "Leo", "Mio")
_WEEKENDS = {"start": "10:00", "end": "12:00", "timeZone": "Asia/Tokyo", "weekdays": ["SAT", "SUN"]}


@dataclass(frozen=True, slots=True)
class DemoList:
    """A list of an operator's; `more` are further fields of the input. `key` stays what it is, and so does the rest."""

    key: str
    operator: DemoUser
    name: str
    scenario: str
    csv: str
    more: Mapping[str, object]

    @property
    def input(self) -> dict[str, object]:
        """As launchCallJob takes it."""
        given = {"name": self.name, "scenario": self.scenario, "csv": self.csv, "idempotencyKey": self.key}
        return {**given, **self.more}


def limits() -> tuple[tuple[DemoUser, dict[str, object]], ...]:
    """Who sets which limits of their organization."""
    return (
        (user("hana"), {"concurrentCalls": 4, "callsPerSecond": 1.0}),
        (user("priya"), {"concurrentCalls": 2, "callsPerSecond": 0.5}),
    )


def lists() -> tuple[DemoList, ...]:
    """One that is called for half an hour, one with bad rows, one that waits for the weekend; and the other house's."""
    ken, liam = user("ken"), user("liam")
    hike = "{name}さん、土曜の山歩会はいらっしゃいますか。"
    again = {"maxAttempts": 2, "retryDelayS": 120}
    return (
        DemoList("demo-calls-hike", ken, "土曜の山歩会", hike, _csv(0, 150), again),
        DemoList("demo-calls-typos", ken, "新しい会員", "ようこそ、{name}さん。", _csv(150, 20) + _TYPOS, {}),
        DemoList("demo-calls-books", ken, "返却のお願い", "本をお返しください。", _csv(180, 40), {"window": _WEEKENDS}),
        DemoList("demo-calls-drill", liam, "On-call drill", "This is a drill, {name}.", _csv(300, 60), again),
    )


_TYPOS = "090-1234-5678,Nao\n+4477,Omar\n"


def _csv(first: int, count: int) -> str:
    names = islice(cycle(_NAMES), count)
    rows = (f"+447700900{number:03},{name}\n" for number, name in enumerate(names, first))
    return "phone_number,name\n" + "".join(rows)
