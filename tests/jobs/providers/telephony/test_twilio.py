"""Telephony by Twilio, against a twin that enforces Twilio's documented rules."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from datetime import UTC, datetime

import pytest

from jobs.providers.telephony import (
    CallActive,
    CallDeferred,
    CallEnded,
    CallRefused,
    CallStarted,
    CallUntraceable,
    QueryFailed,
    StartUncertain,
)
from jobs.providers.telephony.twilio import TwilioTelephony, outcome_of, report_of, twilio_signature
from storage.calls.call_changes import Call
from storage.calls.records import CallKey, CallOutcome, CallReportKind, TaskKey
from tests.jobs.providers.telephony.twilio_twin import ACCOUNT, CALLER, TOKEN, TwilioTwin

pytestmark = pytest.mark.anyio

CALLBACK = "https://calls.example.org/callbacks/twilio"


@asynccontextmanager
async def twilio(token: str = TOKEN) -> AsyncIterator[tuple[TwilioTwin, TwilioTelephony]]:
    """Serves the twin. Yields the twin and the product's client of it."""
    twin = TwilioTwin()
    server = await asyncio.start_server(twin.serve, "127.0.0.1", 0)
    twin.url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
    telephony = TwilioTelephony(ACCOUNT, token, CALLER, CALLBACK, twin.url)
    try:
        yield twin, telephony
    finally:
        await telephony.aclose()
        server.close()


def call(scenario: str = "Hello {name}, 3 < 4") -> Call:
    key = CallKey(TaskKey("job", 2), 1)
    return Call(key, "acme", "+819012345678", scenario, [("name", "Aya & Bo")], datetime.now(UTC))


async def test_call_request_holds_callback_and_text() -> None:
    async with twilio() as (twin, telephony):
        assert await telephony.start(call()) == CallStarted("CA" + "0" * 32)
        (placed_call,) = twin.calls.values()
        assert placed_call["form"]["StatusCallback"] == f"{CALLBACK}?callId=job-2-1"
        assert placed_call["form"]["Twiml"] == "<Response><Say>Hello Aya &amp; Bo, 3 &lt; 4</Say></Response>"
        assert placed_call["events"] == ["initiated", "ringing", "answered", "completed"]


async def test_scenario_is_an_address_or_application() -> None:
    async with twilio() as (twin, telephony):
        await telephony.start(call("https://flows.example.org/a?x=1"))
        await telephony.start(call("AP" + "1" * 32))
        forms = [placed_call["form"] for placed_call in twin.calls.values()]
        assert forms[0]["Url"] == "https://flows.example.org/a?x=1&name=Aya+%26+Bo"
        assert forms[1]["ApplicationSid"] == "AP" + "1" * 32


async def test_refusals_quote_twilio_and_rate_limits_are_retried() -> None:
    async with twilio() as (twin, telephony):
        assert await telephony.start(replace(call(), phone_number="+12")) == CallRefused(
            "Twilio 21211: Invalid 'To' Phone Number"
        )
        twin.is_busy = True
        assert await telephony.start(call()) == CallDeferred(1.0)
    async with twilio("wrong") as (_, telephony):
        assert await telephony.start(call()) == CallRefused("Twilio 20003: Authenticate")


async def test_lost_response_is_looked_up_and_never_resent() -> None:
    async with twilio() as (twin, telephony):
        assert await telephony.look_up(call()) == CallUntraceable()
        twin.drops_answers = True
        assert isinstance(await telephony.start(call()), StartUncertain)
        assert isinstance(await telephony.look_up(call()), QueryFailed)
        twin.drops_answers = False
        assert await telephony.look_up(call()) == CallActive()
        (placed_call,) = twin.calls.values()
        twin.set_status(placed_call["sid"], "completed")
        assert await telephony.look_up(call()) == CallEnded(CallOutcome.ANSWERED)
        await telephony.start(call())
        assert await telephony.look_up(call()) == CallActive(), (
            "Each of the two calls may be the one that is looked up, and one of them is active."
        )
        twin.set_status(list(twin.calls)[1], "busy")
        assert await telephony.look_up(call()) == CallUntraceable(), "Two calls to one number are indistinguishable."


async def test_call_of_known_sid_is_distinguished() -> None:
    async with twilio() as (twin, telephony):
        first, second = await telephony.start(call()), await telephony.start(call())
        assert isinstance(first, CallStarted)
        assert isinstance(second, CallStarted)
        assert first.reference
        assert second.reference
        twin.set_status(first.reference, "busy")
        assert await telephony.look_up(replace(call(), reference=first.reference)) == CallEnded(CallOutcome.BUSY)
        assert await telephony.look_up(replace(call(), reference=second.reference)) == CallActive()
        # Twilio deletes no call in progress, so a call that Twilio does not know has ended.
        assert await telephony.look_up(replace(call(), reference="CA" + "9" * 32)) == CallEnded(None)


@pytest.mark.parametrize(
    ("fields", "outcome"),
    [
        ({"CallStatus": "completed"}, CallOutcome.ANSWERED),
        ({"CallStatus": "completed", "AnsweredBy": "machine_start"}, CallOutcome.VOICEMAIL),
        ({"CallStatus": "busy"}, CallOutcome.BUSY),
        ({"CallStatus": "no-answer"}, CallOutcome.NO_ANSWER),
        ({"CallStatus": "failed"}, CallOutcome.NETWORK_ERROR),
        ({"CallStatus": "failed", "SipResponseCode": "404"}, CallOutcome.INVALID_NUMBER),
        ({"CallStatus": "canceled"}, CallOutcome.EXPIRED),
        ({"CallStatus": "ringing"}, None),
    ],
)
def test_twilio_status_maps_to_outcome(fields: dict[str, str], outcome: CallOutcome | None) -> None:
    assert outcome_of(fields) is outcome
    report = report_of(fields | {"SequenceNumber": "3"})
    assert (report and report.outcome) is outcome


def test_answered_call_is_reported_as_answered() -> None:
    report = report_of({"CallStatus": "in-progress", "SequenceNumber": "2"})
    assert report is not None
    assert (report.kind, report.sequence) == (CallReportKind.ANSWERED, 2)
    with pytest.raises(ValueError):
        report_of({"CallStatus": "completed"})


def test_signature_matches_twilio_documentation() -> None:
    """The example of https://www.twilio.com/docs/usage/security."""
    url = "https://mycompany.com/myapp.php?foo=1&bar=2"
    fields = {
        "CallSid": "CA1234567890ABCDE",
        "Caller": "+14158675309",
        "Digits": "1234",
        "From": "+14158675309",
        "To": "+18005551212",
    }
    assert twilio_signature("12345", url, list(fields.items())) == "RSOYDt4T1cUTdK1PDd93/VVr8B8="
