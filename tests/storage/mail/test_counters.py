"""Counters and summaries do not depend on order, repetition or batches of events."""

from collections.abc import Iterable, Sequence
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from storage.mail import counters
from storage.mail.counters import (
    LISTS,
    MAX_BOUNCES,
    add_event,
    add_event_to_domain,
    new_address,
    new_domain,
    prune,
    reset_counters,
    summarize,
    summarize_domain,
)
from storage.mail.documents import AddressDocument, DomainDocument
from storage.mail.epoch_time import DAY_MS, epoch_ms
from storage.mail.ledger import Ledger, ledger_event
from storage.mail.records import DeliveryEvent, VerdictRule
from storage.mail.unreachable import SourceDay, dead_day
from tests.keys import ADDRESS_KEYS
from tests.storage.mail.events import ANSWERS, event, failed_connection, hard, ok, soft, yesterday_noon
from tests.storage.mail.model import AddressBookModel, StandingModel

ADDRESS, DOMAIN = "ann@example.org", "example.org"


class InMemoryBook:
    """The documents of domains and their addresses, to which events are added in batches."""

    def __init__(self) -> None:
        self.addresses: dict[str, AddressDocument] = {}
        self.domains: dict[str, DomainDocument] = {}
        self._event_ids: set[str] = set()
        self._delivered_days: set[SourceDay] = set()

    def aggregate(self, events: Iterable[DeliveryEvent], source: str = "mta") -> None:
        ledger, now = Ledger(None, ADDRESS_KEYS), yesterday_noon() + timedelta(days=1)  # type: ignore[arg-type]
        for each in events:
            if each.event_id in self._event_ids:
                continue
            self._event_ids.add(each.event_id)
            stored = ledger_event(ledger._ledger_document("acme", source, each, now))
            document = self.addresses.setdefault(each.address, new_address("acme", stored.domain))
            domain = self.domains.setdefault(stored.domain, new_domain("acme", stored.domain))
            counts = add_event(document, stored)
            add_event_to_domain(domain, stored, counts)
            if counts.success and stored.smtp_code is not None:
                self._delivered_days.add((stored.day, source))
        for document in self.addresses.values():
            prune(document, epoch_ms(now))
            summarize(document)
        for domain in self.domains.values():
            summarize_domain(domain)

    def standing(self, address: str = ADDRESS) -> StandingModel:
        summary: Any = self.addresses[address]["summary"]
        return _standing(summary, "verdict" in summary)

    def domain_standing(self, domain: str = DOMAIN) -> StandingModel:
        summary: Any = self.domains[domain]["summary"]
        latest_failed_day = dead_day(summary.get("failed_days", ()), self._delivered_days)
        return _standing(summary, "refusal" in summary or latest_failed_day is not None)


def _standing(summary: Any, is_blocked: bool) -> StandingModel:
    return StandingModel(summary.get("success", 0), summary.get("soft", 0), summary.get("hard", 0), is_blocked)


def book_of(*events: DeliveryEvent) -> InMemoryBook:
    """Returns a book to which the events were added in one batch."""
    book = InMemoryBook()
    book.aggregate(events)
    return book


def verdict_rule(book: InMemoryBook) -> VerdictRule | None:
    reason = book.addresses[ADDRESS]["summary"].get("verdict")
    return VerdictRule(reason[0]) if reason else None


@st.composite
def histories(draw: st.DrawFn) -> list[DeliveryEvent]:
    events = []
    for number in range(draw(st.integers(1, 25))):
        events.append(
            event(
                draw(st.sampled_from(["ann@example.org", "bob@example.org", "ann@other.example"])),
                *draw(st.sampled_from(ANSWERS)),
                days=draw(st.integers(0, 48)) / 4,
                message=draw(st.sampled_from([None, "m1", "m2", "m3"])),
                id_=f"e{number}",
                complaint=draw(st.integers(0, 30)) == 0,
            )
        )
    return events


@settings(max_examples=120, deadline=None)
@given(histories(), st.data())
def test_counters_any_order_and_batches_equal_model(history: list[DeliveryEvent], data: st.DataObject) -> None:
    model, book = AddressBookModel(), InMemoryBook()
    model.add_events(history)
    repeated = data.draw(st.permutations(history + data.draw(st.lists(st.sampled_from(history), max_size=10))))
    while repeated:
        size = data.draw(st.integers(1, len(repeated)))
        batch, repeated = repeated[:size], repeated[size:]
        book.aggregate(batch)
    for address in model.addresses:
        assert book.standing(address) == model.address_standing(address)
    for domain in model.domains:
        assert book.domain_standing(domain) == model.domain_standing(domain)


@st.composite
def sourced_days(draw: st.DrawFn) -> list[tuple[str, list[DeliveryEvent]]]:
    """Batches of two sources: failed connections and few answers on eight days, and deliveries to another domain."""
    batches: list[tuple[str, list[DeliveryEvent]]] = []
    for day in range(8):
        for source in ("one", "two"):
            failed = draw(st.sampled_from([0, 0, 4, 7, 20]))
            batch = [failed_connection(days=day, message=f"{source} {day} {each}") for each in range(failed)]
            batch += [ok("x@other.example", days=day)] * draw(st.sampled_from([0, 1, 1]))
            batch += [event(ADDRESS, 451, "4.3.0", days=day)] * (draw(st.integers(0, 9)) == 0)
            batches.append((source, batch))
    return draw(st.permutations(batches))


@settings(max_examples=80, deadline=None)
@given(sourced_days())
def test_failed_days_of_sources_in_any_order_equal_model(batches: list[tuple[str, list[DeliveryEvent]]]) -> None:
    model, book = AddressBookModel(), InMemoryBook()
    for source, batch in batches:
        model.add_events(batch, source)
        book.aggregate(batch, source)
    for domain in model.domains:
        assert book.domain_standing(domain) == model.domain_standing(domain)


@settings(max_examples=60, deadline=None)
@given(st.permutations([(m, d, a) for m in range(7) for d in range(3) for a in ("x", "y")]), st.booleans())
def test_failed_connections_in_any_order_equal_model(
    order: list[tuple[int, int, str]], same_messages_each_day: bool
) -> None:
    model, book = AddressBookModel(), InMemoryBook()
    failures = [ok("x@other.example", days=day) for day in range(3)] + [
        failed_connection(
            f"{local_part}@example.org", days=day, message=f"{number if same_messages_each_day else (number, day)}"
        )
        for number, day, local_part in order
    ]
    model.add_events(failures)
    book.aggregate(failures)
    assert book.domain_standing().blocked is not same_messages_each_day
    assert book.domain_standing() == model.domain_standing(DOMAIN)


class CountingDigest(bytes):
    """A message digest that counts its comparisons."""

    comparisons = 0

    def __eq__(self, other: object) -> bool:
        CountingDigest.comparisons += 1
        return super().__eq__(other)

    __hash__ = bytes.__hash__


def stored_soft_bounces(count: int, days: float = 0, first: int = 0) -> list[list[Any]]:
    """Returns soft bounces of one day as they are stored, each of a different message."""
    at = epoch_ms(yesterday_noon() - timedelta(days=days))
    return [[(first + n).to_bytes(8), at // DAY_MS, at + n, "452 4.2.2"] for n in range(count)]


def test_add_event_with_many_bounces_needs_no_search() -> None:
    book = book_of(soft(days=1))
    book.addresses[ADDRESS]["by"][0]["messages"] += stored_soft_bounces(40_000, days=2)
    stored = ledger_event(Ledger(None, ADDRESS_KEYS)._ledger_document("acme", "mta", soft(), yesterday_noon()))  # type: ignore[arg-type]
    CountingDigest.comparisons = 0
    for number in range(1000):
        add_event(book.addresses[ADDRESS], replace(stored, message=CountingDigest(number.to_bytes(8))))
    assert CountingDigest.comparisons < 10_000


def test_bounces_beyond_limit_become_daily_sums() -> None:
    book = book_of(soft(days=0.2), hard(days=0.1))
    entry = book.addresses[ADDRESS]["by"][0]
    entry["messages"] += stored_soft_bounces(3000, days=1) + stored_soft_bounces(MAX_BOUNCES, days=3)
    entry["hards"] += [
        [epoch_ms(yesterday_noon() - timedelta(days=5)) + n, "550 5.1.1"] for n in range(MAX_BOUNCES + 500)
    ]
    book.aggregate([])
    assert (len(entry["messages"]), len(entry["hards"])) == (MAX_BOUNCES, MAX_BOUNCES)
    assert [each[1] for each in entry["old_softs"] + entry["old_hards"]] == [3001, 501]
    assert book.standing() == StandingModel(0, 3001 + MAX_BOUNCES, MAX_BOUNCES + 501, blocked=True)
    assert verdict_rule(book) is VerdictRule.HARD_BOUNCED
    book.aggregate([ok(days=4)])
    assert book.standing() == StandingModel(1, 3001 + MAX_BOUNCES, 1, blocked=True)
    book.aggregate([ok(days=0.05)])
    assert book.standing() == StandingModel(2, 0, 0)
    prune(book.addresses[ADDRESS], epoch_ms(yesterday_noon() + timedelta(days=20)))
    assert "old_softs" not in {name for name, value in entry.items() if value}


@settings(max_examples=40, deadline=None)
@given(histories(), st.data())
def test_daily_sums_in_any_order_keep_verdict(history: list[DeliveryEvent], data: st.DataObject) -> None:
    model, book = AddressBookModel(), InMemoryBook()
    model.add_events(history)
    order = data.draw(st.permutations(history))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(counters, "MAX_BOUNCES", 2)
        while order:
            size = data.draw(st.integers(1, len(order)))
            batch, order = order[:size], order[size:]
            book.aggregate(batch)
        for address in model.addresses:
            assert book.standing(address).blocked == model.address_standing(address).blocked
            assert (book.standing(address).hard > 0) == (model.address_standing(address).hard > 0)
            entries = book.addresses[address]["by"]
            assert all(len(each.get(name, ())) <= 2 for each in entries for name in LISTS)


def test_daily_sum_keeps_latest_bounce(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(counters, "MAX_BOUNCES", 1)
    book = book_of(soft(), soft(days=1), soft(days=1.9), ok(days=2))
    book.aggregate([soft(days=2.2)])
    assert verdict_rule(book) is VerdictRule.SOFT_BOUNCED_REPEATEDLY


def test_hard_bounce_blocks_until_later_delivery() -> None:
    assert book_of(hard()).standing() == StandingModel(0, 0, 1, blocked=True)
    assert book_of(hard(days=1), ok()).standing() == StandingModel(1, 0, 0)
    assert book_of(ok(), hard(days=1)).standing() == StandingModel(1, 0, 0)
    assert book_of(ok(days=1), hard()).standing() == StandingModel(1, 0, 1, blocked=True)


def test_delivery_clears_older_bounces_only() -> None:
    assert book_of(hard(days=3), hard(days=1), ok(days=2)).standing() == StandingModel(1, 0, 1, blocked=True)
    assert book_of(hard(days=1), ok(days=1)).standing().hard == 1


def test_soft_bounce_retries_count_once_per_message_and_day() -> None:
    tries = [soft(message="m", at=yesterday_noon() + timedelta(minutes=each)) for each in range(30)]
    assert book_of(*tries).standing() == StandingModel(0, 1, 0)
    assert book_of(*tries).domain_standing() == StandingModel(0, 1, 0)


def test_soft_bounces_block_on_three_distinct_days() -> None:
    assert not book_of(*(soft(at=yesterday_noon() + timedelta(hours=each)) for each in range(3))).standing().blocked
    assert not book_of(soft(days=2), soft(days=1)).standing().blocked
    assert verdict_rule(book_of(soft(days=2), soft(days=1), soft())) is VerdictRule.SOFT_BOUNCED_REPEATEDLY
    assert not book_of(soft(days=2), ok(days=1.5), soft(days=1), soft()).standing().blocked


def test_soft_bounce_after_delivery_counts_again() -> None:
    morning, noon, evening = (yesterday_noon() + timedelta(hours=each) for each in (-3, 0, 3))
    events = soft(message="m", at=morning), ok(at=noon), soft(message="m", at=evening)
    for order in (events, events[::-1], (events[2], events[0], events[1])):
        assert book_of(*order).standing() == StandingModel(1, 1, 0)
        assert book_of(*order).domain_standing() == StandingModel(1, 1, 0)


def test_complaint_blocks_despite_later_delivery() -> None:
    assert verdict_rule(book_of(event(complaint=True, days=2), ok())) is VerdictRule.COMPLAINED


@pytest.mark.parametrize("answer", [(450, "4.7.1", "greylisted"), (550, "5.7.1", "spam"), (554, None, None)])
def test_greylisting_spam_and_unlisted_codes_count_nothing(answer: tuple[int, str | None, str | None]) -> None:
    book = book_of(*(event(ADDRESS, *answer, days=day) for day in range(5)))
    assert book.standing() == StandingModel()
    assert book.domain_standing() == StandingModel()


def test_domain_outcome_counts_for_domain_only() -> None:
    book = book_of(event(ADDRESS, 421), event(ADDRESS, 451, "4.3.0"), failed_connection())
    assert book.standing() == StandingModel()
    assert book.domain_standing() == StandingModel(0, 3, 0)


@pytest.mark.parametrize(("code", "status"), [(550, "5.1.2"), (556, "5.1.10")])
def test_domain_without_mail_service_stays_blocked(code: int, status: str) -> None:
    book = book_of(event(ADDRESS, code, status, days=1), ok())
    assert book.domain_standing().blocked
    assert not book.standing().blocked


def failed_connections(days: Sequence[int] = (0, 1, 2), messages: int = 7) -> list[DeliveryEvent]:
    """Returns failed connections on days on which their source delivers other mail."""
    failures = [failed_connection(days=day, message=f"{day}.{number}") for day in days for number in range(messages)]
    return failures + [ok("x@other.example", days=day) for day in days]


def test_domain_dead_after_three_days_and_20_messages() -> None:
    assert book_of(*failed_connections()).domain_standing().blocked
    assert not book_of(*failed_connections(messages=6)).domain_standing().blocked
    assert not book_of(*failed_connections(days=(0, 1), messages=20)).domain_standing().blocked


@pytest.mark.parametrize(
    "answer_event", [ok(days=0), ok(days=2), event(ADDRESS, 550, "5.7.1"), event(ADDRESS, 451, "4.4.1", days=1)]
)
def test_domain_with_answer_is_not_dead(answer_event: DeliveryEvent) -> None:
    assert not book_of(*failed_connections(), answer_event).domain_standing().blocked


@pytest.mark.parametrize("other_server_event", [event(ADDRESS, None, "4.4.7"), event(ADDRESS, complaint=True)])
@pytest.mark.parametrize("days", [0, 1, -1])
def test_expiry_and_complaint_are_neither_answer_nor_failure(other_server_event: DeliveryEvent, days: int) -> None:
    other_server_event = replace(other_server_event, at=yesterday_noon() - timedelta(days=days))
    assert book_of(*failed_connections(), other_server_event).domain_standing().blocked
    assert (
        not book_of(
            *failed_connections(days=(0, 1), messages=20),
            replace(other_server_event, at=yesterday_noon() - timedelta(days=2)),
        )
        .domain_standing()
        .blocked
    )
    assert not book_of(*failed_connections(), event(ADDRESS, 451, "4.4.7")).domain_standing().blocked


def test_outage_of_sender_blocks_no_domain() -> None:
    failures = [failed_connection(days=day, message=f"{day}.{number}") for day in range(3) for number in range(24)]
    assert not book_of(*failures).domain_standing().blocked
    for late in (0, 1, 2):
        deliveries = [ok("x@other.example", days=day) for day in range(3) if day != late]
        assert not book_of(*failures, *deliveries).domain_standing().blocked
    assert book_of(*failures, *failed_connections()).domain_standing().blocked


def test_deliveries_of_other_source_or_own_host_prove_nothing() -> None:
    book = InMemoryBook()
    book.aggregate([each for each in failed_connections() if each.smtp_code is None])
    book.aggregate([ok("x@other.example", days=day) for day in range(3)], "other")
    book.aggregate([event("x@local.example", None, "2.0.0", days=day) for day in range(3)])
    assert not book.domain_standing().blocked


def test_domain_stays_dead_during_outage_of_sender() -> None:
    outage = [failed_connection(days=day, message=f"{day}.{number}") for day in range(5) for number in range(24)]
    book = book_of(*failed_connections(days=(5, 6, 7)), *outage)
    assert book.domain_standing().blocked
    book.aggregate([event(ADDRESS, 451, "4.3.0", days=0)])
    assert not book.domain_standing().blocked


def test_domain_is_dead_despite_earlier_delivery() -> None:
    assert book_of(*failed_connections(), ok(days=3)).domain_standing().blocked


def test_reset_counters_ignores_earlier_events_that_arrive_late() -> None:
    book = book_of(hard(days=2), ok(days=3), soft(days=1, message="m"))
    reset_counters(book.addresses[ADDRESS], epoch_ms(yesterday_noon() - timedelta(days=0.5)))
    book.aggregate([hard(days=1.5), ok(days=0.9), event(complaint=True, days=0.8), soft(days=1, message="m")])
    assert book.standing() == StandingModel()
    assert book.domain_standing() == StandingModel(2, 1, 2)
    book.aggregate([hard(days=0.2)])
    assert book.standing() == StandingModel(0, 0, 1, blocked=True)


def test_summary_combines_sources() -> None:
    book = InMemoryBook()
    book.aggregate([hard(days=2), soft(days=1, message="m")], "one")
    book.aggregate([ok(days=1.5), soft(days=1, message="m")], "other")
    assert book.standing() == StandingModel(1, 1, 0)


def test_prune_removes_only_old_cleared_bounces() -> None:
    book = book_of(hard(days=12), soft(days=12), ok(days=5))
    without_delivery = book_of(hard(days=12), soft(days=12))
    later = epoch_ms(yesterday_noon() + timedelta(days=10))
    for each in (book, without_delivery):
        prune(each.addresses[ADDRESS], later)
        summarize(each.addresses[ADDRESS])
    assert book.standing() == StandingModel(1, 0, 0)
    assert book.addresses[ADDRESS]["by"][0]["messages"] == []
    assert without_delivery.standing() == StandingModel(0, 1, 1, blocked=True)
