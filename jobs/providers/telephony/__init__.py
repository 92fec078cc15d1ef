"""Telephony services behind one protocol."""

from jobs.providers.telephony.protocol import (
    CallActive,
    CallDeferred,
    CallEnded,
    CallRefused,
    CallStarted,
    CallState,
    CallUnknown,
    CallUntraceable,
    ServiceSilent,
    StartOutcome,
    StartUncertain,
    Telephony,
)

__all__ = [
    "CallActive",
    "CallDeferred",
    "CallEnded",
    "CallRefused",
    "CallStarted",
    "CallState",
    "CallUnknown",
    "CallUntraceable",
    "ServiceSilent",
    "StartOutcome",
    "StartUncertain",
    "Telephony",
]
