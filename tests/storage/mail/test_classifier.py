"""Classification of answers by the table of codes, and by texts of real servers."""

import pytest

from storage.mail.classifier import NO_CONNECTION, RULES, DeliveryOutcome, classify

HARD, SOFT, DOMAIN, NOTHING, DELIVERED = (
    DeliveryOutcome.HARD,
    DeliveryOutcome.SOFT,
    DeliveryOutcome.DOMAIN,
    DeliveryOutcome.NOTHING,
    DeliveryOutcome.DELIVERED,
)


@pytest.mark.parametrize(
    "status", ["5.1.1", "5.1.2", "5.1.3", "5.1.6", "5.1.10", "5.2.1", "5.7.13", "5.7.17", "5.7.18"]
)
def test_classify_recipient_or_domain_fault_is_hard(status: str) -> None:
    assert classify(550, status, None).outcome is HARD
    assert classify(None, status, None).outcome is HARD


def test_only_listed_statuses_are_hard_bounces() -> None:
    assert {rule.code for rule in RULES if rule.outcome is HARD} == {
        "5.1.1", "5.1.2", "5.1.3", "5.1.6", "5.1.10", "5.2.1", "5.7.13", "5.7.17", "5.7.18",
    }  # fmt: skip


def test_rules_have_reason_source_and_unique_code() -> None:
    assert all(rule.reason and rule.source for rule in RULES)
    assert len({rule.code for rule in RULES}) == len(RULES)


@pytest.mark.parametrize(
    ("smtp", "status", "outcome"),
    [
        (250, None, DELIVERED),
        (None, "2.1.5", DELIVERED),
        (450, "4.1.1", SOFT),
        (450, "4.1.7", NOTHING),
        (450, "4.1.8", NOTHING),
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
        (421, "4.7.1", DOMAIN),
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
        (550, "4.4.9", NOTHING),
        (550, None, NOTHING),
        (554, None, NOTHING),
        (354, None, NOTHING),
    ],
)
def test_classify_answer_gives_outcome(smtp: int | None, status: str | None, outcome: DeliveryOutcome) -> None:
    assert classify(smtp, status, None).outcome is outcome


def test_classify_without_code_and_status_is_failed_connection() -> None:
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
def test_classify_text_of_unknown_user_without_status_is_hard(smtp: int, status: str | None, text: str) -> None:
    assert classify(smtp, status, text).outcome is HARD


@pytest.mark.parametrize(
    "text",
    [
        "Sender address rejected: Domain not found",
        "unknown sender address",
        "Message refused as spam",
        "Access denied",
        "HELO name invalid: user unknown",
        "mailbox unavailable: rejected by policy",
    ],
)
def test_classify_text_without_recipient_fault_counts_nothing(text: str) -> None:
    assert classify(550, None, text).outcome is NOTHING


@pytest.mark.parametrize(
    ("smtp", "status", "text"),
    [
        (550, "5.7.1", "No such user"),
        (550, "5.5.0", "Requested action not taken: mailbox unavailable"),
        (554, None, "delivery error: dd This user doesn't have a yahoo.com account"),
        (554, None, "This mailbox is disabled (554.30)"),
        (550, "5.0.0", 'smtp;550 "Unknown User"'),
        (550, "5.1.10", "RESOLVER.ADR.RecipientNotFound; Recipient not found"),
        (550, "4.0.0", "550 5.1.1 User unknown"),
    ],
)
def test_text_of_dead_address_is_read_for_every_permanent_code(smtp: int, status: str | None, text: str) -> None:
    rule = classify(smtp, status, text)
    assert (rule.outcome, rule.blocks_domain) == (HARD, False)


@pytest.mark.parametrize(
    "text",
    [
        "blocked using zen.spamhaus.org",
        "receiving mail at a rate that prevents additional messages",
        "Sender address rejected: Domain not found",
        "Message size exceeds fixed limit",
        "Message rejected as spam",
        "SPF check failed",
    ],
)
@pytest.mark.parametrize("status", [None, "5.1.1", "5.2.1", "5.1.10"])
def test_fault_of_sender_or_message_counts_for_nobody(status: str | None, text: str) -> None:
    assert classify(550, status, text).outcome is NOTHING


def test_temporary_answer_counts_despite_permanent_status() -> None:
    assert classify(421, "5.1.1", "421 4.7.0 Try again later").outcome is DOMAIN
    assert classify(450, "5.0.0", "450 4.2.2 mailbox full").outcome is SOFT
    assert classify(550, "4.4.7", "550 4.4.7 QUEUE.Expired; message expired").outcome is SOFT


@pytest.mark.parametrize(
    ("smtp", "status", "text"),
    [
        (556, "5.1.10", None),
        (550, "5.1.10", "Domain example.org does not accept mail (nullMX)"),
        (None, "5.1.0", "Domain example.org does not accept mail (nullMX)"),
        (None, "5.4.4", "Name service error for name=example.org type=MX: Host or domain name not found"),
        (550, "5.4.4", "Invalid domain"),
        (550, "5.1.2", None),
    ],
)
def test_answer_about_domain_blocks_address_and_domain(smtp: int | None, status: str, text: str | None) -> None:
    rule = classify(smtp, status, text, "example.org")
    assert (rule.outcome, rule.blocks_domain) == (HARD, True)


def test_failed_lookup_of_own_relay_counts_for_nobody() -> None:
    text = "Host or domain name not found. Name service error for name=relay.example.com type=A: Host not found"
    assert classify(None, "5.4.4", text, "example.org").outcome is NOTHING


def test_words_in_addresses_and_links_are_not_read() -> None:
    text = "<no.such.user@spam.example>: try again, see https://example.com/unknown-user"
    assert classify(550, None, text).outcome is NOTHING
    assert classify(550, None, f"host spam.example[192.0.2.1] said: 550 {text} User unknown").outcome is HARD


@pytest.mark.parametrize("text", ["Greylisted, try again in 5 minutes", "Graylisting in effect", "grey-listed"])
def test_classify_greylisting_text_counts_nothing(text: str) -> None:
    assert classify(450, "4.2.0", text).outcome is NOTHING
    assert classify(421, None, text).outcome is NOTHING
    assert classify(550, "5.1.1", f"User unknown, and not because of {text}").outcome is HARD
