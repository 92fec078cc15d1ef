"""Telephony: whoever really makes the calls, behind one protocol."""

from jobs.providers.telephony.protocol import (
    Active,
    Answer,
    Began,
    Ended,
    Found,
    Never,
    NotNow,
    Refused,
    Silent,
    Telephony,
    Unclear,
    Untraceable,
)

__all__ = [
    "Active",
    "Answer",
    "Began",
    "Ended",
    "Found",
    "Never",
    "NotNow",
    "Refused",
    "Silent",
    "Telephony",
    "Unclear",
    "Untraceable",
]
