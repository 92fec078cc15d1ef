"""In whatever order, with whatever repetitions and in whatever batches events come in, the book says the same."""

from collections.abc import Iterable, Sequence
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from storage.mail import counters
from storage.mail.counters import (
    MAX_BOUNCES,
    Facts,
    add_event,
    add_event_to_domain,
    new_address,
    new_domain,
    prune,
    reset_counters,
    summarize,
    summarize_domain,
)
from storage.mail.epoch_time import DAY_MS, epoch_ms
from storage.mail.ledger import Ledger, ledger_event
from storage.mail.records import DeliveryEvent, VerdictRule
from tests.keys import ADDRESS_KEYS
from tests.storage.mail.events import ANSWERS, event, hard, ok, refused, soft, today
from tests.storage.mail.model import Model, Told

ADDRESS, DOMAIN = "ann@example.org", "example.org"


class Book:
    """One domain, folded in batches."""

    def __init__(self) -> None:
        self.addresses: dict[str, Facts] = {}
        self.domain = new_domain("acme", DOMAIN)
        self._seen: set[str] = set()

    def aggregate(self, events: Iterable[DeliveryEvent], source: str = "mta") -> None:
        ledger, now = Ledger(None, ADDRESS_KEYS), today() + timedelta(days=1)  # type: ignore[arg-type]
        for each in events:
            if each.event_id in self._seen:
                continue
            self._seen.add(each.event_id)
            row = ledger_event(ledger._row("acme", source, each, now))
            document = self.addresses.setdefault(each.address, new_address("acme", DOMAIN))
            add_event_to_domain(self.domain, row, add_event(document, row))
        for document in self.addresses.values():
            prune(document, epoch_ms(now))
            summarize(document)
        summarize_domain(self.domain)

    def told(self, address: str = ADDRESS) -> Told:
        return _told(self.addresses[address]["told"], "saw")

    def domain_told(self) -> Told:
        return _told(self.domain["told"], "dead")


def _told(told: Facts, blocking: str) -> Told:
    return Told(told.get("success", 0), told.get("soft", 0), told.get("hard", 0), blocking in told)


def folded(*events: DeliveryEvent) -> Book:
    book = Book()
    book.aggregate(events)
    return book


def rule(book: Book) -> VerdictRule | None:
    saw = book.addresses[ADDRESS]["told"].get("saw")
    return saw and saw[0]


@st.composite
def histories(draw: st.DrawFn) -> list[DeliveryEvent]:
    made = []
    for number in range(draw(st.integers(1, 25))):
        made.append(
            event(
                draw(st.sampled_from(["ann@example.org", "bob@example.org"])),
                *draw(st.sampled_from(ANSWERS)),
                days=draw(st.integers(0, 48)) / 4,
                message=draw(st.sampled_from([None, "m1", "m2", "m3"])),
                id_=f"e{number}",
                complaint=draw(st.integers(0, 30)) == 0,
            )
        )
    return made


@settings(max_examples=120, deadline=None)
@given(histories(), st.data())
def test_any_order_any_repetition_and_any_batches_give_what_the_whole_set_says(
    history: list[DeliveryEvent], data: st.DataObject
) -> None:
    model, book = Model(), Book()
    model.take(history)
    repeated = data.draw(st.permutations(history + data.draw(st.lists(st.sampled_from(history), max_size=10))))
    while repeated:
        size = data.draw(st.integers(1, len(repeated)))
        batch, repeated = repeated[:size], repeated[size:]
        book.aggregate(batch)
    for address in model.addresses:
        assert book.told(address) == model.address(address)
    assert book.domain_told() == model.domain(DOMAIN)


@settings(max_examples=60, deadline=None)
@given(st.permutations([(m, d, a) for m in range(7) for d in range(3) for a in ("x", "y")]), st.booleans())
def test_three_days_of_failed_connections_in_any_order_kill_a_domain(
    order: list[tuple[int, int, str]], few: bool
) -> None:
    model, book = Model(), Book()
    failures = [refused(f"{a}@example.org", days=d, message=f"{m if few else (m, d)}") for m, d, a in order]
    model.take(failures)
    book.aggregate(failures)
    assert book.domain_told().blocked is not few
    assert book.domain_told() == model.domain(DOMAIN)


class Counted(bytes):
    """A message's digest that counts how often it is compared."""

    comparisons = 0

    def __eq__(self, other: object) -> bool:
        Counted.comparisons += 1
        return super().__eq__(other)

    __hash__ = bytes.__hash__


def crowd(number: int, days: float = 0, first: int = 0) -> list[list[Any]]:
    """So many soft bounces of a day, each of a message of its own, as they are stored."""
    at = epoch_ms(today() - timedelta(days=days))
    return [[(first + n).to_bytes(8), at // DAY_MS, at + n, "452 4.2.2"] for n in range(number)]


def test_an_address_that_bounced_very_often_costs_no_search_for_each_event() -> None:
    book = folded(soft(days=1))
    book.addresses[ADDRESS]["by"][0]["messages"] += crowd(40_000, days=2)
    row = ledger_event(Ledger(None, ADDRESS_KEYS)._row("acme", "mta", soft(), today()))  # type: ignore[arg-type]
    Counted.comparisons = 0
    for number in range(1000):
        add_event(book.addresses[ADDRESS], replace(row, message=Counted(number.to_bytes(8))))
    assert Counted.comparisons < 10_000


def test_bounces_beyond_the_kept_ones_are_sums_of_days_and_the_verdict_is_the_same() -> None:
    book = folded(soft(days=0.2), hard(days=0.1))
    entry = book.addresses[ADDRESS]["by"][0]
    entry["messages"] += crowd(3000, days=1) + crowd(MAX_BOUNCES, days=3)
    entry["hards"] += [[epoch_ms(today() - timedelta(days=5)) + n, "550 5.1.1"] for n in range(MAX_BOUNCES + 500)]
    book.aggregate([])
    assert (len(entry["messages"]), len(entry["hards"])) == (MAX_BOUNCES, MAX_BOUNCES)
    assert [each[1] for each in entry["old_softs"] + entry["old_hards"]] == [3001, 501]
    assert book.told() == Told(0, 3001 + MAX_BOUNCES, MAX_BOUNCES + 501, blocked=True)
    assert rule(book) is VerdictRule.HARD_BOUNCED
    book.aggregate([ok(days=4)])
    assert book.told() == Told(1, 3001 + MAX_BOUNCES, 1, blocked=True)
    book.aggregate([ok(days=0.05)])
    assert book.told() == Told(2, 0, 0)
    prune(book.addresses[ADDRESS], epoch_ms(today() + timedelta(days=20)))
    assert "old_softs" not in {name for name, value in entry.items() if value}


@settings(max_examples=40, deadline=None)
@given(histories(), st.data())
def test_in_any_order_sums_of_days_leave_every_verdict_as_it_is(
    history: list[DeliveryEvent], data: st.DataObject
) -> None:
    model, book = Model(), Book()
    model.take(history)
    order = data.draw(st.permutations(history))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(counters, "MAX_BOUNCES", 2)
        while order:
            size = data.draw(st.integers(1, len(order)))
            batch, order = order[:size], order[size:]
            book.aggregate(batch)
        for address in model.addresses:
            assert book.told(address).blocked == model.address(address).blocked
            assert (book.told(address).hard > 0) == (model.address(address).hard > 0)
            entries = book.addresses[address]["by"]
            assert all(len(each.get(name, ())) <= 2 for each in entries for name in ("hards", "messages"))


def test_a_days_sum_knows_its_latest_bounce_whichever_came_last(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(counters, "MAX_BOUNCES", 1)
    book = folded(soft(), soft(days=1), soft(days=1.9), ok(days=2))
    book.aggregate([soft(days=2.2)])
    assert rule(book) is VerdictRule.SOFT_BOUNCED_REPEATEDLY


def test_one_hard_bounce_blocks_and_a_later_success_clears_it() -> None:
    assert folded(hard()).told() == Told(0, 0, 1, blocked=True)
    assert folded(hard(days=1), ok()).told() == Told(1, 0, 0)
    assert folded(ok(), hard(days=1)).told() == Told(1, 0, 0)
    assert folded(ok(days=1), hard()).told() == Told(1, 0, 1, blocked=True)


def test_a_success_clears_what_is_older_and_nothing_else() -> None:
    assert folded(hard(days=3), hard(days=1), ok(days=2)).told() == Told(1, 0, 1, blocked=True)
    assert folded(hard(days=1), ok(days=1)).told().hard == 1


def test_a_soft_bounce_counts_once_a_message_and_day_however_often_it_was_tried() -> None:
    tries = [soft(message="m", at=today() + timedelta(minutes=each)) for each in range(30)]
    assert folded(*tries).told() == Told(0, 1, 0)
    assert folded(*tries).domain_told() == Told(0, 1, 0)


def test_three_soft_bounces_block_on_distinct_days_only() -> None:
    assert not folded(*(soft(at=today() + timedelta(hours=each)) for each in range(3))).told().blocked
    assert not folded(soft(days=2), soft(days=1)).told().blocked
    assert rule(folded(soft(days=2), soft(days=1), soft())) is VerdictRule.SOFT_BOUNCED_REPEATEDLY
    assert not folded(soft(days=2), ok(days=1.5), soft(days=1), soft()).told().blocked


def test_a_try_after_a_success_counts_again_although_its_message_was_counted_before_it() -> None:
    morning, noon, evening = (today() + timedelta(hours=each) for each in (-3, 0, 3))
    events = soft(message="m", at=morning), ok(at=noon), soft(message="m", at=evening)
    for order in (events, events[::-1], (events[2], events[0], events[1])):
        assert folded(*order).told() == Told(1, 1, 0)
        assert folded(*order).domain_told() == Told(1, 1, 0)


def test_a_complaint_blocks_at_once_and_no_success_takes_it_back() -> None:
    assert rule(folded(event(complaint=True, days=2), ok())) is VerdictRule.COMPLAINED


@pytest.mark.parametrize("answer", [(450, "4.7.1", "greylisted"), (550, "5.7.1", "spam"), (554, None, None)])
def test_greylisting_policy_and_what_is_not_listed_charge_nobody(answer: tuple[int, str | None, str | None]) -> None:
    book = folded(*(event(ADDRESS, *answer, days=day) for day in range(5)))
    assert book.told() == Told()
    assert book.domain_told() == Told()


def test_what_only_says_something_of_the_domain_counts_for_the_domain_only() -> None:
    book = folded(event(ADDRESS, 421), event(ADDRESS, 451, "4.3.0"), refused())
    assert book.told() == Told()
    assert book.domain_told() == Told(0, 3, 0)


@pytest.mark.parametrize("status", ["5.1.2", "5.1.10"])
def test_a_domain_that_takes_no_mail_stays_blocked_whatever_comes_later(status: str) -> None:
    book = folded(event(ADDRESS, 550, status, days=1), ok())
    assert book.domain_told().blocked
    assert not book.told().blocked


def dead(days: Sequence[int] = (0, 1, 2), messages: int = 7) -> list[DeliveryEvent]:
    return [refused(days=day, message=f"{day}.{number}") for day in days for number in range(messages)]


def test_a_domain_is_dead_after_three_days_of_failed_connections_on_twenty_messages() -> None:
    assert folded(*dead()).domain_told().blocked
    assert not folded(*dead(messages=6)).domain_told().blocked
    assert not folded(*dead(days=(0, 1), messages=20)).domain_told().blocked


@pytest.mark.parametrize(
    "answered", [ok(days=0), ok(days=2), event(ADDRESS, 550, "5.7.1"), event(ADDRESS, 451, "4.4.1", days=1)]
)
def test_whoever_answers_is_not_dead(answered: DeliveryEvent) -> None:
    assert not folded(*dead(), answered).domain_told().blocked


@pytest.mark.parametrize("silent", [event(ADDRESS, None, "4.4.7"), event(ADDRESS, complaint=True)])
@pytest.mark.parametrize("days", [0, 1, -1])
def test_who_gives_up_or_complains_has_neither_reached_the_domain_nor_failed_to(
    silent: DeliveryEvent, days: int
) -> None:
    silent = replace(silent, at=today() - timedelta(days=days))
    assert folded(*dead(), silent).domain_told().blocked
    assert (
        not folded(*dead(days=(0, 1), messages=20), replace(silent, at=today() - timedelta(days=2)))
        .domain_told()
        .blocked
    )
    assert not folded(*dead(), event(ADDRESS, 451, "4.4.7")).domain_told().blocked


def test_a_success_before_the_three_days_changes_nothing() -> None:
    assert folded(*dead(), ok(days=3)).domain_told().blocked


def test_unblocking_starts_over_and_late_news_of_before_does_not_come_back() -> None:
    book = folded(hard(days=2), ok(days=3), soft(days=1, message="m"))
    reset_counters(book.addresses[ADDRESS], epoch_ms(today() - timedelta(days=0.5)))
    book.aggregate([hard(days=1.5), ok(days=0.9), event(complaint=True, days=0.8), soft(days=1, message="m")])
    assert book.told() == Told()
    assert book.domain_told() == Told(2, 1, 2)
    book.aggregate([hard(days=0.2)])
    assert book.told() == Told(0, 0, 1, blocked=True)


def test_what_two_sources_say_is_told_together() -> None:
    book = Book()
    book.aggregate([hard(days=2), soft(days=1, message="m")], "one")
    book.aggregate([ok(days=1.5), soft(days=1, message="m")], "other")
    assert book.told() == Told(1, 1, 0)


def test_bounces_from_before_the_window_are_forgotten_only_where_a_success_cleared_them() -> None:
    book = folded(hard(days=12), soft(days=12), ok(days=5))
    held = folded(hard(days=12), soft(days=12))
    later = epoch_ms(today() + timedelta(days=10))
    for each in (book, held):
        prune(each.addresses[ADDRESS], later)
        summarize(each.addresses[ADDRESS])
    assert book.told() == Told(1, 0, 0)
    assert book.addresses[ADDRESS]["by"][0]["messages"] == []
    assert held.told() == Told(0, 1, 1, blocked=True)
