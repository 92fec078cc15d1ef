"""Idempotency keys of mutations. The digest of the arguments covers all fields of an input, also fields added later."""

from dataclasses import fields, is_dataclass
from datetime import UTC, datetime
from enum import Enum
from typing import Any

from strawberry import UNSET

from storage.idempotency import IdempotencyKey, idempotency_key
from storage.identity.records import User

KEY_DESCRIPTION = (
    "Makes retries safe. The same key from the same user within 24 hours returns the object that the first call "
    "created; with other arguments it is a CONFLICT. 1 to 200 characters."
)
"""Description of the input field `idempotencyKey`."""


def input_key(viewer: User, mutation: str, input: Any, **fingerprints: str) -> IdempotencyKey | None:
    """Returns the idempotency key of an input object with a field `idempotency_key`, or None without a key.

    `fingerprints` are by the names of secret fields. The digest covers a fingerprint instead of the field's value.
    Raises: BadUserInput for an empty or overlong key.
    """
    arguments = _plain(input) | fingerprints
    key = arguments.pop("idempotency_key", None)
    return idempotency_key(viewer.organization_id, viewer.id, mutation, key, arguments)


def _plain(value: Any) -> Any:
    """Returns an input value as JSON values, without omitted fields and nulls. Equal instants are equal texts."""
    if is_dataclass(value):
        plain = {field.name: _plain(getattr(value, field.name)) for field in fields(value)}
        return {name: each for name, each in plain.items() if each is not None}
    if isinstance(value, list):
        return [_plain(each) for each in value]
    if isinstance(value, Enum):
        return value.value
    if isinstance(value, datetime):
        return (value.astimezone(UTC) if value.tzinfo else value).isoformat()
    return None if value is UNSET else value
