"""The protocol of telephony services, and the outcomes of calls. Methods return expected outcomes, never raise."""

from dataclasses import dataclass
from typing import Protocol

from storage.calls.call_changes import Call
from storage.calls.records import CallOutcome


@dataclass(frozen=True, slots=True)
class CallStarted:
    """The call was started; reports follow. `reference` is the service's id of the call, if it does not use callId."""

    reference: str | None = None


@dataclass(frozen=True, slots=True)
class CallDeferred:
    """The call was provably not started, and may be retried. `hold_off_s`: how long the organization starts no call."""

    hold_off_s: float = 0.0


@dataclass(frozen=True, slots=True)
class CallRefused:
    """The call was provably not started and never will be."""

    reason: str


@dataclass(frozen=True, slots=True)
class StartUncertain:
    """It is unknown whether the call was started. The service must be queried later."""

    reason: str


StartOutcome = CallStarted | CallDeferred | CallRefused | StartUncertain


@dataclass(frozen=True, slots=True)
class CallActive:
    """The call is active."""


@dataclass(frozen=True, slots=True)
class CallEnded:
    """The call has ended. `outcome` is None if the service does not know how the call ended."""

    outcome: CallOutcome | None


@dataclass(frozen=True, slots=True)
class CallNotFound:
    """The service does not know the call."""


@dataclass(frozen=True, slots=True)
class CallUntraceable:
    """The service has no active call to this number, and cannot say whether an earlier call was this one."""


@dataclass(frozen=True, slots=True)
class QueryFailed:
    """The service did not respond, or its response does not contain the state."""

    reason: str


CallState = CallActive | CallEnded | CallNotFound | CallUntraceable | QueryFailed


class Telephony(Protocol):
    """Starts and queries calls. Reports arrive by `reportCall` or by signed callbacks, not through this protocol."""

    honours_not_after: bool
    """Whether the service itself refuses calls that arrive after notAfter."""

    async def start(self, call: Call) -> StartOutcome:
        """Starts the call. A service that stores callIds starts one call only, even if the request is repeated."""
        ...

    async def look_up(self, call: Call) -> CallState:
        """Returns the state of a call whose report is overdue."""
        ...

    async def aclose(self) -> None:
        """Closes connections."""
        ...
