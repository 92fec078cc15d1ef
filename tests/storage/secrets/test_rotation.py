"""Rotation of secrets: ends, their order, and the limit of valid ones."""

from datetime import UTC, datetime, timedelta

import pytest

from storage.errors import Conflict
from storage.secrets.rotation import MAX_PREVIOUS_SECRETS, RotatedSecret, rotated

AT = datetime(2026, 12, 1, tzinfo=UTC)


class NamedSecret(RotatedSecret):
    """A secret with a name."""

    name: str


def in_s(seconds: int) -> datetime:
    return AT + timedelta(seconds=seconds)


def test_replaced_secret_ends_after_the_grace_period() -> None:
    first, second = NamedSecret(name="first"), NamedSecret(name="second")
    assert rotated([first], second, AT, 60) == [second, {"name": "first", "until": in_s(60)}]
    assert rotated([first], second, AT, 0) == [second]
    assert first == {"name": "first"}


def test_earlier_secrets_keep_their_ends_until_they_end() -> None:
    stored = [
        NamedSecret(name="present"),
        NamedSecret(name="longer", until=in_s(90)),
        NamedSecret(name="shorter", until=in_s(1)),
        NamedSecret(name="ended", until=AT),
    ]
    names_and_ends = [(each["name"], each.get("until")) for each in rotated(stored, NamedSecret(name="new"), AT, 60)]
    assert names_and_ends == [("new", None), ("present", in_s(60)), ("longer", in_s(90)), ("shorter", in_s(1))]


def test_too_many_valid_secrets_are_refused() -> None:
    newest, present = NamedSecret(name="new"), NamedSecret(name="present")
    earlier = [NamedSecret(name=str(number), until=in_s(1)) for number in range(MAX_PREVIOUS_SECRETS)]
    assert len(rotated([present, *earlier], newest, AT, 0)) == MAX_PREVIOUS_SECRETS + 1
    assert len(rotated([present, *earlier[1:]], newest, AT, 60)) == MAX_PREVIOUS_SECRETS + 1
    with pytest.raises(Conflict):
        rotated([present, *earlier], newest, AT, 60)
