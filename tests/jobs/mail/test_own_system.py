"""Lines about the sender's own system are no evidence: filters, discarded and forwarded mail, broken transports."""

import pytest

from jobs.mail.own_system import is_evidence

QUEUED = "250 2.0.0 from MTA(smtp:[127.0.0.1]:10025): 250 2.0.0 Ok: queued as 4Q2"
OK = "250 2.0.0 Ok"
SAVED = "250 2.0.0 <ann@example.org> JjRzHamrBWrQXAYA0J78UA Saved"
UNKNOWN = "host mail.example.org[private/dovecot-lmtp] said: 550 5.1.1 <a@b> No user (in reply to RCPT TO)"
GREETING = "lost connection with 127.0.0.1[127.0.0.1] while receiving the initial server greeting"


@pytest.mark.parametrize(
    ("agent", "relay", "text"),
    [
        ("smtp", "127.0.0.1[127.0.0.1]:10024", QUEUED),
        ("smtp", "127.0.0.1[127.0.0.1]:10024", "250 2.7.0 Ok, discarded, id=03491-01 - spam"),
        ("smtp", "127.0.0.1[127.0.0.1]:25", OK),
        ("smtp", "localhost[127.0.0.1]:10025", OK),
        ("smtp", "localhost.localdomain[127.0.0.1]:2525", OK),
        ("smtp", "mx.example.org[127.0.1.1]:10026", OK),
        ("smtp", "127.8.9.10[127.8.9.10]:10027", OK),
        ("smtp", "::1[::1]:10024", OK),
        ("smtp", "localhost[::1]:10024", OK),
        ("smtp", "ip6-localhost[::1]:8025", OK),
        ("smtp", "localhost[::ffff:127.0.0.1]:10024", OK),
        ("smtp", "localhost[IPv6:::1]:10024", OK),
        ("smtp", "localhost", OK),
        ("smtp", "localhost:10024", OK),
        ("smtp", "127.0.0.1:10024", OK),
        ("smtp", "0.0.0.0[0.0.0.0]:10024", OK),
        ("smtp", "amavis[172.18.0.5]:10024", QUEUED),
        ("smtp", "1.2.3.4[1.2.3.4]:10025", QUEUED),
        ("smtp", "none", "discarded"),
        ("lmtp", "127.0.0.1[127.0.0.1]:10024", QUEUED),
        ("lmtp", "127.0.0.1[127.0.0.1]:10032", "250 2.6.0 <ann@example.org> Message accepted for delivery"),
        ("lmtp", "127.0.0.1[127.0.0.1]:24", QUEUED),
        ("lmtp", "/var/run/filter.sock", OK),
        ("lmtp", "mx.example.org[/var/run/amavis/amavisd.sock]", OK),
        ("lmtp", "mx.example.org[/var/run/amavis/lmtp]", OK),
        ("lmtp", "mx.example.org[/var/run/dspam/dspam.sock]", OK),
        ("lmtp", "mx.example.org[public/scan]", OK),
        ("pipe", "filter", "delivered via filter service"),
        ("pipe", "dfilt", "delivered via dfilt service"),
        ("pipe", "spamassassin", "delivered via spamassassin service"),
        ("pipe", "spamfilter", "delivered via spamfilter service"),
        ("pipe", "vscan", "delivered via vscan service"),
        ("pipe", "mailparser", "delivered via mailparser service"),
        ("discard", "none", "silently"),
        ("discard", "none", "250 2.0.0 Ok"),
        ("error", "none", "5.1.1 unknown"),
        ("retry", "none", "later"),
        ("local", "local", "forwarded as E050E11F61"),
        ("local", "local", "delivered to file: /dev/null"),
        ("local", "local", "discarded"),
        ("local", "none", "discarded"),
    ],
)
def test_sent_line_without_delivery_is_no_evidence(agent: str, relay: str, text: str) -> None:
    assert not is_evidence(agent, relay, "sent", text)


@pytest.mark.parametrize(
    ("agent", "relay", "text"),
    [
        ("smtp", "mail.example.org[192.0.2.1]:25", "250 2.0.0 Ok: queued as 4Q1"),
        # The recipient's server filters its mail, and answers so.
        ("smtp", "mail.example.org[192.0.2.1]:25", QUEUED),
        ("smtp", "mail.example.org[2001:db8::1]:25", OK),
        ("smtp", "smtp.example.org[192.0.2.1]:587", OK),
        ("smtp", "localhost.example.org[192.0.2.1]:25", OK),
        ("smtp", "mail.internal[10.0.0.5]:25", OK),
        ("smtp", "x", OK),
        ("lmtp", "mail.example.org[private/dovecot-lmtp]", SAVED),
        ("lmtp", "mail.example.org[/var/run/dovecot/lmtp]", SAVED),
        ("lmtp", "mail.example.org[/var/imap/socket/lmtp]", "250 2.1.5 Ok SESSIONID=<x>"),
        ("lmtp", "mail.example.org[private/lmtp]", OK),
        ("lmtp", "127.0.0.1[127.0.0.1]:24", SAVED),
        ("lmtp", "127.0.0.1[127.0.0.1]:24", "215 Recipient <ann@example.org> OK"),
        ("lmtp", "localhost[::1]:2424", SAVED),
        ("lmtp", "127.0.0.1[127.0.0.1]:2003", "250 2.1.5 Ok"),
        ("lmtp", "mail.example.org[127.0.0.1]:7025", "250 2.1.5 Delivery OK"),
        ("lmtp", "mail01.example.org[192.0.2.12]:7025", "250 2.1.5 Delivery OK"),
        ("pipe", "dovecot", "delivered via dovecot service"),
        ("pipe", "dovecot-spamassassin", "delivered via dovecot-spamassassin service"),
        ("pipe", "maildrop", "delivered via maildrop service"),
        ("pipe", "old-cyrus", "delivered via old-cyrus service"),
        ("pipe", "plesk_virtual", "delivered via plesk_virtual service"),
        ("pipe", "mailman", "delivered via mailman service"),
        ("local", "local", "delivered to mailbox"),
        ("local", "local", "delivered to maildir"),
        ("local", "local", "delivered to command: /usr/bin/procmail"),
        ("local", "local", "delivered to file: /var/mail/ann"),
        ("virtual", "virtual", "delivered to maildir"),
    ],
)
def test_delivery_is_evidence(agent: str, relay: str, text: str) -> None:
    assert is_evidence(agent, relay, "sent", text)


@pytest.mark.parametrize("status", ["bounced", "deferred"])
@pytest.mark.parametrize(
    ("agent", "relay", "text"),
    [
        ("smtp", "127.0.0.1[127.0.0.1]:10024", "host 127.0.0.1[127.0.0.1] said: 550 5.1.1 no (in reply to RCPT TO)"),
        ("smtp", "127.0.0.1[127.0.0.1]:10024", "host 127.0.0.1[127.0.0.1] said: 451 4.5.0 Error in processing"),
        ("smtp", "127.0.0.1[127.0.0.1]:10024", GREETING),
        ("smtp", "amavis[172.18.0.5]:10024", "host amavis[172.18.0.5] said: 451 4.5.0 Error in processing"),
        ("smtp", "none", "connect to 127.0.0.1[127.0.0.1]:10024: Connection refused"),
        ("smtp", "none", "connect to localhost[::1]:10024: Connection refused"),
        ("smtp", "none", "connect to amavis[172.18.0.5]:10024: No route to host"),
        ("smtp", "none", "Host or domain name not found. Name service error for name=localhost type=A: not found"),
        ("lmtp", "none", "connect to mx.example.org[private/dovecot-lmtp]: No such file or directory"),
        ("lmtp", "none", "connect to 127.0.0.1[127.0.0.1]:24: Connection refused"),
        ("error", "none", "delivery temporarily suspended: connect to 127.0.0.1[127.0.0.1]:10024: Connection refused"),
        ("retry", "none", f"delivery temporarily suspended: {GREETING}"),
        ("retry", "none", "delivery temporarily suspended: conversation with localhost[127.0.0.1] timed out"),
        ("error", "none", "mail transport unavailable"),
        ("error", "none", "delivery temporarily suspended: unknown mail transport error"),
        ("qmgr", "none", "delivery temporarily suspended: connect to 127.0.0.1[127.0.0.1]:10024: Connection refused"),
        ("pipe", "filter", "temporary failure. Command output: cannot write"),
        ("pipe", "spamassassin", "user unknown. Command output: no such user"),
        ("discard", "none", "no"),
    ],
)
def test_failure_of_own_system_is_no_evidence(status: str, agent: str, relay: str, text: str) -> None:
    assert not is_evidence(agent, relay, status, text)


@pytest.mark.parametrize(
    ("agent", "relay", "status", "text"),
    [
        ("smtp", "none", "deferred", "connect to mail.example.org[192.0.2.1]:25: Connection refused"),
        ("smtp", "none", "deferred", "Host or domain name not found. Name service error for name=a.example"),
        ("smtp", "m[192.0.2.1]:25", "bounced", "host m[192.0.2.1] said: 550 5.1.1 from MTA(smtp:[127.0.0.1]:10025)"),
        ("error", "none", "deferred", "delivery temporarily suspended: connect to m[192.0.2.1]:25: Connection refused"),
        ("error", "none", "bounced", "User unknown in virtual alias table"),
        ("lmtp", "mail.example.org[private/dovecot-lmtp]", "bounced", UNKNOWN),
        ("lmtp", "127.0.0.1[127.0.0.1]:24", "deferred", "host 127.0.0.1[127.0.0.1] said: 452 4.2.2 <a@b> Full"),
        ("pipe", "dovecot", "bounced", "user unknown"),
        ("local", "local", "bounced", 'unknown user: "ann"'),
        ("virtual", "virtual", "bounced", "unknown user: ann"),
    ],
)
def test_failure_at_recipient_is_evidence(agent: str, relay: str, status: str, text: str) -> None:
    assert is_evidence(agent, relay, status, text)


def test_broken_connection_to_own_mailbox_server_is_no_evidence() -> None:
    assert not is_evidence("lmtp", "127.0.0.1[127.0.0.1]:24", "deferred", GREETING)
