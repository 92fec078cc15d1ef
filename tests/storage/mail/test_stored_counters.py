"""Stored counters, compared as whole documents: entries of sources, daily sums, summaries.

Limits of time are tested to the millisecond.
"""

from typing import Any

import pytest

from storage.mail import counters
from storage.mail.classifier import DeliveryOutcome
from storage.mail.counters import (
    LedgerEvent,
    OutcomeCounts,
    add_event,
    add_event_to_domain,
    latest_import,
    merge,
    new_address,
    new_domain,
    prune,
    reset_counters,
    source_entry,
    summarize,
    summarize_domain,
)
from storage.mail.epoch_time import DAY_MS
from storage.mail.records import VerdictRule

DAY = 20_000
NOON = DAY * DAY_MS + DAY_MS // 2
Document = dict[str, Any]


def event(outcome: DeliveryOutcome, at: int = NOON, message: bytes = b"m", **fields: Any) -> LedgerEvent:
    defaults = {"id": b"id", "source": "mta", "address": b"a", "domain": "example.org", "smtp_code": 550}
    return LedgerEvent(**defaults | {"at": at, "outcome": outcome, "message": message, "status": "5.1.1"} | fields)  # type: ignore[arg-type]


def address(**entry: Any) -> Any:
    """Returns an address with one source, whose entry has these fields."""
    return {"org": "acme", "domain": "example.org", "by": [{"source": "mta", **entry}]}


def entry_after(*events: LedgerEvent, **document: Any) -> tuple[Any, list[OutcomeCounts]]:
    """Returns the source's entry after the events, and the counts of each event for the domain."""
    stored: Any = new_address("acme", "example.org") | document
    counts = [add_event(stored, each) for each in events]
    prune(stored, NOON)
    (entry,) = stored["by"]
    return entry, counts


def test_new_documents_are_empty() -> None:
    empty = {"org": "acme", "domain": "example.org", "by": []}
    assert new_address("acme", "example.org") == new_domain("acme", "example.org") == empty


def test_source_has_one_entry() -> None:
    by: Any = []
    one, other = source_entry(by, "one"), source_entry(by, "other")
    assert by == [{"source": "one"}, {"source": "other"}]
    assert source_entry(by, "one") is one
    assert source_entry(by, "other") is other


@pytest.mark.parametrize("instants", [(NOON, NOON - 5), (NOON - 5, NOON)])
def test_deliveries_and_complaints_keep_latest_instant(instants: tuple[int, int]) -> None:
    entry, counts = entry_after(*(event(DeliveryOutcome.DELIVERED, at) for at in instants))
    assert entry == {"source": "mta", "last": NOON, "success": 2, "ok": NOON}
    assert counts == [OutcomeCounts(success=1)] * 2
    entry, counts = entry_after(*(event(DeliveryOutcome.COMPLAINT, at) for at in instants))
    assert (entry, counts) == ({"source": "mta", "last": NOON, "complaint": NOON}, [OutcomeCounts()] * 2)


@pytest.mark.parametrize(
    ("smtp_code", "status", "code"), [(550, "5.1.1", "550 5.1.1"), (550, None, "550"), (None, "5.1.1", "5.1.1")]
)
def test_hard_bounces_are_listed_with_their_code(smtp_code: int | None, status: str | None, code: str) -> None:
    bounce = event(DeliveryOutcome.HARD, smtp_code=smtp_code, status=status)
    entry, counts = entry_after(bounce, event(DeliveryOutcome.HARD, NOON + 1))
    assert entry == {"source": "mta", "last": NOON + 1, "hards": [[NOON, code], [NOON + 1, "550 5.1.1"]]}
    assert counts == [OutcomeCounts(hard=1)] * 2


def test_only_latest_soft_bounce_of_message_and_day_is_stored() -> None:
    soft = [event(DeliveryOutcome.SOFT, NOON + ms, smtp_code=450 + ms) for ms in (5, 7, 3)]
    tomorrow, domain = event(DeliveryOutcome.SOFT, NOON + DAY_MS), event(DeliveryOutcome.DOMAIN, NOON, b"n")
    entry, counts = entry_after(*soft, tomorrow, domain, event(DeliveryOutcome.SOFT, NOON, b"n"))
    assert entry["messages"] == [
        [b"m", DAY, NOON + 7, "457 5.1.1"],
        [b"m", DAY + 1, NOON + DAY_MS, "550 5.1.1"],
        [b"n", DAY, NOON, "550 5.1.1"],
    ]
    assert [each.soft for each in counts] == [1, 0, 0, 1, 1, 0]
    entry, _ = entry_after(domain)
    assert entry == {"source": "mta", "last": NOON, "messages": [[b"n", DAY, 0, ""]]}


@pytest.mark.parametrize(
    ("outcome", "entry", "counts"),
    [
        (DeliveryOutcome.DELIVERED, {}, OutcomeCounts(success=1)),
        (DeliveryOutcome.HARD, {}, OutcomeCounts(hard=1)),
        (DeliveryOutcome.SOFT, {"messages": [[b"m", DAY, 0, ""]]}, OutcomeCounts(soft=1)),
        (DeliveryOutcome.COMPLAINT, {}, OutcomeCounts()),
        (DeliveryOutcome.NOTHING, {}, OutcomeCounts()),
    ],
)
def test_events_until_unblocking_count_for_domain_only(
    outcome: DeliveryOutcome, entry: Document, counts: OutcomeCounts
) -> None:
    found = entry_after(event(outcome), unblocked={"at": NOON})
    assert found == ({"source": "mta", "last": NOON} | entry, [counts])
    after, _ = entry_after(event(outcome), unblocked={"at": NOON - 1})
    assert (after != found[0]) == (outcome is not DeliveryOutcome.NOTHING)


def test_stored_messages_are_found_again() -> None:
    stored = address(messages=[[b"m", DAY, NOON, "x"]])
    assert add_event(stored, event(DeliveryOutcome.SOFT, NOON + 1)) == OutcomeCounts()
    prune(stored, NOON)
    assert stored["by"][0]["messages"] == [[b"m", DAY, NOON + 1, "550 5.1.1"]]


OLD, OLDEST_KEPT = (DAY - 16) * DAY_MS, (DAY - 15) * DAY_MS


@pytest.mark.parametrize(("ok", "is_kept"), [(OLD - 1, True), (OLD, True), (OLD + 1, False)])
def test_old_bounces_are_kept_until_later_delivery(ok: int, is_kept: bool) -> None:
    old_sums = {name: [[DAY - 16, 2, OLD, "x"]] for name in ("old_softs", "old_hards")}
    stored = address(ok=ok, messages=[[b"m", DAY - 16, OLD, "x"]], hards=[[OLD, "x"]], **old_sums)
    prune(stored, NOON)
    kept = {name: stored["by"][0][name] for name in ("messages", "hards", *old_sums)}
    expected = {"messages": [[b"m", DAY - 16, OLD, "x"]], "hards": [[OLD, "x"]], **old_sums}
    assert kept == (expected if is_kept else {name: [] for name in expected})


def test_bounces_within_window_are_kept_after_delivery() -> None:
    entry = {"messages": [[b"m", DAY - 15, OLDEST_KEPT, "x"]], "hards": [[OLDEST_KEPT, "x"]]}
    entry |= {name: [[DAY - 15, 2, OLDEST_KEPT, "x"]] for name in ("old_softs", "old_hards")}
    stored = address(ok=NOON, **entry)
    prune(stored, NOON)
    assert stored == address(ok=NOON, **entry)
    prune(stored, NOON + DAY_MS)
    assert stored == address(ok=NOON, **{name: [] for name in entry})


def test_old_message_without_soft_bounce_is_removed() -> None:
    stored = address(messages=[[b"m", DAY - 16, 0, ""]])
    prune(stored, NOON)
    assert stored["by"][0]["messages"] == []


def test_bounces_beyond_limit_are_summed_up_by_day(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(counters, "MAX_BOUNCES", 2)
    yesterday = NOON - DAY_MS
    messages = [[b"%d" % ms, DAY - 1, yesterday + ms, f"{ms}"] for ms in (3, 1, 2)] + [[b"m", DAY, NOON, "x"]]
    messages += [[b"n", DAY - 2, 0, ""]]
    hards = [[NOON, "x"], *([yesterday + ms, f"{ms}"] for ms in (3, 1, 2))]
    stored = address(messages=messages, hards=hards)
    prune(stored, NOON)
    entry = stored["by"][0]
    assert entry["messages"] == [[b"3", DAY - 1, yesterday + 3, "3"], [b"m", DAY, NOON, "x"]]
    assert entry["hards"] == [[yesterday + 3, "3"], [NOON, "x"]]
    assert entry["old_softs"] == entry["old_hards"] == [[DAY - 1, 2, yesterday + 2, "2"]]
    stored["by"][0]["hards"] += [[NOON + 1, "y"], [NOON - 2 * DAY_MS, "z"]]
    prune(stored, NOON)
    assert entry["old_hards"] == [[DAY - 1, 3, yesterday + 3, "3"], [DAY - 2, 1, NOON - 2 * DAY_MS, "z"]]


@pytest.mark.parametrize(
    ("summary", "at"), [({}, 5), ({"summary": {}}, 5), ({"summary": {"last": 9}}, 9), ({"summary": {"last": 4}}, 5)]
)
def test_reset_keeps_messages_without_their_bounces(summary: Document, at: int) -> None:
    entry = {"last": 9, "import": {"at": 3}, "messages": [[b"m", DAY, NOON, "x"]]}
    stored = address(success=1, ok=4, hards=[[3, "x"]], complaint=2, old_softs=[[1, 2, 3, "x"]], **entry) | summary
    reset_counters(stored, 5)
    assert stored == address(**entry | {"messages": [[b"m", DAY, 0, ""]]}) | summary | {"unblocked": {"at": at}}
    stored = address(success=1)
    reset_counters(stored, 5)
    assert stored == address(messages=[]) | {"unblocked": {"at": 5}}


def test_merge_adds_every_counter() -> None:
    one = {"ok": 5, "last": 9, "success": 1, "hards": [[1, "a"]], "messages": [[b"m", 1, 2, "a"]]}
    other = {"ok": 7, "last": 8, "complaint": 3, "success": 2, "hards": [[2, "b"]], "messages": [[b"n", 1, 2, "b"]]}
    stored = address(**one, old_softs=[[1, 2, 3, "a"]])
    added = address(**other, old_softs=[[1, 1, 4, "b"], [2, 1, 5, "c"]], old_hards=[[1, 1, 1, "d"]])
    added["by"][0]["import"] = {"at": 1}
    merge(stored, added | {"unblocked": {"at": 3}})
    merged = {"ok": 7, "last": 9, "complaint": 3, "success": 3, "import": {"at": 1}}
    merged |= {"hards": [[1, "a"], [2, "b"]], "messages": [[b"m", 1, 2, "a"], [b"n", 1, 2, "b"]]}
    merged |= {"old_softs": [[1, 3, 4, "b"], [2, 1, 5, "c"]], "old_hards": [[1, 1, 1, "d"]]}
    assert stored == address(**merged) | {"unblocked": {"at": 3}}
    merge(stored, address(**{"import": {"at": 2}}))
    assert stored == address(**merged) | {"unblocked": {"at": 3}}, "The first document's import stays."
    merge(stored, {"by": [{"source": "new", "import": {"at": 4}}], "unblocked": {"at": 9}})  # type: ignore[typeddict-item]
    new = {"source": "new", "success": 0, "hards": [], "messages": [], "import": {"at": 4}}
    assert stored == address(**merged) | {"by": [*address(**merged)["by"], new], "unblocked": {"at": 3}}


def imported(at: int = NOON, success: int = 0, soft: int = 0, hard: int = 0) -> Document:
    return {"at": at, "success": success, "soft": soft, "hard": hard}


def test_latest_import_wins_and_larger_counts_break_ties() -> None:
    rows = [imported(5), imported(5, 1), imported(5, 1, 2), imported(5, 1, 2, 3), imported(6)]
    for number, row in enumerate(rows):
        for by in (rows[: number + 1], rows[number::-1]):
            assert latest_import({"by": [{"source": "s", "import": each} for each in by]}) == row  # type: ignore[typeddict-item, typeddict-unknown-key, misc]
    assert latest_import(address()) is None


def whole_summary(*entries: Document, **document: Any) -> Document:
    stored: Any = {"by": list(entries)} | document
    summarize(stored)
    found: Document = stored["summary"]
    return found


def summary(*entries: Document, **document: Any) -> Document:
    """Returns the summary without its faults."""
    return {name: value for name, value in whole_summary(*entries, **document).items() if name != "faults"}


def test_summary_has_faults_by_class() -> None:
    one = {"hards": [[NOON, "550 5.1.1"], [NOON - DAY_MS, "550 5.1.6"]], "complaint": 7}
    one["messages"] = [[b"m", DAY, NOON - 1, "452 4.2.2"], [b"n", DAY, NOON, "552"], [b"o", DAY, 0, ""]]
    other = {"import": imported(NOON, soft=2), "old_hards": [[DAY - 3, 4, NOON - 3 * DAY_MS, "550 5.1.1"]]}
    found = whole_summary(one, other, unsubscribed=5)
    assert found["faults"] == [
        ["COMPLAINT", 1, 7, "", [0]],
        ["FULL", 2, NOON, "552", [DAY]],
        ["IMPORTED_SOFT", 2, NOON, "", [DAY]],
        ["MOVED", 1, NOON - DAY_MS, "550 5.1.6", [DAY - 1]],
        ["NO_MAILBOX", 5, NOON, "550 5.1.1", [DAY - 3, DAY]],
    ]
    assert (found["ended"], found["hard"], found["soft"]) == (5, 6, 4)
    assert "faults" not in whole_summary({"success": 1, "ok": NOON, "hards": [[NOON - 1, "550"]]})


def test_summary_adds_sources_since_last_delivery() -> None:
    one = {"success": 1, "last": 9, "hards": [[NOON - 1, "a"], [NOON, "b"]], "old_softs": [[DAY, 3, NOON, "o"]]}
    one["messages"] = [[b"m", DAY, NOON - 1, "c"], [b"n", DAY, NOON, "d"], [b"o", DAY, 0, ""]]
    other = {"success": 2, "ok": NOON, "last": 12, "old_hards": [[DAY, 4, NOON, "z"], [DAY, 4, NOON - 1, "z"]]}
    other["messages"] = [[b"n", DAY, NOON + 1, "e"], [b"n", DAY - 1, NOON, "f"]]
    expected = {"success": 3, "soft": 5, "hard": 5, "last": 12, "verdict": [VerdictRule.HARD_BOUNCED, NOON, "z", 0]}
    assert summary(one, other) == expected


@pytest.mark.parametrize(
    ("row", "ok", "unblocked_at", "expected"),
    [
        (imported(NOON, 1, 2, 3), 0, None, {"success": 1, "soft": 2, "hard": 3}),
        (imported(NOON, 1, 2, 3), NOON, None, {"success": 1, "soft": 2, "hard": 3}),
        (imported(NOON, 1, 2, 3), NOON + 1, None, {"success": 1}),
        (imported(NOON, 1, 2, 3), 0, NOON, {}),
        (imported(NOON, 1, 2, 3), 0, NOON - 1, {"success": 1, "soft": 2, "hard": 3}),
    ],
)
def test_imported_bounces_count_until_delivery_or_unblocking(
    row: Document, ok: int, unblocked_at: int | None, expected: Document
) -> None:
    unblocked: Document = {} if unblocked_at is None else {"unblocked": {"at": unblocked_at}}
    found = summary({"source": "s", "import": row, "ok": ok}, **unblocked)
    blocked = {"verdict": [VerdictRule.HARD_BOUNCED, NOON, "an imported hard bounce", 0]} if "hard" in expected else {}
    assert found == expected | blocked | unblocked


@pytest.mark.parametrize(("imported_soft", "is_blocked"), [(1, True), (0, False)])
def test_imported_soft_bounces_count_as_one_day_of_bounces(imported_soft: int, is_blocked: bool) -> None:
    soft = {"messages": [[b"m", DAY - 1, NOON - DAY_MS, "c"]], "old_softs": [[DAY - 2, 1, NOON - 2 * DAY_MS, "o"]]}
    found = summary({"source": "s", "import": imported(NOON, soft=imported_soft), **soft})
    reason = [VerdictRule.SOFT_BOUNCED_REPEATEDLY, NOON - DAY_MS, "c", 3]
    assert found == {"soft": 2 + imported_soft} | ({"verdict": reason} if is_blocked else {})


def test_verdict_names_complaint_or_else_latest_hard_bounce() -> None:
    hards = {"hards": [[NOON, "a"], [NOON + 1, "b"]], "old_hards": [[DAY, 1, NOON + 2, "c"]]}
    assert summary(hards)["verdict"] == [VerdictRule.HARD_BOUNCED, NOON + 2, "c", 0]
    assert summary(hards | {"complaint": 7})["verdict"] == [VerdictRule.COMPLAINED, 7, "", 0]


def domain_entry(event: LedgerEvent, **counts: int) -> Any:
    stored = new_domain("acme", "example.org")
    add_event_to_domain(stored, event, OutcomeCounts(**counts))
    return stored["by"][0]


def test_domain_counts_each_day() -> None:
    stored: Any = new_domain("acme", "example.org")
    for at, counts in (
        (NOON, OutcomeCounts(1, 2, 3)),
        (NOON + DAY_MS, OutcomeCounts(1)),
        (NOON, OutcomeCounts(4, 5, 6)),
    ):
        add_event_to_domain(stored, event(DeliveryOutcome.NOTHING, at), counts)
    assert stored["by"] == [{"source": "mta", "days": [[DAY, 5, 7, 9, True, []], [DAY + 1, 1, 0, 0, True, []]]}]


@pytest.mark.parametrize(
    ("fields", "day"),
    [
        ({}, [True, []]),
        ({"connection_failed": True}, [False, [b"m"]]),
        ({"smtp_code": None, "status": "4.4.7"}, [False, []]),
        ({"smtp_code": 450, "status": "4.4.7"}, [True, []]),
        ({"smtp_code": None, "status": "4.4.1"}, [True, []]),
        ({"outcome": DeliveryOutcome.COMPLAINT}, [False, []]),
    ],
)
def test_day_of_domain_has_answer_failed_message_or_neither(fields: Document, day: list[Any]) -> None:
    found = domain_entry(event(**{"outcome": DeliveryOutcome.DOMAIN} | fields))
    assert found["days"] == [[DAY, 0, 0, 0, *day]]


def test_failed_messages_of_day_are_kept_up_to_limit() -> None:
    stored: Any = new_domain("acme", "example.org")
    for number in (0, 0, *range(25)):
        failure = event(DeliveryOutcome.DOMAIN, message=b"%d" % number, connection_failed=True)
        add_event_to_domain(stored, failure, OutcomeCounts())
    assert stored["by"][0]["days"][0][5] == [b"%d" % number for number in range(20)]


def test_domain_without_mail_service_keeps_latest_instant() -> None:
    stored: Any = new_domain("acme", "example.org")
    for at in (NOON, NOON - 5):
        answer = event(DeliveryOutcome.HARD, at, status="5.1.2", blocks_domain=True)
        add_event_to_domain(stored, answer, OutcomeCounts())
    assert stored["by"][0]["refusal"] == [NOON, "550 5.1.2"]
    assert "refusal" not in domain_entry(event(DeliveryOutcome.HARD, status="5.1.1"))


def domain_summary(*entries: Document, **document: Any) -> Any:
    stored: Any = {"by": list(entries)} | document
    summarize_domain(stored)
    return stored


def test_domain_summary_adds_days_and_sums_of_sources() -> None:
    one = {"success": 1, "days": [[DAY, 1, 2, 3, True, []], [DAY - 1, 4, 5, 6, True, []]]}
    other = {
        "soft": 10,
        "hard": 20,
        "days": [[DAY, 7, 8, 9, True, []], [DAY - 3, 1, 0, 0, False, []]],
        "refusal": [3, "x"],
    }
    stored = domain_summary(one, other, {"refusal": [2, "y"]}, decision={"blocked": True})
    sums = {"success": 14, "soft": 25, "hard": 38, "refusal": [3, "x"], "decision": {"blocked": True}}
    assert stored["summary"] == sums
    days = [(DAY - 3, 1, 0), (DAY - 1, 15, 11), (DAY, 30, 22)]
    assert stored["recent"] == [{"day": day, "sent": sent, "bounced": bounced} for day, sent, bounced in days]


def test_recent_days_of_domain_are_its_latest_three() -> None:
    days = [[DAY - number, number, 0, 0, True, []] for number in range(5)]
    assert [each["day"] for each in domain_summary({"source": "mta", "days": days})["recent"]] == [
        DAY - 2,
        DAY - 1,
        DAY,
    ]
    assert domain_summary({}) == {"by": [{}], "summary": {}, "recent": []}


def test_days_beyond_history_become_sums() -> None:
    days = [[DAY - number, 1, 2, 3, number % 2 == 0, [b"m"]] for number in range(402)]
    stored = domain_summary({"source": "mta", "success": 5, "days": days})
    entry = stored["by"][0]
    assert [each[0] for each in entry["days"]] == list(range(DAY - 399, DAY + 1))
    assert (entry["success"], entry["soft"], entry["hard"]) == (7, 4, 6)
    assert [each[5] for each in entry["days"][-2:]] == [[b"m"], []]
    assert (stored["summary"]["success"], stored["summary"]["soft"], stored["summary"]["hard"]) == (407, 804, 1206)


def failed_day(day: int, messages: range, has_answer: bool = False) -> list[Any]:
    return [day, 0, 0, 0, has_answer, [b"%08d" % number for number in messages]]


def test_summary_of_domain_has_failed_days_since_latest_answer() -> None:
    one = {"source": "one", "days": [failed_day(DAY, range(20)), failed_day(DAY - 4, range(0), has_answer=True)]}
    other = {"source": "other", "days": [failed_day(DAY - number, range(2, 0, -1)) for number in (1, 3, 4)]}
    digests = b"0000000100000002"
    assert domain_summary(one, other)["summary"] == {
        "failed_days": [
            [DAY - 3, "other", digests],
            [DAY - 1, "other", digests],
            [DAY, "one", b"".join(b"%08d" % number for number in range(20))],
        ]
    }


def test_domain_without_mail_service_has_no_failed_days() -> None:
    days = [failed_day(DAY - number, range(20)) for number in range(3)]
    found = domain_summary({"source": "mta", "days": days, "refusal": [3, "x"]})["summary"]
    assert found == {"refusal": [3, "x"]}
