"""Callbacks over HTTP: signatures, malformed reports and repetitions."""

import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import httpx2
import orjson
import pytest
from starlette.applications import Starlette

from jobs.providers.signed_webhooks import sign
from jobs.providers.telephony.twilio import twilio_signature
from server.http.callbacks import callback_routes
from server.processes import StartupError
from server.settings import Settings
from server.telephony import check_telephony
from storage.calls.calls import NextCall, TimedStart
from storage.calls.records import MAX_SEQUENCE, TaskKey
from storage.stores import Stores
from tests.http_errors import error_of
from tests.storage.calls.in_memory_jobs import new_job
from tests.storage.in_memory_stream import ORG

pytestmark = pytest.mark.anyio

SECRET, TOKEN, BASE = "whsec_c2VjcmV0", "twilio token", "https://calls.example.org"


@asynccontextmanager
async def callback_client(stores: Stores, **changes: object) -> AsyncIterator[httpx2.AsyncClient]:
    settings = Settings(public_url=BASE, telephony_secret=SECRET, twilio_token=TOKEN).with_values(**changes)
    app = Starlette(routes=callback_routes(settings, stores))
    async with httpx2.AsyncClient(transport=httpx2.ASGITransport(app), base_url=BASE) as http:
        yield http


async def start_call(stores: Stores) -> str:
    """Starts the call of a new job, and returns the call's id."""
    job = await stores.call_jobs.launch(new_job(), "phone_number\n+819012345678\n", None)
    start = await stores.calls.start(ORG, NextCall(TaskKey(job.id, 2), "+819012345678"), 1)
    assert isinstance(start, TimedStart)
    return start.call.id


async def task_state(stores: Stores, call_id: str) -> str:
    job = await stores.call_jobs.get(ORG, call_id.rsplit("-", 2)[0])
    (task,) = await stores.call_jobs.tasks(job, None, 0, 10)
    return task.state.value


async def post_signed(http: httpx2.AsyncClient, report: object, secret: str = SECRET) -> int:
    """Posts a signed report, and returns the status."""
    body = orjson.dumps(report)
    headers = sign(secret, "id-1", int(time.time()), body)
    return (await http.post("/callbacks/telephony", content=body, headers=headers)).status_code


async def test_signed_report_counts_once(stores: Stores) -> None:
    call_id = await start_call(stores)
    async with callback_client(stores) as http:
        assert await post_signed(http, {"callId": call_id, "sequence": 0, "event": "ANSWERED"}) == 204
        assert await task_state(stores, call_id) == "IN_CALL"
        end_report = {"callId": call_id, "sequence": 1, "event": "ENDED", "outcome": "ANSWERED"}
        assert [await post_signed(http, end_report), await post_signed(http, end_report)] == [204, 204]
        assert await task_state(stores, call_id) == "COMPLETED"
        assert await post_signed(http, end_report | {"sequence": 9, "outcome": "BUSY"}) == 204
        assert await task_state(stores, call_id) == "COMPLETED"


async def test_signed_report_names_a_recording(stores: Stores) -> None:
    call_id = await start_call(stores)
    end_report = {"callId": call_id, "sequence": 1, "event": "ENDED", "outcome": "ANSWERED"}
    async with callback_client(stores) as http:
        for url in ("ftp://a.example/x", 5, "", "call.wav"):
            assert await post_signed(http, end_report | {"recordingUrl": url}) == 400
        assert await task_state(stores, call_id) == "DIALLING"
        assert await post_signed(http, end_report | {"recordingUrl": None}) == 204
        assert await stores.call_recordings.claim() is None
        for _ in range(2):
            assert await post_signed(http, end_report | {"recordingUrl": "https://a.example/x"}) == 204
    claim = await stores.call_recordings.claim()
    assert claim is not None
    assert (claim.call_id, claim.organization_id, claim.url) == (call_id, ORG, "https://a.example/x")
    assert await stores.call_recordings.claim() is None


async def test_unsigned_report_is_401_without_effect(stores: Stores) -> None:
    call_id = await start_call(stores)
    report = {"callId": call_id, "sequence": 1, "event": "ENDED", "outcome": "ANSWERED"}
    async with callback_client(stores) as http:
        assert await post_signed(http, report, "another secret") == 401
        assert (await http.post("/callbacks/telephony", content=orjson.dumps(report))).status_code == 401
    async with callback_client(stores, telephony_secret=None) as http:
        assert await post_signed(http, report) == 401
    assert await task_state(stores, call_id) == "DIALLING"


@pytest.mark.parametrize(
    "report",
    [
        None,
        [],
        {},
        {"callId": 5, "sequence": 1, "event": "ANSWERED"},
        {"callId": "x", "sequence": True, "event": "ANSWERED"},
        {"callId": "x", "sequence": -1, "event": "ANSWERED"},
        # This is the highest sequence, so the report of a later ENDED would be ignored.
        {"callId": "x", "sequence": 2**31 - 1, "event": "ANSWERED"},
        {"callId": "x", "sequence": 1, "event": "RINGING"},
        {"callId": "x", "sequence": 1, "event": "ENDED", "outcome": "FINE"},
    ],
)
async def test_malformed_report_is_400(stores: Stores, report: object) -> None:
    async with callback_client(stores) as http:
        assert await post_signed(http, report) == 400


@pytest.mark.parametrize(
    ("call_id", "sequence", "message"),
    [
        (5, 1, "callId: expected a string."),
        ("x", "1", f"sequence: expected a number from 0 to {MAX_SEQUENCE}."),
        (5, "1", "callId: expected a string."),
        ("<half>", 1, "callId: expected text without lone surrogates."),
    ],
)
async def test_malformed_field_is_named(stores: Stores, call_id: object, sequence: object, message: str) -> None:
    field, expected = message.removesuffix(".").split(": expected ")
    body = orjson.dumps({"callId": call_id, "sequence": sequence, "event": "ANSWERED"}).replace(b"<half>", b"\\ud83d")
    headers = sign(SECRET, "id-1", int(time.time()), body)
    async with callback_client(stores) as http:
        response = await http.post("/callbacks/telephony", content=body, headers=headers)
    assert error_of(response.json()) == {
        "code": "BAD_USER_INPUT",
        "message": message,
        "field": field,
        "expected": expected,
    }


async def test_unknown_call_is_404_and_missing_outcome_400(stores: Stores) -> None:
    call_id = await start_call(stores)
    async with callback_client(stores) as http:
        for unknown in ("x", "a-1-1", f"{call_id}9", call_id.replace("-2-", "-3-")):
            assert await post_signed(http, {"callId": unknown, "sequence": 1, "event": "ANSWERED"}) == 404
        assert await post_signed(http, {"callId": call_id, "sequence": 1, "event": "ENDED"}) == 400
        too_long = await http.post("/callbacks/telephony", content=b"x" * 100_000)
        assert too_long.status_code == 400


async def test_twilio_callback_requires_signature_of_public_url(stores: Stores) -> None:
    call_id = await start_call(stores)
    url = f"{BASE}/callbacks/twilio?callId={call_id}"

    async def post_twilio(status: str, sequence: int, token: str = TOKEN) -> int:
        fields = {"CallSid": "CA1", "CallStatus": status, "SequenceNumber": str(sequence)}
        headers = {"X-Twilio-Signature": twilio_signature(token, url, list(fields.items()))}
        return (await http.post(url, data=fields, headers=headers)).status_code

    async with callback_client(stores) as http:
        assert await post_twilio("completed", 3, "wrong") == 401
        assert await post_twilio("ringing", 0) == 204
        assert await task_state(stores, call_id) == "DIALLING"
        stored = await stores.mongo["call_tasks"].find_one({"call.reference": "CA1"})
        assert stored, "Polling needs the stored SID."
        assert await post_twilio("in-progress", 2**31 - 1) == 400, "No later report could have a higher sequence."
        assert await post_twilio("in-progress", 1) == 204
        assert await task_state(stores, call_id) == "IN_CALL"
        assert await post_twilio("no-answer", 2) == 204
        assert await task_state(stores, call_id) == "FAILED"


@pytest.mark.parametrize(
    ("settings", "missing"),
    [
        ({"telephony": "webhook"}, "NOROSHI_TELEPHONY_URL"),
        ({"telephony": "twilio", "twilio_account": "AC"}, "NOROSHI_TWILIO_TOKEN"),
        ({"telephony_secret": "whsec_???"}, "NOROSHI_TELEPHONY_SECRET"),
    ],
)
def test_incomplete_telephony_settings_name_missing_setting(settings: dict[str, str], missing: str) -> None:
    with pytest.raises(StartupError, match=missing):
        check_telephony(Settings().with_values(**settings))
    check_telephony(Settings())
