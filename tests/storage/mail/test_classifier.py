"""The table, answer by answer, and answers that real servers gave."""

import pytest

from storage.mail.classifier import NO_CONNECTION, RULES, Outcome, classify

HARD, SOFT, DOMAIN, NOTHING, DELIVERED = (
    Outcome.HARD,
    Outcome.SOFT,
    Outcome.DOMAIN,
    Outcome.NOTHING,
    Outcome.DELIVERED,
)


@pytest.mark.parametrize(
    "status", ["5.1.1", "5.1.2", "5.1.3", "5.1.6", "5.1.10", "5.2.1", "5.7.13", "5.7.17", "5.7.18"]
)
def test_only_a_bad_recipient_or_domain_is_hard(status: str) -> None:
    assert classify(550, status, None).outcome is HARD
    assert classify(None, status, None).outcome is HARD


def test_nothing_else_in_the_table_is_hard() -> None:
    assert {rule.code for rule in RULES if rule.outcome is HARD} == {
        "5.1.1", "5.1.2", "5.1.3", "5.1.6", "5.1.10", "5.2.1", "5.7.13", "5.7.17", "5.7.18",
    }  # fmt: skip


def test_every_rule_has_a_reason_and_a_source_and_no_code_stands_twice() -> None:
    assert all(rule.reason and rule.source for rule in RULES)
    assert len({rule.code for rule in RULES}) == len(RULES)


@pytest.mark.parametrize(
    ("smtp", "status", "outcome"),
    [
        (250, None, DELIVERED),
        (None, "2.1.5", DELIVERED),
        (450, "4.1.1", SOFT),
        (450, "4.1.8", SOFT),
        (451, "4.2.0", SOFT),
        (452, "4.2.2", SOFT),
        (452, "4.3.1", SOFT),
        (None, "4.4.7", SOFT),
        (552, "5.2.2", SOFT),
        (554, "5.2.2", SOFT),
        (552, None, SOFT),
        (552, "5.3.0", SOFT),
        (421, None, DOMAIN),
        (421, "4.7.0", DOMAIN),
        (None, "4.4.1", DOMAIN),
        (None, "4.4.5", DOMAIN),
        (451, "4.3.0", DOMAIN),
        (451, None, DOMAIN),
        (450, "4.7.25", DOMAIN),
        (450, "4.7.1", NOTHING),
        (451, "4.7.1", NOTHING),
        (550, "5.7.1", NOTHING),
        (550, "5.7.26", NOTHING),
        (552, "5.3.4", NOTHING),
        (554, "5.6.1", NOTHING),
        (550, "5.1.7", NOTHING),
        (550, "5.1.8", NOTHING),
        (550, "5.4.4", NOTHING),
        (550, None, NOTHING),
        (554, None, NOTHING),
        (354, None, NOTHING),
    ],
)
def test_what_each_answer_counts_as(smtp: int | None, status: str | None, outcome: Outcome) -> None:
    assert classify(smtp, status, None).outcome is outcome


def test_neither_code_nor_status_is_a_connection_that_failed() -> None:
    assert classify(None, None, "Connection refused") is NO_CONNECTION


@pytest.mark.parametrize("smtp", [550, 551, 553])
@pytest.mark.parametrize("status", [None, "5.0.0"])
@pytest.mark.parametrize(
    "text",
    [
        "User unknown",
        "<x@example.org>: Recipient address rejected: User unknown in virtual mailbox table",
        "sorry, no mailbox here by that name",
        "No such user here",
        "Unknown user",
        "Invalid recipient",
        "The email account that you tried to reach does not exist",
        "Mailbox not found",
        "Recipient not found.",
    ],
)
def test_without_a_status_the_text_may_say_that_the_user_is_unknown(smtp: int, status: str | None, text: str) -> None:
    assert classify(smtp, status, text).outcome is HARD


@pytest.mark.parametrize(
    "text",
    [
        "Sender address rejected: Domain not found",
        "unknown sender address",
        "Message refused as spam",
        "Access denied",
        "HELO name invalid: user unknown",
        "mailbox unavailable",
    ],
)
def test_a_text_that_blames_somebody_else_or_nobody_charges_nobody(text: str) -> None:
    assert classify(550, None, text).outcome is NOTHING


def test_the_text_counts_only_where_no_status_says_more_and_only_for_these_codes() -> None:
    assert classify(550, "5.7.1", "User unknown").outcome is NOTHING
    assert classify(554, None, "User unknown").outcome is NOTHING


@pytest.mark.parametrize("text", ["Greylisted, try again in 5 minutes", "Graylisting in effect", "grey-listed"])
def test_greylisting_is_known_by_its_name(text: str) -> None:
    assert classify(450, "4.2.0", text).outcome is NOTHING
    assert classify(421, None, text).outcome is NOTHING
    assert classify(550, "5.1.1", f"User unknown, and not because of {text}").outcome is HARD
