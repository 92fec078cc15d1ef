"""Parses Postfix log lines into delivery events. The parser stores deferred recipients between lines.

Lines about the sender's own system, such as those of a content filter, give no event.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta, tzinfo
from hashlib import sha256

from jobs.mail.own_system import is_evidence, is_own_host
from storage.mail.classifier import EXPIRED
from storage.mail.records import DeliveryEvent

MAX_DEFERRED = 100_000
"""The most queue ids with deferred recipients that are stored. Beyond this the oldest is dropped."""

_HEAD = re.compile(
    r"(?P<when>\d{4}-\d\d-\d\dT\S+|[A-Z][a-z]{2} [ \d]\d \d\d:\d\d:\d\d) \S+ "
    r"(?P<program>[\w.-]+(?:/[\w.-]+)*)\[\d+\]: (?P<queue>[0-9A-Za-z]{6,30}): (?P<rest>.*)",
    re.DOTALL,
)
_DELIVERY = re.compile(
    r"to=<(?P<to>[^>]*)>, (?>(?:orig_to=<.*?>, (?=relay=))?)(?:relay=(?P<relay>[^,]*), )?.*?"
    r"dsn=(?P<dsn>\d\.\d{1,3}\.\d{1,3}), status=(?P<status>\w+) \((?P<text>.*)\)\s*$",
    re.DOTALL,
)
_EXPIRED = re.compile(r"from=<[^>]*>, status=(?:force-)?expired, returned to sender")
_SMTP_REPLY_CODE = re.compile(r"(?:said: |^)([245]\d\d)[ -]")
_RECORDED_STATUSES = {"sent", "deferred", "bounced"}


@dataclass(slots=True)
class PostfixLogParser:
    """Parser of one log. `deferred` holds the deferred recipients by queue id. Callers save them across restarts."""

    local_zone: tzinfo | None = None
    deferred: dict[str, list[str]] = field(default_factory=dict)
    max_deferred: int = MAX_DEFERRED

    def parse_line(self, line: bytes, now: datetime) -> Iterator[DeliveryEvent]:
        """Yields the events of a line. The same line always gives the same event ids."""
        head = _HEAD.match(line.decode("utf-8", "replace").rstrip("\r\n"))
        if head is None:
            return
        queue, rest = head["queue"], head["rest"]
        id_ = sha256(line.strip()).hexdigest()
        delivery = _DELIVERY.match(rest)
        if delivery is not None and delivery["status"] in _RECORDED_STATUSES:
            shows_recipient = _is_evidence(head["program"], delivery)
            self._track_deferred(queue, delivery["to"], delivery["status"], shows_recipient)
            if shows_recipient:
                yield _event(id_, queue, self._at(head["when"], now), delivery)
        elif _EXPIRED.match(rest):
            for address in self.deferred.pop(queue, []):
                event_id = f"{id_}:{sha256(address.encode()).hexdigest()[:16]}"
                at = self._at(head["when"], now)
                yield DeliveryEvent(event_id, address, at, enhanced_status=EXPIRED, message_id=queue)
        elif rest == "removed":
            self.deferred.pop(queue, None)

    def _track_deferred(self, queue: str, address: str, status: str, shows_recipient: bool) -> None:
        """Updates the deferred recipients, since the line of an expired message does not name them.

        A recipient whom only the sender's own system deferred is not stored.
        """
        recipients = self.deferred.get(queue, [])
        if status == "deferred" and address not in recipients and shows_recipient:
            self.deferred[queue] = [*recipients, address]
        elif status != "deferred" and address in recipients:
            recipients.remove(address)
        while len(self.deferred) > self.max_deferred:
            del self.deferred[next(iter(self.deferred))]

    def _at(self, when: str, now: datetime) -> datetime:
        """Returns the instant of a line. A line without year and zone is taken as local time within the last year."""
        if when[0].isdigit():
            at = datetime.fromisoformat(when)
            return (at if at.tzinfo else at.replace(tzinfo=self.local_zone)).astimezone(UTC)
        for year in (now.year, now.year - 1):
            try:
                at = datetime.strptime(f"{year} {when}", "%Y %b %d %H:%M:%S")
            except ValueError:
                continue  # 29 February does not exist in this year
            at = at.replace(tzinfo=self.local_zone).astimezone(UTC)
            if at < now + timedelta(days=1):
                return at
        return now


def _is_evidence(program: str, delivery: re.Match[str]) -> bool:
    # `syslog_name` may put names before the program: "postfix/amavis/smtp".
    agent = program.rpartition("/")[2]
    return is_evidence(agent, _relay(delivery), delivery["status"], delivery["text"])


def _relay(delivery: re.Match[str]) -> str:
    return (delivery["relay"] or "").strip()


def _event(id_: str, queue: str, at: datetime, delivery: re.Match[str]) -> DeliveryEvent:
    text = delivery["text"]
    # A server of this host shows nothing about the network (ADR 77), so its delivery has no reply code.
    is_local = delivery["status"] == "sent" and is_own_host(_relay(delivery))
    reply = None if is_local else _SMTP_REPLY_CODE.search(text)
    return DeliveryEvent(
        event_id=f"postfix:{id_}",
        address=delivery["to"],
        at=at,
        smtp_code=int(reply[1]) if reply else None,
        enhanced_status=delivery["dsn"],
        diagnostic=text[:4000],
        message_id=queue,
    )
