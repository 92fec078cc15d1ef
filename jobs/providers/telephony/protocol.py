"""What a broker asks of a telephony service, and what it may be told. Providers never raise for what can happen."""

from dataclasses import dataclass
from typing import Protocol

from storage.calls.call_changes import Call
from storage.calls.records import CallOutcome


@dataclass(frozen=True, slots=True)
class Began:
    """The call is made; reports follow. `reference` is the service's own name of it, where it knows no callId."""

    reference: str | None = None


@dataclass(frozen=True, slots=True)
class NotNow:
    """The call was provably not made, and may be tried again, after `hold_off_s` for the whole organization."""

    hold_off_s: float = 0.0


@dataclass(frozen=True, slots=True)
class Refused:
    """The call was provably not made and never will be."""

    reason: str


@dataclass(frozen=True, slots=True)
class Unclear:
    """Nobody can say whether the call was made: ask later."""

    reason: str


Answer = Began | NotNow | Refused | Unclear


@dataclass(frozen=True, slots=True)
class Active:
    """The call is under way."""


@dataclass(frozen=True, slots=True)
class Ended:
    """The call is over. Without an outcome nobody knows how."""

    outcome: CallOutcome | None


@dataclass(frozen=True, slots=True)
class Never:
    """The service never heard of the call."""


@dataclass(frozen=True, slots=True)
class Untraceable:
    """The service answered, and can't tell whether it knows the call: no such call is under way."""


@dataclass(frozen=True, slots=True)
class Silent:
    """The service did not answer."""

    reason: str


Found = Active | Ended | Never | Untraceable | Silent


class Telephony(Protocol):
    """Makes calls. Reports come by `reportCall` or by signed callbacks, not through here."""

    honours_not_after: bool
    """Whether the service itself refuses what arrives too late."""

    async def start(self, call: Call) -> Answer:
        """Makes the call. Sent twice it is made once, where the service can tell."""
        ...

    async def look_up(self, call: Call) -> Found:
        """What became of a call that nothing is heard of."""
        ...

    async def aclose(self) -> None:
        """Closes connections."""
        ...
