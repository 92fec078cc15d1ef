"""A domain is unreachable after three failed days that count, for 20 messages."""

from typing import Any

import pytest

from storage.mail.unreachable import MAX_FAILED_DAYS, dead_day, failed_days

DAY = 20_000


def failed(day: int, messages: range, has_answer: bool = False) -> list[Any]:
    """Returns a day of a source's entry, `day` days ago."""
    return [DAY - day, 0, 0, 0, has_answer, [b"%08d" % number for number in messages]]


def candidates(**days_by_source: list[list[Any]]) -> list[Any]:
    return failed_days([{"source": source, "days": days} for source, days in days_by_source.items()])


def delivered(*days: int, source: str = "mta") -> set[tuple[int, str]]:
    return {(DAY - day, source) for day in days}


@pytest.mark.parametrize(
    ("days", "is_dead"),
    [
        ([failed(n, range(n * 7, n * 7 + 7)) for n in range(3)], True),
        ([failed(n, range(n * 7, n * 7 + 7)) for n in range(2)], False),
        ([failed(n, range(n * 6, n * 6 + 6)) for n in range(3)], False),
        ([failed(0, range(20)), failed(1, range(20)), failed(2, range(19))], True),
        ([failed(n, range(19)) for n in range(3)], False),
        ([failed(n, range(20), n == 2) for n in range(3)], False),
        ([failed(n, range(20), n == 3) for n in range(4)], True),
        ([failed(n, range(20 * (n != 1))) for n in range(4)], True),
    ],
)
def test_domain_is_dead_after_three_days_and_20_messages(days: list[Any], is_dead: bool) -> None:
    for split in ({"mta": days[::-1]}, {"mta": days[:1], "other": days[1:]}):
        found = dead_day(candidates(**split), delivered(0, 1, 2, 3) | delivered(0, 1, 2, 3, source="other"))
        assert found == (DAY if is_dead else None)


def test_day_without_delivery_of_its_source_counts_as_no_day() -> None:
    days = candidates(mta=[failed(n, range(n * 8, n * 8 + 8)) for n in range(8)])
    assert dead_day(days, delivered(0, 1, 2)) == DAY
    assert dead_day(days, delivered(0, 1)) is None
    assert dead_day(days, set()) is None
    assert dead_day(days, delivered(0, 1, 2, source="other")) is None
    # Five days of an outage follow three days that count.
    assert dead_day(days, delivered(5, 6, 7)) == DAY - 5
    assert dead_day(days, delivered(1, 4, 7)) == DAY - 1


def test_messages_of_source_without_deliveries_do_not_count() -> None:
    days = candidates(mta=[failed(n, range(6)) for n in range(3)], other=[failed(n, range(20)) for n in range(3)])
    assert dead_day(days, delivered(0, 1, 2)) is None
    assert dead_day(days, delivered(0, 1, 2) | delivered(1, source="other")) == DAY


def test_messages_before_the_last_three_days_do_not_count() -> None:
    days = candidates(mta=[failed(0, range(6)), failed(1, range(6)), failed(2, range(6)), failed(3, range(20))])
    assert dead_day(days, delivered(0, 1, 2, 3)) is None


def test_answer_to_any_source_ends_failed_days() -> None:
    failures = [failed(n, range(20)) for n in range(6)]
    assert [each[0] for each in candidates(mta=failures, other=[failed(3, range(0), True)])] == [DAY - 2, DAY - 1, DAY]
    assert candidates(mta=failures, other=[failed(2, range(0), True)]) == []


def test_latest_failed_days_are_kept() -> None:
    days = [failed(n, range(20)) for n in range(MAX_FAILED_DAYS + 2)]
    kept = candidates(mta=days, other=days)
    assert {each[0] for each in kept} == set(range(DAY - MAX_FAILED_DAYS + 1, DAY + 1))
    assert len(kept) == 2 * MAX_FAILED_DAYS


def test_domain_that_cannot_be_dead_has_no_failed_days() -> None:
    assert candidates(mta=[failed(n, range(19)) for n in range(3)]) == []
    assert candidates(mta=[failed(n, range(20)) for n in range(2)]) == []
    assert candidates() == []
    assert failed_days([{"source": ""}]) == []
