"""Rotation of secrets: a new secret replaces the present one, which stays valid for a while."""

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import NotRequired, TypedDict, TypeVar, cast

from storage.errors import Conflict

MAX_PREVIOUS_SECRETS = 4
"""Number of secrets from before a rotation that may be valid at a time."""


class RotatedSecret(TypedDict):
    """A stored secret, as far as a rotation reads it."""

    until: NotRequired[datetime]
    """When the secret ends; absent for the newest secret."""


Secret = TypeVar("Secret", bound=RotatedSecret)


def rotated(stored: Sequence[Secret], newest: Secret, at: datetime, grace_s: int) -> list[Secret]:
    """Returns the secrets that are valid, the newest first. Secrets that already end keep their ends.

    The other secrets end `grace_s` seconds after `at`. Raises: Conflict for too many secrets.
    """
    until = at + timedelta(seconds=grace_s)
    ending = [cast(Secret, {"until": until, **each}) for each in stored]
    valid = [each for each in ending if each["until"] > at]
    if len(valid) > MAX_PREVIOUS_SECRETS:
        raise Conflict(f"{MAX_PREVIOUS_SECRETS} earlier secrets are valid. Wait until one ends, or choose graceS 0.")
    return [newest, *valid]
