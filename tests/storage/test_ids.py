"""Generated ids: unique, URL-safe, sortable; and ids that name a type."""

import re
import time

import pytest
from bson import decode, encode

from storage.ids import TYPES_IN_IDS, IdOfType, id_with_type, new_id, stored_id


def test_ids_are_unique_and_url_safe() -> None:
    ids = [new_id() for _ in range(10_000)]
    assert len(set(ids)) == len(ids)
    assert all(re.fullmatch(r"[0-9a-z]{26}", id_) for id_ in ids)


def test_ids_sort_by_creation_time() -> None:
    ids = []
    for _ in range(5):
        ids.append(new_id())
        time.sleep(0.002)
    assert ids == sorted(ids)


@pytest.mark.parametrize("type_name", sorted(TYPES_IN_IDS))
def test_stored_id_is_what_follows_the_type(type_name: str) -> None:
    id_ = stored_id(id_with_type(type_name, "01abc"))
    assert isinstance(id_, IdOfType)
    assert id_.type_name == type_name
    assert id_ == "01abc"
    # The database stores it like any other text.
    assert type(decode(encode({"_id": id_}))["_id"]) is str


@pytest.mark.parametrize("id_", ["", "01abc", "USER:01abc", "auth0|fan", "fanout:01abc", "Fan:Out:1"])
def test_id_without_a_known_type_is_unchanged(id_: str) -> None:
    assert stored_id(id_) is id_
