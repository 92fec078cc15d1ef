"""Telephony services behind one protocol."""

from jobs.providers.telephony.protocol import (
    CallActive,
    CallDeferred,
    CallEnded,
    CallNotFound,
    CallRefused,
    CallStarted,
    CallState,
    CallUntraceable,
    QueryFailed,
    StartOutcome,
    StartUncertain,
    Telephony,
)

__all__ = [
    "CallActive",
    "CallDeferred",
    "CallEnded",
    "CallNotFound",
    "CallRefused",
    "CallStarted",
    "CallState",
    "CallUntraceable",
    "QueryFailed",
    "StartOutcome",
    "StartUncertain",
    "Telephony",
]
