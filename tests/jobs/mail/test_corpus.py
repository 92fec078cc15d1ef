"""Verdicts on a corpus of mail servers' answers, Postfix log lines and whole reports.

Each case names the party at fault and a public source. The texts are written for the corpus in the form that the server
is known to send; the addresses are examples.
"""

import re
import tomllib
from collections.abc import Iterable
from datetime import UTC, datetime
from email import message_from_bytes
from pathlib import Path
from typing import Any

import pytest
from flufl.bounce import all_failures

from jobs.mail.postfix import PostfixLogParser
from jobs.mail.reports import NotADeliveryReport, delivery_events
from storage.mail.classifier import DeliveryOutcome, classify
from storage.mail.records import DeliveryEvent, DeliveryEventKind

Case = dict[str, Any]

NOW = datetime(2026, 11, 21, 12, 0, tzinfo=UTC)
DIRECTORY = Path(__file__).parent / "corpus"
FILES = ("answers", "log_lines", "reports")
MIN_CASES = 200
INPUT_KEYS = ("smtp", "status", "domain", "text")
KEYS = {
    "answers": {*INPUT_KEYS, "outcome", "domain_dead", "flufl", "reason", "source"},
    "log_lines": {"text", "events", "reason", "source"},
    "reports": {"title", "text", "events", "refused", "uncounted", "flufl", "reason", "source"},
}
WORDS = re.compile(r"[A-Za-z0-9]+")
DSN = """\
From: MAILER-DAEMON@mx.example.com (Mail Delivery System)
To: news@example.com
Subject: Delivery report
Date: Fri, 20 Nov 2026 09:30:00 +0000
Message-ID: <dsn-1@mx.example.com>
MIME-Version: 1.0
Content-Type: multipart/report; report-type=delivery-status; boundary="B"

--B
Content-Type: text/plain

This is the mail system at host mx.example.com.

--B
Content-Type: message/delivery-status

Reporting-MTA: dns; mx.example.com

Final-Recipient: rfc822; {address}
Action: {action}
Status: {status}
Diagnostic-Code: smtp; {text}

--B--
"""
ACTIONS = {"2": "delivered", "4": "delayed", "5": "failed"}
"""Action of a DSN by the first digit of the answer."""


def cases_of(name: str) -> list[Case]:
    """Returns the cases of a file."""
    cases: list[Case] = tomllib.loads((DIRECTORY / f"{name}.toml").read_text(encoding="utf-8"))["case"]
    return cases


def parameters(name: str) -> list[Any]:
    """Returns a parameter for each case of a file. Its id has the case's number and the first words of the case."""
    return [
        pytest.param(case, id=f"{number}-{'-'.join(WORDS.findall(case.get('title') or case['text']))[:50]}")
        for number, case in enumerate(cases_of(name), 1)
    ]


def dsn_of_answer(case: Case) -> bytes:
    """Returns a DSN (RFC 3464) that reports an answer."""
    digit = str(case.get("smtp") or case.get("status") or "4")[0]
    fields = {"action": ACTIONS[digit], "status": case.get("status", f"{digit}.0.0"), "text": case["text"]}
    return DSN.format(address=f"ann@{case.get('domain', 'example.org')}", **fields).encode()


def flufl_verdict(message: bytes) -> str:
    """Returns how flufl.bounce judges a message: "permanent", "temporary" or "none"."""
    temporary, permanent = all_failures(message_from_bytes(message))
    return "permanent" if permanent else "temporary" if temporary else "none"


def outcomes(events: Iterable[DeliveryEvent]) -> list[dict[str, object]]:
    """Returns the address and the outcome of each event, in the form of a case's expected events."""
    found: list[dict[str, object]] = []
    for event in events:
        expected: dict[str, object] = {"address": event.address}
        if event.kind is DeliveryEventKind.COMPLAINT:
            expected["outcome"] = DeliveryOutcome.COMPLAINT
        else:
            domain = event.address.rpartition("@")[2].lower()
            rule = classify(event.smtp_code, event.enhanced_status, event.diagnostic, domain)
            expected["outcome"] = rule.outcome
            if rule.blocks_domain:
                expected["domain_dead"] = True
        found.append(expected)
    return found


@pytest.mark.parametrize("case", parameters("answers"))
def test_answer_has_expected_outcome(case: Case) -> None:
    rule = classify(case.get("smtp"), case.get("status"), case["text"], case.get("domain", "example.org"))
    assert rule.outcome == case["outcome"], case["reason"]
    assert rule.blocks_domain == case.get("domain_dead", False), case["reason"]


@pytest.mark.parametrize("case", parameters("log_lines"))
def test_log_lines_give_expected_events(case: Case) -> None:
    parser = PostfixLogParser(UTC)
    events = [event for line in case["text"].splitlines() for event in parser.parse_line(line.encode() + b"\n", NOW)]
    assert outcomes(events) == case["events"], case["reason"]


@pytest.mark.parametrize("case", parameters("reports"))
def test_report_gives_expected_events(case: Case) -> None:
    """A `refused` case is no report. An `uncounted` case may be refused, or may have events that count nothing."""
    found: list[dict[str, object]] | None
    try:
        found = outcomes(delivery_events(case["text"].encode(), NOW))
    except NotADeliveryReport:
        found = None
    if case.get("uncounted", False):
        assert [each for each in found or () if each["outcome"] != DeliveryOutcome.NOTHING] == [], case["reason"]
    else:
        assert found == (None if case.get("refused", False) else case["events"]), case["reason"]


@pytest.mark.parametrize("case", parameters("answers"))
def test_answer_has_verdict_of_flufl(case: Case) -> None:
    """The column compares the corpus with a public library. A library's verdict is not an expected outcome."""
    assert flufl_verdict(dsn_of_answer(case)) == case["flufl"]


@pytest.mark.parametrize("case", parameters("reports"))
def test_report_has_verdict_of_flufl(case: Case) -> None:
    assert flufl_verdict(case["text"].encode()) == case["flufl"]


def test_corpus_is_large_and_has_no_equal_cases() -> None:
    inputs = [tuple(case.get(key) for key in INPUT_KEYS) for name in FILES for case in cases_of(name)]
    assert len(inputs) >= MIN_CASES
    assert [each for each in inputs if inputs.count(each) > 1] == []


@pytest.mark.parametrize("name", FILES)
def test_every_case_has_known_keys_reason_and_source(name: str) -> None:
    for case in cases_of(name):
        assert case["reason"], case
        assert case["source"], case
        assert case.keys() <= KEYS[name], case
        expected = [case] if name == "answers" else case.get("events", [])
        assert {each["outcome"] for each in expected} <= set(DeliveryOutcome), case
