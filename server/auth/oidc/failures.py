"""Failures of a sign-in. The person sees them by their code (docs/sign-in.md)."""

from enum import Enum


class SignInFailure(Enum):
    """Stable code of a failed sign-in."""

    EXPIRED = "EXPIRED"
    REFUSED = "REFUSED"
    INVALID = "INVALID"
    CLAIMS = "CLAIMS"
    DOMAIN = "DOMAIN"
    INVITATION = "INVITATION"
    LOCAL_ACCOUNT = "LOCAL_ACCOUNT"
    DEACTIVATED = "DEACTIVATED"
    UNAVAILABLE = "UNAVAILABLE"


class SignInFailed(Exception):
    """The sign-in failed. The reason is for the log, and repeats no secret."""

    def __init__(self, failure: SignInFailure, reason: str) -> None:
        super().__init__(reason)
        self.failure = failure
