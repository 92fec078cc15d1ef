"""Stored bounces of earlier versions are read again by their codes."""

from collections import Counter
from typing import Any

import pytest

from storage.mail.rereading import ReadBounces, reread_address, reread_domain


@pytest.mark.parametrize(("code", "dropped"), [("450 4.1.8", 1), ("4.1.7", 1), ("450 4.1.1", 0), ("452", 0), ("", 0)])
def test_soft_bounce_that_blames_the_sender_is_dropped(code: str, dropped: int) -> None:
    bounce: list[Any] = [b"m", 1, 86_400_000, code]
    document: Any = {"by": [{"source": "mta", "messages": [bounce]}]}
    assert reread_address(document) == ReadBounces(dropped_softs=dropped)
    assert bounce[2:] == ([0, ""] if dropped else [86_400_000, code])
    assert reread_address(document) == ReadBounces()


def test_hard_bounces_are_counted_by_source() -> None:
    document: Any = {"by": [{"source": "a", "hards": [[1, "550"], [2, "550 5.1.1"]]}, {"source": "b"}]}
    assert reread_address(document).unread == Counter({"a": 2})


@pytest.mark.parametrize(
    ("code", "is_kept"),
    [("550 5.1.10", False), ("550 5.1.10 (the domain accepts no mail)", True), ("550 5.1.2", True)],
)
def test_domain_blocked_by_answer_about_one_address_is_open(code: str, is_kept: bool) -> None:
    document: Any = {"by": [{"source": "mta", "refusal": [1, code]}, {"source": "other"}]}
    assert reread_domain(document) == ReadBounces(dropped_domain_blocks=int(not is_kept))
    assert ("refusal" in document["by"][0]) is is_kept


def test_changes_of_chunks_are_added() -> None:
    one, other = ReadBounces(1, 0, Counter(a=1)), ReadBounces(2, 1, Counter(a=1, b=3))
    assert one + other == ReadBounces(3, 1, Counter(a=2, b=3))
