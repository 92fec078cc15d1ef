"""POST /ingest/deliveries: arrays, large bodies, Basic authentication, and the rules of the input type of GraphQL."""

import base64
import gzip
from collections.abc import Iterator
from typing import Any

import httpx2
import orjson
import pytest
import zstandard

from tests.server.http.test_ingest import RECORD, event_line, ndjson
from tests.serving import WebProcess

PATH = "/ingest/deliveries"


@pytest.fixture
def http(web: WebProcess, key: str) -> Iterator[httpx2.Client]:
    with httpx2.Client(base_url=web.url, timeout=60, headers={"authorization": f"Bearer {key}"}) as http:
        yield http


def basic(user: str, password: str) -> dict[str, str]:
    """Returns the header of Basic authentication."""
    return {"authorization": f"Basic {base64.b64encode(f'{user}:{password}'.encode()).decode()}"}


def test_array_is_recorded_like_lines(http: httpx2.Client) -> None:
    events = [event_line(diagnostic='“é\\"]'), event_line(), {"eventId": "odd"}, 7, event_line(kind=None)]
    bodies = (b"\n [" + b" ,\n".join(map(orjson.dumps, events)) + b"]\n", ndjson(*events))
    answers = [http.post(PATH, content=each).json() for each in bodies]
    assert [(each["accepted"], each["duplicates"]) for each in answers] == [(2, 0), (0, 2)]
    assert answers[0]["rejected"] == answers[1]["rejected"]
    assert [each["index"] for each in answers[0]["rejected"]] == [2, 3, 4]
    assert http.post(PATH, content=b"[ ]").json() == {"accepted": 0, "duplicates": 0, "rejected": []}


@pytest.mark.parametrize("end", [b"", b",]", b"}", b"] x", b"]]"])
def test_malformed_array_is_refused_whole(http: httpx2.Client, end: bytes) -> None:
    event = event_line()
    answer = http.post(PATH, content=b"[" + orjson.dumps(event) + end)
    assert (answer.status_code, answer.json()["errors"][0]["extensions"]["field"]) == (400, "body")
    assert http.post(PATH, content=ndjson(event)).json()["accepted"] == 1, "nothing was recorded before"


def test_body_of_many_megabytes_is_recorded(http: httpx2.Client) -> None:
    events = [event_line(diagnostic="x" * 1600) for _ in range(10_000)]
    body = orjson.dumps(events)
    assert 16_000_000 < len(body) < 20_000_000
    for encoding, content in {"gzip": gzip.compress(body, 1), "zstd": zstandard.compress(body)}.items():
        answer = http.post(PATH, content=content, headers={"content-encoding": encoding})
        expected = (10_000, 0) if encoding == "gzip" else (0, 10_000)
        assert (answer.json()["accepted"], answer.json()["duplicates"]) == expected


def test_larger_body_error_names_limit(http: httpx2.Client) -> None:
    answer = http.post(PATH, content=b" " * 20_000_001)
    assert answer.status_code == 413
    assert answer.json()["errors"][0]["message"] == "body: expected at most 20,000,000 bytes."


def test_only_rejected_events_are_400_with_reasons(http: httpx2.Client) -> None:
    answer = http.post(PATH, content=ndjson(event_line(address="nobody", eventId="one"), event_line(at="yesterday")))
    (error,) = answer.json()["errors"]
    assert (answer.status_code, error["extensions"]["code"]) == (400, "BAD_USER_INPUT")
    rejected = error["extensions"]["rejected"]
    assert [(each["index"], each["message"].partition(":")[0]) for each in rejected] == [(0, "address"), (1, "at")]
    assert rejected[0]["eventId"] == "one"
    assert (error["extensions"]["accepted"], error["extensions"]["duplicates"]) == (0, 0)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"at": 1_795_000_000}, "at: expected an RFC 3339 instant"),
        ({"at": "1795000000"}, "at: expected an RFC 3339 instant"),
        ({"at": "2026-11-20T12:00:00"}, "at: expected an RFC 3339 instant"),
        ({"smtpcode": 550}, "smtpcode: expected a field of DeliveryEventInput."),
        ({"eventId": 1.5}, "eventId: expected an ID."),
        ({"smtpCode": "550"}, "smtpCode: expected an Int."),
        ({"kind": "BOUNCE"}, "kind: expected one of DELIVERY, COMPLAINT."),
        ({"address": None}, "address: expected a value, not null."),
    ],
)
def test_invalid_field_has_message_of_graphql(http: httpx2.Client, change: dict[str, Any], message: str) -> None:
    event = event_line() | change
    answer = http.post(PATH, content=ndjson(event, event_line())).json()
    found = answer["rejected"][0]["message"]
    assert found.startswith(message)
    refused = http.post("/graphql", json={"query": RECORD, "variables": {"events": [event]}}).json()["errors"][0]
    field, expected = refused["extensions"]["field"], refused["extensions"]["expected"]
    assert found == f"{field.removeprefix('events[0].')}: expected {expected}."


def test_event_id_may_be_integer(http: httpx2.Client) -> None:
    answers = [http.post(PATH, content=ndjson(event_line(eventId=each))).json() for each in (815, "815")]
    assert [(each["accepted"], each["duplicates"]) for each in answers] == [(1, 0), (0, 1)]


def test_key_may_be_password_of_basic_authentication(web: WebProcess, key: str) -> None:
    def send(headers: dict[str, str]) -> httpx2.Response:
        return httpx2.post(f"{web.url}{PATH}", content=ndjson(event_line()), headers=headers, timeout=60)

    assert send(basic("anybody", key)).status_code == 200
    for headers in (basic(key, ""), basic("", key[:-1]), basic("a", web.token("a", roles=("SERVICE",))), {}):
        refused = send(headers)
        assert refused.status_code == 401
        assert refused.headers["www-authenticate"].startswith("Basic realm=")
    assert send({"authorization": "Basic %"}).status_code == 401
