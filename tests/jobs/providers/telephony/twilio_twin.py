"""Twilio's Calls API on loopback. It checks authentication, required fields and numbers as Twilio documents.

It sends no status callbacks and deletes no calls.
"""

import asyncio
import base64
import re
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from email.utils import format_datetime, parsedate_to_datetime
from typing import Any
from urllib.parse import parse_qs, parse_qsl, urlsplit

import orjson

ACCOUNT, TOKEN, CALLER = "AC" + "0" * 32, "token", "+15005550006"
E164 = re.compile(r"\+[1-9]\d{6,14}")


@dataclass
class TwilioTwin:
    """Twilio's service for one account. `calls` are the account's calls by SID.

    With `is_busy`, it answers 429. With `drops_answers`, it carries out requests and closes the connection without
    answering.
    """

    url: str = ""
    is_busy: bool = False
    drops_answers: bool = False
    calls: dict[str, dict[str, Any]] = field(default_factory=dict)

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with suppress(ConnectionError, asyncio.IncompleteReadError):
            while True:
                head = (await reader.readuntil(b"\r\n\r\n")).decode()
                line, *rows = head.split("\r\n")
                headers = {name.lower(): value for name, _, value in (row.partition(": ") for row in rows if row)}
                body = await reader.readexactly(int(headers.get("content-length", 0)))
                status, answer = self.answer(*line.split(" ")[:2], headers, body)
                if self.drops_answers:
                    break
                payload = orjson.dumps(answer)
                writer.write(f"HTTP/1.1 {status} X\r\nContent-Length: {len(payload)}\r\n\r\n".encode() + payload)
                await writer.drain()
        writer.close()

    def answer(self, method: str, target: str, headers: dict[str, str], body: bytes) -> tuple[int, Any]:
        expected = "Basic " + base64.b64encode(f"{ACCOUNT}:{TOKEN}".encode()).decode()
        if headers.get("authorization") != expected:
            return 401, {"code": 20003, "message": "Authenticate"}
        path, query = urlsplit(target).path, parse_qs(urlsplit(target).query)
        sid = path.removeprefix(f"/2010-04-01/Accounts/{ACCOUNT}/Calls/").removesuffix(".json")
        if method == "GET" and sid != path.removesuffix(".json"):
            call = self.calls.get(sid)
            return (200, call) if call else (404, {"code": 20404, "message": "The resource was not found"})
        assert path == f"/2010-04-01/Accounts/{ACCOUNT}/Calls.json"
        if method == "GET":
            return 200, {"calls": [call for call in self.calls.values() if _matches(call, query)]}
        return self._create(parse_qsl(body.decode()))

    def _create(self, form: list[tuple[str, str]]) -> tuple[int, Any]:
        fields = dict(form)
        if self.is_busy:
            return 429, {"code": 20429, "message": "Too Many Requests"}
        if not ({"Url", "Twiml", "ApplicationSid"} & fields.keys()):
            return 400, {"code": 21205, "message": "Url parameter is required"}
        if not E164.fullmatch(fields.get("To", "")):
            return 400, {"code": 21211, "message": "Invalid 'To' Phone Number"}
        if fields.get("From") != CALLER:
            return 400, {"code": 21210, "message": "'From' phone number not verified"}
        sid = f"CA{len(self.calls):032}"
        created = format_datetime(datetime.now(UTC))
        events = [value for name, value in form if name == "StatusCallbackEvent"]
        call = {"sid": sid, "status": "queued", "to": fields["To"], "from": fields["From"], "date_created": created}
        call |= {"start_time": None, "events": events}
        self.calls[sid] = call | {"form": fields}
        return 201, {"sid": sid, "status": "queued"}

    def set_status(self, sid: str, status: str) -> None:
        """Sets the status without a callback. A call has a start time once it is dialled."""
        self.calls[sid] |= {"status": status, "start_time": self.calls[sid]["date_created"]}


def _matches(call: dict[str, Any], query: dict[str, list[str]]) -> bool:
    """Returns whether a call matches To, From and StartTime>. A call that is not dialled yet has no start time."""
    if any(call[name.lower()] != query[name][0] for name in ("To", "From") if name in query):
        return False
    since = query.get("StartTime>")
    if since is None:
        return True
    return call["start_time"] is not None and f"{parsedate_to_datetime(call['start_time']):%Y-%m-%d}" >= since[0]
