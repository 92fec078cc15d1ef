"""Topics of answers' texts: which words count, which topic comes first, and how long a text may take."""

import pytest

from storage.mail.answer_texts import AnswerTopic, answer_topic, names_other_host


@pytest.mark.parametrize(
    ("text", "topic"),
    [
        ("Sender address rejected: Domain not found", AnswerTopic.SENDER),
        ("HELO name is invalid", AnswerTopic.SENDING_HOST),
        ("Relaying denied", AnswerTopic.SENDING_HOST),
        ("blocked using zen.spamhaus.org", AnswerTopic.REPUTATION),
        ("does not pass DMARC", AnswerTopic.AUTHENTICATION),
        ("too many connections from your host", AnswerTopic.RATE),
        ("User unknown (in reply to MAIL FROM command)", AnswerTopic.ANSWER_TO_SENDER),
        ("The mailbox has exceeded its size limit", AnswerTopic.MAILBOX_FULL),
        ("Message size exceeds fixed limit", AnswerTopic.SIZE),
        ("Message rejected as spam", AnswerTopic.CONTENT),
        ("Domain example.org does not accept mail (nullMX)", AnswerTopic.NULL_MX),
        ("DNS domain example.org does not exist", AnswerTopic.NO_SUCH_DOMAIN),
        ("The email account that you tried to reach is disabled", AnswerTopic.NO_SUCH_MAILBOX),
        ("This mailbox has been blocked due to inactivity", AnswerTopic.NO_SUCH_MAILBOX),
        ("宛先のアドレスが存在しません", AnswerTopic.NO_SUCH_MAILBOX),
        ("Requested action not taken: mailbox unavailable", AnswerTopic.MAILBOX_UNAVAILABLE),
        ("Requested action not taken", None),
        ("", None),
    ],
)
def test_text_has_one_topic(text: str, topic: AnswerTopic | None) -> None:
    assert answer_topic(text) is topic


def test_fault_of_sender_comes_before_that_of_recipient() -> None:
    assert answer_topic("User unknown; your IP is blocked using a list") is AnswerTopic.REPUTATION


@pytest.mark.parametrize(
    "text",
    [
        "<no.such.user@example.org>: try again",
        "no-such-user@spam.example: try again",
        "see https://example.com/unknown-user?spam",
        "host spam.example[192.0.2.1] said: 550 try again",
        "host mx.example[192.0.2.1] refused to talk to me: 550 try again",
    ],
)
def test_words_in_addresses_links_and_host_names_are_not_read(text: str) -> None:
    assert answer_topic(text) is None


@pytest.mark.parametrize("word", ["user ", "no ", "mailbox ", "<", "host ", "a@", "too many "])
def test_long_text_is_read_in_bounded_time(word: str) -> None:
    """The alternatives look ahead by bounded distances, and the text is cut. The test's deadline is the limit."""
    assert answer_topic(word * 100_000) is None


@pytest.mark.parametrize(
    ("name", "is_other"),
    [("example.org", False), ("mx.example.org", False), ("relay.internal", True), ("notexample.org", True)],
)
def test_failed_lookup_names_a_host(name: str, is_other: bool) -> None:
    text = f"Host or domain name not found. Name service error for name={name} type=A: Host not found"
    assert names_other_host(text, "example.org") is is_other
    assert not names_other_host("Host not found", "example.org")
