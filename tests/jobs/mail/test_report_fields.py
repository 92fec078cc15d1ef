"""Fields of report parts in the notations that RFC 822, RFC 3464 and RFC 6533 allow, and those that servers write."""

from datetime import UTC, datetime

import pytest

from jobs.mail.report_fields import comment, field, parsed_date, parsed_fields, recipient_address, without_comments


@pytest.mark.parametrize(
    ("value", "address"),
    [
        ("rfc822; ann@example.org", "ann@example.org"),
        ("RFC822;Ann@Example.org", "Ann@Example.org"),
        ("rfc822 ; <ann@example.org>", "ann@example.org"),
        ('rfc822; "Ann B" <ann@example.org>', "ann@example.org"),
        ('rfc822; "ann@example.org"', "ann@example.org"),
        ("rfc822; ann@example.org (Ann (the first) B)", "ann@example.org"),
        ("(type) rfc822 (;) ; (who) ann@example.org", "ann@example.org"),
        ('rfc822; "ann (b)"@example.org', '"ann (b)"@example.org'),
        ('rfc822; "a;b"@example.org', '"a;b"@example.org'),
        ("rfc822; <@relay.example:ann@example.org>", "ann@example.org"),
        ("rfc822;rfc822; ann@example.org", "ann@example.org"),
        ("rfc822; a..b.@docomo.example", "a..b.@docomo.example"),
        ("rfc822; ann@example.org.", "ann@example.org"),
        ("rfc822;ann+2Bnews@example.org", "ann+news@example.org"),
        ("utf-8; あん@例え.jp", "あん@例え.jp"),
        (r"utf-8; \x{3042}\x{3093}@\x{4F8B}.jp", "あん@例.jp"),
        (r"utf-8; ann\x{2B}news@example.org", "ann+news@example.org"),
        (r"utf-8; ann\x{D800}\x{110000}@example.org", r"ann\x{D800}\x{110000}@example.org"),
        ("ann@example.org", "ann@example.org"),
        ("x400; /C=JP/", None),
        ("rfc822; nobody", None),
        ("rfc822; ann@example.org@", "ann@example.org@"),
        ("rfc822; @mx.example.org", None),
        ("", None),
        (None, None),
    ],
)
def test_recipient_address_is_found_in_every_notation(value: str | None, address: str | None) -> None:
    assert recipient_address(value) == address


@pytest.mark.parametrize(
    ("value", "text"),
    [
        ("failed (no user)", "failed"),
        ("(a (b) c) failed (d)", "failed"),
        (r"failed (a \) b)", "failed"),
        ('"(kept)" (removed)', '"(kept)"'),
        ("failed (open", "failed (open"),
        (None, ""),
    ],
)
def test_comments_are_removed_outside_of_quotes(value: str | None, text: str) -> None:
    assert without_comments(value) == text


def test_deeply_nested_comment_is_removed() -> None:
    assert without_comments("failed " + "(" * 500 + ")" * 500) == "failed"


def test_comment_of_field_is_its_text() -> None:
    assert comment("failed (no user)") == "no user"
    assert comment("failed") == comment(None) == ""


def test_fields_are_unfolded_and_names_are_lower_case() -> None:
    groups = parsed_fields(
        "Status : 5.1.1\r\nDiagnostic-Code: smtp; 550-a\r\n\t550 b\r\n550 c\r\n\r\n\r\nAction:failed"
    )
    assert groups == [
        [("status", "5.1.1"), ("diagnostic-code", "smtp; 550-a 550 b 550 c")],
        [("action", "failed")],
    ]
    assert field(groups[0], "action", "status") == "5.1.1"
    assert field(groups[0], "action") is None


@pytest.mark.parametrize("value", [None, "", "yesterday", "Fri, 99 Nov 2026", "\x00"])
def test_malformed_date_is_replaced(value: str | None) -> None:
    default = datetime(2026, 11, 21, tzinfo=UTC)
    assert parsed_date(value, default) == default


def test_date_is_in_utc() -> None:
    parsed = parsed_date("Fri, 20 Nov 2026 09:30:00 +0900 (JST)", datetime.max.replace(tzinfo=UTC))
    assert parsed == datetime(2026, 11, 20, 0, 30, tzinfo=UTC)
