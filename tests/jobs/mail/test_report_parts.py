"""Parts of reports: encodings, character sets and attached messages."""

import pytest

from jobs.mail.report_parts import content_bytes, decoded_text, is_attached_message, original_message, parsed_report

ATTACHED = "Content-Type: {kind}\n\nMessage-ID: <m1@example.com>\nContent-Type: multipart/mixed; boundary=C\n\n--C--\n"


@pytest.mark.parametrize(
    "kind", ["message/rfc822", "message/global", "text/rfc822-headers", "message/global-headers", "MESSAGE/RFC822 (x)"]
)
def test_attached_message_is_not_parsed_as_part(kind: str) -> None:
    report = parsed_report(ATTACHED.format(kind=kind).encode())
    assert list(report.walk()) == [report]
    assert is_attached_message(report)
    original = original_message(report)
    assert original is not None
    assert original["Message-ID"] == "<m1@example.com>"


def test_report_without_attached_message_has_no_original() -> None:
    assert original_message(parsed_report(b"Subject: x\n\nbody")) is None


@pytest.mark.parametrize(
    ("charset", "content"),
    [
        ("us-ascii", "あ".encode()),
        ("utf-8", "あ".encode()),
        ("iso-2022-jp", "あ".encode("iso-2022-jp")),
        ("shift_jis", "あ".encode("shift_jis")),
        ("no-such-charset", "あ".encode()),
        ("idna", "あ".encode()),
        ("hex", "あ".encode()),
    ],
)
def test_text_is_decoded_whatever_the_charset_says(charset: str, content: bytes) -> None:
    part = parsed_report(f"Content-Type: text/plain; charset={charset}\n\n".encode() + content)
    assert decoded_text(part) == "あ"


def test_multipart_has_no_content() -> None:
    part = parsed_report(b"Content-Type: multipart/mixed; boundary=B\n\n--B\n\na\n--B--\n")
    assert content_bytes(part) == b""


def test_report_with_lines_of_macintosh_is_parsed() -> None:
    part = parsed_report(b"Content-Transfer-Encoding: quoted-printable\r\ra=\rb")
    assert content_bytes(part) == b"ab"
