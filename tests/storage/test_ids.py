"""Generated ids: unique, URL-safe, sortable."""

import re
import time

from storage.ids import new_id


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
