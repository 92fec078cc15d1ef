"""POST /ingest/sendgrid, /postmark and /mailgun on a real web process: published examples, with new times."""

import base64
import time
from collections.abc import Iterator
from typing import Any

import httpx2
import orjson
import pytest
from cryptography.hazmat.primitives.asymmetric.ec import ECDSA, SECP256R1, generate_private_key
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

from jobs.mail.inlets.sendgrid import SIGNATURE, TIMESTAMP
from tests.jobs.mail.inlets.examples import (
    MAILGUN_COMPLAINED,
    MAILGUN_OPENED,
    MAILGUN_PERMANENT,
    POSTMARK_BOUNCE,
    POSTMARK_COMPLAINT,
    SENDGRID_BODY,
    SENDGRID_BOUNCE,
    SENDGRID_DEFERRED,
    SENDGRID_KEY,
    SENDGRID_SIGNATURE,
    SENDGRID_TIMESTAMP,
)
from tests.jobs.mail.inlets.test_mailgun import KEY, signed
from tests.server.http.ingest.test_deliveries import basic
from tests.serving import WebProcess
from tests.storage.mail.events import yesterday_noon

SENDER = generate_private_key(SECP256R1())
OWN_KEY = base64.b64encode(SENDER.public_key().public_bytes(Encoding.DER, PublicFormat.SubjectPublicKeyInfo)).decode()

WEB_SETTINGS = {
    "NOROSHI_SENDGRID_KEYS": f"{OWN_KEY}, {SENDGRID_KEY}",
    "NOROSHI_MAILGUN_SIGNING_KEYS": f"an old key,{KEY}",
}


@pytest.fixture
def http(web: WebProcess, key: str) -> Iterator[httpx2.Client]:
    with httpx2.Client(base_url=web.url, timeout=60, headers=basic("provider", key)) as http:
        yield http


def signed_by_sendgrid(events: Any) -> tuple[bytes, dict[str, str]]:
    """Returns the body and the headers of a signed request."""
    body, timestamp = orjson.dumps(events) + b"\r\n", "1600112502"
    signature = SENDER.sign(timestamp.encode() + body, ECDSA(SHA256()))
    return body, {SIGNATURE: base64.b64encode(signature).decode(), TIMESTAMP: timestamp}


def result(answer: httpx2.Response) -> tuple[int, int, int, int]:
    body = answer.json()
    return body["accepted"], body["duplicates"], body["ignored"], len(body["rejected"])


def test_published_request_of_sendgrid_is_understood(http: httpx2.Client) -> None:
    headers = {SIGNATURE: SENDGRID_SIGNATURE, TIMESTAMP: SENDGRID_TIMESTAMP}
    assert result(http.post("/ingest/sendgrid", content=SENDGRID_BODY, headers=headers)) == (0, 0, 1, 0)
    refused = http.post("/ingest/sendgrid", content=SENDGRID_BODY.strip(), headers=headers)
    assert (refused.status_code, refused.json()["errors"][0]["extensions"]) == (401, {"code": "UNAUTHENTICATED"})


def test_events_of_sendgrid_are_recorded_once(http: httpx2.Client) -> None:
    bounce = SENDGRID_BOUNCE | {"timestamp": int(yesterday_noon().timestamp())}
    body, headers = signed_by_sendgrid([bounce, SENDGRID_DEFERRED, {"event": "teleport"}, SENDGRID_BOUNCE])
    answers = [http.post("/ingest/sendgrid", content=body, headers=headers) for _ in range(2)]
    assert [result(each) for each in answers] == [(1, 0, 1, 2), (0, 1, 1, 2)]
    rejected = answers[0].json()["rejected"]
    assert [(each["index"], each["message"].partition(":")[0]) for each in rejected] == [(2, "event"), (3, "at")]
    for events in ({"event": "bounce"}, [{"event": "teleport"}]):
        body, headers = signed_by_sendgrid(events)
        assert http.post("/ingest/sendgrid", content=body, headers=headers).status_code == 400


def test_webhooks_of_postmark_are_recorded_once(http: httpx2.Client) -> None:
    for example in (POSTMARK_BOUNCE, POSTMARK_COMPLAINT):
        event = example | {"BouncedAt": yesterday_noon().isoformat()}
        answers = [http.post("/ingest/postmark", json=event) for _ in range(2)]
        assert [result(each) for each in answers] == [(1, 0, 0, 0), (0, 1, 0, 0)]
    assert result(http.post("/ingest/postmark", json={"RecordType": "Open"})) == (0, 0, 1, 0)
    for content in (b"", b"[]", b'{"RecordType": "Teleport"}', orjson.dumps(POSTMARK_BOUNCE)):
        assert http.post("/ingest/postmark", content=content).status_code == 400


def test_webhooks_of_mailgun_are_recorded_once(http: httpx2.Client) -> None:
    now = int(time.time())
    for example in (MAILGUN_PERMANENT, MAILGUN_COMPLAINED):
        event = example | {"timestamp": yesterday_noon().timestamp()}
        answers = [http.post("/ingest/mailgun", json=signed(event, timestamp=now)) for _ in range(2)]
        assert [result(each) for each in answers] == [(1, 0, 0, 0), (0, 1, 0, 0)]
    assert result(http.post("/ingest/mailgun", json=signed(MAILGUN_OPENED, timestamp=now))) == (0, 0, 1, 0)
    assert http.post("/ingest/mailgun", json=signed({"event": "teleport"}, timestamp=now)).status_code == 400
    for content in (signed(MAILGUN_OPENED, "another key", now), signed(MAILGUN_OPENED, timestamp=now - 90_000), {}):
        assert http.post("/ingest/mailgun", json=content).status_code == 401


@pytest.mark.parametrize("provider", ["ses", "sendgrid", "postmark", "mailgun", "postfix"])
def test_inlet_needs_a_service_key(web: WebProcess, provider: str) -> None:
    answers = [
        httpx2.post(f"{web.url}/ingest/{provider}", content=b"{}", headers=headers, timeout=60)
        for headers in ({}, basic("a", "b"), {"authorization": f"Bearer {web.token('ann')}"})
    ]
    assert [each.status_code for each in answers] == [401, 401, 403]
    assert answers[0].headers["www-authenticate"].startswith("Basic ")
