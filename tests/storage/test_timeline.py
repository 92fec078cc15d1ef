"""Timeline pages of a list and of messages in MongoDB, compared with the results of `timeline_rule`."""

import asyncio
import itertools
from collections.abc import Sequence
from datetime import UTC, datetime

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from storage.errors import BadUserInput
from storage.stores import Stores
from storage.timeline import (
    MAX_TIMESTAMP,
    NOW,
    TimelinePage,
    format_timestamp,
    instant,
    parse_timestamp,
    read_page,
    timeline_range,
)
from tests.storage.timeline_rule import PageArguments, PageSummary, actual_page, expected_page

TIMELINES = [[], [20], [20, 21, 23]]
"""Neighbours are one and two microseconds apart, because an exclusive bound is moved by one microsecond."""

POINTS = range(18, 26)
BOUNDS = [
    (oldest, latest)
    for oldest, latest in itertools.product([None, *POINTS], [None, NOW, *POINTS])
    if oldest is not None or latest is not None
]
ALL_ARGUMENTS = [
    PageArguments(oldest, latest, limit, inclusive)
    for (oldest, latest), limit, inclusive in itertools.product(BOUNDS, [1, 2, 3, 999], [True, False])
]


def page_of(timeline: Sequence[int], arguments: PageArguments) -> TimelinePage[int]:
    """Reads a page from an ascending list."""

    async def fetch(low: int, high: int, ascending: bool, limit: int) -> list[int]:
        in_range = [timestamp for timestamp in timeline if low <= timestamp <= high]
        return (in_range if ascending else in_range[::-1])[:limit]

    return asyncio.run(read_page(arguments.range, fetch, lambda item: item))


def summary(page: TimelinePage[int]) -> PageSummary:
    return actual_page(page, list(page.items))


@pytest.mark.parametrize("timeline", TIMELINES, ids=["empty", "one", "three"])
def test_page_for_every_combination_of_bounds_follows_the_rule(timeline: list[int]) -> None:
    for arguments in ALL_ARGUMENTS:
        assert summary(page_of(timeline, arguments)) == expected_page(timeline, arguments), arguments


@pytest.mark.anyio
@pytest.mark.parametrize("timeline", TIMELINES, ids=["empty", "one", "three"])
async def test_pages_of_messages_in_mongodb_follow_the_rule(stores: Stores, timeline: list[int]) -> None:
    # Messages of neighbouring topics must not appear.
    for topic_id in ("s", "t", "u"):
        await insert_messages(stores, topic_id, timeline if topic_id == "t" else [19, 20, 22, 24])
    for batch in batches(ALL_ARGUMENTS):
        pages = await asyncio.gather(*(stores.messages.page("t", arguments.range) for arguments in batch))
        for arguments, page in zip(batch, pages, strict=True):
            timestamps: list[int] = [message.timestamp for message in page.items]
            assert actual_page(page, timestamps) == expected_page(timeline, arguments), arguments


def batches(arguments: Sequence[PageArguments]) -> list[Sequence[PageArguments]]:
    return [arguments[start : start + 100] for start in range(0, len(arguments), 100)]


async def insert_messages(stores: Stores, topic_id: str, timestamps: Sequence[int], author: str = "ann") -> None:
    """Inserts messages with chosen timestamps, without the sequencer."""
    documents = [
        {"_id": {"t": topic_id, "ts": timestamp}, "author": author, "text": "", "stamp": "tea", "reactions": []}
        for timestamp in timestamps
    ]
    if documents:
        await stores.mongo["messages"].insert_many(documents)


PAIRS = [f"1639720395.00000{micros}" for micros in (1, 2, 3, 4)]
"""The timestamps of the four messages in the article about the community chat of the app Pairs."""


def pairs_page(limit: int, oldest: str | None = None, latest: str | None = None) -> list[str]:
    """Returns the timestamps of a page of the article's messages, as text."""
    bounds = [None if bound is None else parse_timestamp(bound) for bound in (oldest, latest)]
    page = page_of([parse_timestamp(id_) for id_ in PAIRS], PageArguments(bounds[0], bounds[1], limit))
    return [format_timestamp(timestamp) for timestamp in page.items]


def test_pairs_article_example_gives_two_messages_in_bounds() -> None:
    assert pairs_page(4, "1639720395.000002", "1639720395.000003") == ["1639720395.000002", "1639720395.000003"]


def test_pairs_article_requests_meet_at_the_message() -> None:
    assert pairs_page(10, oldest="1639720395.000002") == PAIRS[1:]
    assert pairs_page(10, latest="1639720395.000002") == PAIRS[1::-1]


@pytest.mark.parametrize("limit", [-1, 0, 1000, 10**30])
def test_limit_outside_1_to_999_is_refused(limit: int) -> None:
    with pytest.raises(BadUserInput) as refusal:
        timeline_range(latest=NOW, limit=limit)
    assert refusal.value.extensions["field"] == "limit"


@pytest.mark.parametrize("limit", [1, 999])
def test_limit_of_1_and_of_999_is_accepted(limit: int) -> None:
    assert len(page_of(range(1, 2000), PageArguments(latest=NOW, limit=limit)).items) == limit


def test_range_without_bounds_is_refused() -> None:
    with pytest.raises(BadUserInput):
        timeline_range()


@pytest.mark.parametrize("latest", [None, NOW, 5])
def test_now_as_oldest_is_refused(latest: int | None) -> None:
    with pytest.raises(BadUserInput) as refusal:
        timeline_range(oldest=NOW, latest=latest)
    assert refusal.value.extensions["field"] == "oldest"


@pytest.mark.parametrize("inclusive", [True, False])
def test_extreme_timestamps_are_valid_bounds(inclusive: bool) -> None:
    for arguments in (
        PageArguments(oldest=MAX_TIMESTAMP, inclusive=inclusive),
        PageArguments(latest=0, inclusive=inclusive),
    ):
        assert summary(page_of([0, 7, MAX_TIMESTAMP], arguments)) == expected_page([0, 7, MAX_TIMESTAMP], arguments)


def test_latest_now_includes_items_of_clocks_ahead() -> None:
    assert page_of([MAX_TIMESTAMP], PageArguments(latest=NOW)).items == [MAX_TIMESTAMP]


Timelines = st.lists(st.integers(0, 60), unique=True).map(sorted)


@given(Timelines, st.integers(0, 61), st.lists(st.integers(1, 7), min_size=1))
def test_walk_by_oldest_returns_each_item_once_in_order(timeline: list[int], start: int, limits: list[int]) -> None:
    timestamps: list[int] = []
    arguments = PageArguments(oldest=start, limit=limits[0])
    for limit in itertools.cycle(limits):
        page = page_of(timeline, arguments)
        timestamps += page.items
        if page.newest is None or not page.has_newer:
            break
        arguments = PageArguments(oldest=page.newest, limit=limit, inclusive=False)
    assert timestamps == [timestamp for timestamp in timeline if timestamp >= start]


@given(Timelines, st.integers(0, 61), st.lists(st.integers(1, 7), min_size=1))
def test_walk_by_latest_returns_each_item_once_in_reverse(timeline: list[int], start: int, limits: list[int]) -> None:
    timestamps: list[int] = []
    arguments = PageArguments(latest=start, limit=limits[0])
    for limit in itertools.cycle(limits):
        page = page_of(timeline, arguments)
        timestamps += page.items
        if page.oldest is None or not page.has_older:
            break
        arguments = PageArguments(latest=page.oldest, limit=limit, inclusive=False)
    assert timestamps == [timestamp for timestamp in timeline if timestamp <= start][::-1]


@given(Timelines, st.sampled_from(ALL_ARGUMENTS))
def test_page_of_any_timeline_follows_the_rule(timeline: list[int], arguments: PageArguments) -> None:
    assert summary(page_of(timeline, arguments)) == expected_page(timeline, arguments)


@given(st.integers(0, MAX_TIMESTAMP))
@example(0)
@example(MAX_TIMESTAMP)
@example(999_999)
@example(2**53 + 1)
@example(1639720395_000002)
def test_parse_returns_the_formatted_timestamp(timestamp: int) -> None:
    text = format_timestamp(timestamp)
    assert parse_timestamp(text) == timestamp
    assert isinstance(parse_timestamp(text), int)
    assert text.partition(".")[2] == f"{timestamp % 1_000_000:06d}"


@given(st.integers(0, MAX_TIMESTAMP), st.integers(0, MAX_TIMESTAMP))
def test_different_timestamps_have_different_texts(one: int, other: int) -> None:
    assert (format_timestamp(one) == format_timestamp(other)) == (one == other)


@pytest.mark.parametrize(
    "text",
    [
        *("", "now", "NaN", "1", "1639720395", "1639720395.00002", "1639720395.0000020", "12345678901.000000"),
        *("-1.000000", "1.-00001", "1e9.000000", "1639720395,000002", "1639720395.000002\n", "１.000000"),
    ],
)
def test_text_without_exactly_six_decimals_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="Expected a timestamp"):
        parse_timestamp(text)


def test_instant_is_exact_to_the_microsecond() -> None:
    assert instant(1639720395_000002) == datetime(2021, 12, 17, 5, 53, 15, 2, UTC)
    assert instant(4102444799_999999).microsecond == 999_999


def test_map_keeps_the_flags_and_ends_of_a_page() -> None:
    page = page_of([20, 21, 23], PageArguments(oldest=20, limit=2))
    assert page.map(str) == TimelinePage(["20", "21"], page.timestamps, False, True, page.oldest, page.newest)
