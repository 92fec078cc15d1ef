"""POST /ingest/postfix: lines as Vector and Fluent Bit are documented to send them, and the answers."""

import gzip
from collections.abc import Iterator
from datetime import datetime
from zoneinfo import ZoneInfo

import httpx2
import orjson
import pytest

from tests.jobs.mail.test_postfix import SENT
from tests.server.http.ingest.test_deliveries import basic
from tests.serving import WebProcess
from tests.storage.mail.events import yesterday_noon

PATH = "/ingest/postfix"


@pytest.fixture
def http(web: WebProcess, key: str) -> Iterator[httpx2.Client]:
    with httpx2.Client(base_url=web.url, timeout=60, headers=basic("postfix", key)) as http:
        yield http


def line(queue: str, at: str | None = None) -> str:
    """Returns the line of a delivery at noon of yesterday."""
    time = yesterday_noon().isoformat() if at is None else at
    return SENT.replace("2026-11-21T11:00:00.123456+00:00", time).replace("4Q1ABC2XYZ", queue)


def counts(answer: httpx2.Response) -> tuple[int, int, int]:
    body = answer.json()
    return body["accepted"], body["duplicates"], body["ignored"]


def test_lines_and_records_of_shippers_are_recorded_once(http: httpx2.Client) -> None:
    lines = [line("4Q0000001"), line("4Q0000002"), f"{yesterday_noon().isoformat()} mx postfix/qmgr[1]: 4Q0: removed"]
    fluent_bit = orjson.dumps([{"date": 1_795_000_000.5, "log": each} for each in lines])
    vector = b"\n".join(orjson.dumps({"message": each, "source_type": "file"}) for each in lines)
    assert counts(http.post(PATH, content="\n".join(lines) + "\n")) == (2, 0, 1)
    headers = {"content-encoding": "gzip", "content-type": "application/json"}
    assert counts(http.post(PATH, content=gzip.compress(fluent_bit), headers=headers)) == (0, 2, 1)
    headers["content-type"] = "application/x-ndjson"
    assert counts(http.post(PATH, content=gzip.compress(vector), headers=headers)) == (0, 2, 1)


def test_time_zone_is_a_parameter(http: httpx2.Client) -> None:
    local = datetime.now(ZoneInfo("Asia/Tokyo"))
    content = line("4Q0000003", f"{local:%b} {local.day:2d} {local:%H:%M:%S}")
    ahead = http.post(PATH, content=content).json()["errors"][0]["extensions"]["rejected"]
    assert [each["message"].partition(":")[0] for each in ahead] == ["at"], "in UTC it is nine hours ahead"
    assert counts(http.post(PATH, params={"timeZone": "Asia/Tokyo"}, content=content)) == (1, 0, 0)
    refused = http.post(PATH, params={"timeZone": "Tokyo"}, content=content)
    assert (refused.status_code, refused.json()["errors"][0]["extensions"]["field"]) == (400, "timeZone")


def test_body_without_lines_of_a_log_is_400(http: httpx2.Client) -> None:
    answer = http.post(PATH, content=b"hello\n\nworld\n")
    extensions = answer.json()["errors"][0]["extensions"]
    assert (answer.status_code, [each["index"] for each in extensions["rejected"]]) == (400, [0, 2])
    mixed = http.post(PATH, content=f"hello\n{line('4Q0000004')}\n").json()
    assert (mixed["accepted"], [each["index"] for each in mixed["rejected"]]) == (1, [0])
