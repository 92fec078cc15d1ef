"""Lines of Postfix's log in the forms in which log shippers send them."""

from datetime import UTC, datetime
from typing import Any
from zoneinfo import ZoneInfo

import orjson
import pytest

from jobs.mail.inlets.postfix_lines import PostfixLineReader
from jobs.mail.inlets.read_events import ReadEvents
from jobs.mail.postfix import PostfixLogParser
from tests.jobs.mail.test_postfix import BOUNCED, DEFERRED, EXPIRED, NOW, REMOVED, SENT

MESSAGE = SENT.partition("]: ")[2]

JOURNAL = {
    "MESSAGE": MESSAGE,
    "SYSLOG_IDENTIFIER": "postfix/smtp",
    "_PID": "2219",
    "_HOSTNAME": "mx",
    "PRIORITY": "6",
    "_SYSTEMD_UNIT": "postfix@-.service",
    "_SOURCE_REALTIME_TIMESTAMP": "1795258800123456",
}
"""An entry of journald, as Fluent Bit's input systemd reads it: https://docs.fluentbit.io/manual/data-pipeline/inputs/systemd"""

SYSLOG = {
    "appname": "postfix/smtp",
    "facility": "mail",
    "hostname": "mx",
    "message": MESSAGE,
    "procid": 2219,
    "severity": "info",
    "source_type": "syslog",
    "timestamp": "2026-11-21T11:00:00.123456Z",
}
"""A record of Vector's source syslog: https://vector.dev/docs/reference/configuration/sources/syslog/"""


def read(*items: str | dict[str, Any], reader: PostfixLineReader | None = None) -> ReadEvents:
    texts = [each.encode() if isinstance(each, str) else orjson.dumps(each) for each in items]
    return (reader or PostfixLineReader(UTC)).read(enumerate(texts), NOW)


def test_line_has_event_of_mail_tail() -> None:
    records = [{"message": BOUNCED, "file": "/var/log/mail.log"}, {"date": 1.5, "log": BOUNCED}]
    (expected,) = PostfixLogParser(UTC).parse_line(BOUNCED.encode() + b"\n", NOW)
    assert read(BOUNCED, BOUNCED + "\r", *records).events == [expected] * 4


@pytest.mark.parametrize("record", [JOURNAL, SYSLOG], ids=["journald", "syslog"])
def test_record_without_line_gives_event(record: dict[str, Any]) -> None:
    (event,) = read(record).events
    assert (event.address, event.smtp_code, event.message_id) == ("ann@example.org", 250, "4Q1ABC2XYZ")
    assert event.at == datetime(2026, 11, 21, 11, 0, 0, 123456, tzinfo=UTC)
    assert read(record | {"PRIORITY": "5"}).events == [event], "other fields do not change the id"


def test_time_without_zone_is_of_time_zone() -> None:
    line = SENT.replace("2026-11-21T11:00:00.123456+00:00", "Nov 21 12:00:00")
    (event,) = read(line, reader=PostfixLineReader(ZoneInfo("Europe/Berlin"))).events
    assert event.at == datetime(2026, 11, 21, 11, tzinfo=UTC)


def test_other_lines_are_ignored_and_other_texts_rejected() -> None:
    head = "2026-11-21T11:00:00+00:00 mx "
    ignored = [f"{head}postfix/smtpd[9]: connect from x[192.0.2.1]", f"{head}kernel: cold", JOURNAL | {"MESSAGE": "up"}]
    rejected = ["hello", "{", {"text": BOUNCED}, JOURNAL | {"SYSLOG_IDENTIFIER": "a b"}, {"message": MESSAGE}]
    timeless = {name: value for name, value in JOURNAL.items() if "TIME" not in name}
    result = read(*ignored, *rejected, timeless, SENT.replace("2026-11-21T", "2026-13-21T"), BOUNCED)
    assert (result.ignored, len(result.events), result.indexes) == (3, 1, [10])
    assert [each.index for each in result.rejected] == [3, 4, 5, 6, 7, 8, 9]
    assert {each.message.partition(":")[0] for each in result.rejected} == {"line"}


def test_repeated_request_has_events_of_expired_message() -> None:
    reader = PostfixLineReader(UTC)
    read(DEFERRED, reader=reader)
    first, second = (read(EXPIRED, REMOVED, reader=reader) for _ in range(2))
    assert [each.enhanced_status for each in first.events] == ["4.4.7"]
    assert first.events == second.events
    assert read(EXPIRED).events == []
