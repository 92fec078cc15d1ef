"""Telephony by webhook, against the twin, and against a stub for responses that the twin never gives."""

import time
from datetime import UTC, datetime, timedelta
from email.utils import formatdate
from functools import partial

import pytest

from jobs.providers.telephony import (
    CallActive,
    CallDeferred,
    CallEnded,
    CallNotFound,
    CallRefused,
    CallStarted,
    QueryFailed,
    StartUncertain,
)
from jobs.providers.telephony.webhook import WebhookTelephony, hold_off_s
from storage.calls.call_changes import Call
from storage.calls.records import CallKey, CallOutcome, TaskKey
from tests.jobs.providers.stub_server import respond, silent, stub_server
from tests.jobs.providers.telephony.twin import SECRET, telephony_twin
from tests.waiting import until

pytestmark = pytest.mark.anyio


def call(lateness_s: float = 0.0, number: int = 1) -> Call:
    key = CallKey(TaskKey("job", 2), number)
    start_at = datetime.now(UTC) - timedelta(seconds=lateness_s) + timedelta(seconds=5)
    return Call(key, "acme", "+819012345678", "Hello", [("name", "Aya")], start_at)


def telephony_at(url: str) -> WebhookTelephony:
    return WebhookTelephony(url, SECRET, "http://127.0.0.1:1/callbacks/telephony")


async def ignore_report(*_: object) -> None:
    return


async def test_call_is_placed_once_and_can_be_polled() -> None:
    async with telephony_twin(1, report=ignore_report, talk_s=(2, 2)) as service:
        telephony = telephony_at(service.url)
        assert await telephony.look_up(call()) == CallNotFound()
        assert await telephony.start(call()) == CallStarted()
        assert await telephony.start(call()) == CallStarted()
        assert len(service.calls) == 1
        assert await telephony.look_up(call()) == CallActive()
        await until(partial(has_ended, telephony))
        await telephony.aclose()


async def has_ended(telephony: WebhookTelephony) -> bool:
    return await telephony.look_up(call()) == CallEnded(CallOutcome.ANSWERED)


async def test_call_after_deadline_is_not_placed() -> None:
    async with telephony_twin(1) as service:
        telephony = telephony_at(service.url)
        assert await telephony.start(call(lateness_s=10)) == CallDeferred()
        assert service.calls == {}
        await telephony.aclose()


@pytest.mark.parametrize(
    ("status", "answer"),
    [
        (204, CallStarted()),
        (410, CallDeferred()),
        (404, CallRefused("404: no")),
        (422, CallRefused("422: no")),
        (500, StartUncertain("500 to a call")),
        (302, StartUncertain("302 to a call")),
    ],
)
async def test_http_status_maps_to_documented_outcome(status: int, answer: object) -> None:
    async with stub_server() as service:
        service.answers["/calls"] = respond(b"no", status=status)
        telephony = telephony_at(service.url("").rstrip("/"))
        assert await telephony.start(call()) == answer
        await telephony.aclose()


async def test_too_many_requests_are_retried_after_delay() -> None:
    async with stub_server() as service:
        service.answers["/calls"] = respond(b"", status=429, Retry_After="7")
        telephony = telephony_at(service.url("").rstrip("/"))
        assert await telephony.start(call()) == CallDeferred(7.0)
        await telephony.aclose()
    dates = [formatdate(time.time() + after_s, usegmt=True) for after_s in (-3600, 3600)]
    assert [hold_off_s(text) for text in ("", "soon", "0", "9999", *dates)] == [1.0, 1.0, 1.0, 60.0, 1.0, 60.0]


async def test_refused_connection_has_no_effect_but_dropped_one_may() -> None:
    telephony = telephony_at("http://127.0.0.1:1")
    assert await telephony.start(call()) == CallDeferred(1.0)
    assert isinstance(await telephony.look_up(call()), QueryFailed)
    await telephony.aclose()
    async with telephony_twin(1, lose_answers=1.0, report=ignore_report) as service:
        telephony = telephony_at(service.url)
        assert isinstance(await telephony.start(call()), StartUncertain)
        assert len(service.calls) == 1
        await telephony.aclose()


@pytest.mark.parametrize(
    "body", [b"", b"[]", b'{"state": "asleep"}', b'{"state": "ended", "outcome": "FINE"}', b"null"]
)
async def test_malformed_poll_response_is_a_failed_query(body: bytes) -> None:
    async with stub_server() as service:
        service.answers["/calls/job-2-1"] = respond(body, content_type="application/json")
        telephony = telephony_at(service.url("").rstrip("/"))
        assert isinstance(await telephony.look_up(call()), QueryFailed)
        service.answers["/calls/job-2-1"] = respond(b'{"state": "ended"}', content_type="application/json")
        assert await telephony.look_up(call()) == CallEnded(None)
        await telephony.aclose()


async def test_missing_response_times_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("jobs.providers.telephony.webhook.TIMEOUT_S", 0.2)
    async with stub_server() as service:
        service.answers["/calls"] = silent()
        telephony = telephony_at(service.url("").rstrip("/"))
        assert isinstance(await telephony.start(call()), StartUncertain)
        await telephony.aclose()
