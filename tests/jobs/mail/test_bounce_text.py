"""The own text of bounces: which parts are read, and where the quoted original message begins."""

import pytest

from jobs.mail.bounce_text import MAX_TEXT_CHARS, before_separator, body_text, own_text
from jobs.mail.report_parts import parsed_report


def text_of(message: str) -> str:
    return body_text(parsed_report(message.encode())).strip()


@pytest.mark.parametrize(
    "line",
    [
        "A copy of this report was sent to the postmaster.",
        "delete your own text from the attached returned message.",
        "Your original message could not be delivered.",
        "This is the mail system at host mx.example.org.",
        "   ----- Transcript of session follows -----",
        "   ----- The following addresses had permanent fatal errors -----",
        "Subject: News",
        "The message was not delivered. The text of the error follows",
        "Reason: 550 5.1.1 User unknown",
        "the message that you sent was rejected",
        "Your message is below the limit, but the mailbox is full",
    ],
)
def test_sentence_of_the_bounce_is_no_separator(line: str) -> None:
    text = f"Sorry.\n{line}\n<ann@example.org>: 550 5.1.1 User unknown"
    assert own_text(text) == text


def test_list_of_fields_of_exchange_is_no_quoted_header() -> None:
    text = "Your message\n\n  To:      ann@example.org\n  Subject: News\n  Sent:    today\n\ndid not reach"
    assert own_text(text) == text


def test_header_without_separator_ends_only_the_own_text() -> None:
    text = "Sorry.\nFrom: a@example.org\nTo: b@example.org\n\nHello"
    assert own_text(text) == "Sorry."
    assert before_separator(text) == text


def test_long_text_is_cut() -> None:
    assert len(own_text("x" * 100_000)) == MAX_TEXT_CHARS


def test_html_is_reduced_to_text() -> None:
    html = (
        "<!-- 550 5.1.1 --><html><head><title>550 a</title><style>450</style><body><script>550 5.1.1</script>"
        "<p>Mail&nbsp;to <b>&lt;ann@example.org&gt;</b>\n failed<br>550&#32;5.1.1</p><pre>a\nb</pre></body>"
    )
    lines = [line for line in text_of(f"Content-Type: text/html\n\n{html}").split("\n") if line]
    assert lines == ["Mail to <ann@example.org> failed", "550 5.1.1", "a", "b"]


@pytest.mark.parametrize(
    ("html", "text"),
    [
        ("<![x[<p>failed</p>", "failed"),
        ("<ann@example.org>: failed", "<ann@example.org>: failed"),
        ("failed <a <a <a", "failed <a <a <a"),
        ("failed<style>", "failed"),
        ("failed <!-- 550", "failed"),
    ],
)
def test_malformed_html_is_read(html: str, text: str) -> None:
    assert text in text_of(f"Content-Type: text/html\n\n{html}")
    assert "550" not in text_of(f"Content-Type: text/html\n\n{html}")


def test_plain_text_is_preferred_to_its_alternative() -> None:
    parts = "--B\nContent-Type: text/plain\n\n{plain}\n--B\nContent-Type: text/html\n\n<p>html</p>\n--B--\n"
    message = "Content-Type: multipart/alternative; boundary=B\n\n" + parts
    assert text_of(message.format(plain="plain")) == "plain"
    assert text_of(message.format(plain=" ")) == "html"


def test_parts_after_original_and_attachments_are_not_read() -> None:
    parts = (
        "--B\n\nown\n--B\nContent-Disposition: attachment\n\nattached\n--B\nContent-Type: image/png\n\npicture\n"
        "--B\nContent-Type: message/rfc822\n\nSubject: x\n\noriginal\n--B\n\nfooter\n--B--\n"
    )
    assert text_of("Content-Type: multipart/mixed; boundary=B\n\n" + parts) == "own"
