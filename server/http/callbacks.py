"""Callbacks of telephony providers: signed reports (docs/interfaces.md) and Twilio's status callbacks.

A report is identified by its call and sequence number. A repeated report gets the same answer and changes nothing. The
status 2xx means that the report is durable; 503 asks the provider to repeat it.
"""

import hmac
import time
from collections.abc import Awaitable, Callable
from typing import Annotated
from urllib.parse import parse_qsl

from pydantic import Field
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response

from jobs.providers.signed_webhooks import ID, TIMESTAMP, SignatureRefused, verify
from jobs.providers.telephony.twilio import report_of, twilio_signature
from resolvers.calls.arguments import checked_recording_url
from server.http.json_answers import error_answer
from server.http.openapi import (
    Answer,
    Body,
    DescribedRoute,
    Expected,
    Operation,
    Parameter,
    RequestModel,
    Scheme,
    Tag,
    json_object,
    parsed,
)
from server.settings import Settings
from server.telephony import TELEPHONY_CALLBACK, TWILIO_CALLBACK
from server.transport.bodies import read_body
from storage.calls.records import MAX_SEQUENCE, CallOutcome, CallReportKind
from storage.errors import BadUserInput, Unauthenticated
from storage.stores import Stores

MAX_BODY_BYTES = 64 * 1024
MAX_FIELDS = 100


class CallReport(RequestModel):
    """A report about a call. It is identified by its call and sequence number."""

    call_id: Annotated[str, Expected("a string")]
    sequence: Annotated[int, Field(ge=0, le=MAX_SEQUENCE), Expected(f"a number from 0 to {MAX_SEQUENCE}")]
    event: Annotated[CallReportKind, Field(strict=False), Expected("ANSWERED or ENDED")]
    outcome: Annotated[CallOutcome, Field(strict=False), Expected("the outcome of a call")] | None = None
    recording_url: Annotated[str, Expected("an address or null")] | None = None


_STORED = {204: Answer("The report is durable, or changes nothing.")}
_ERRORS = (400, 401, 404, 503)
REPORT = Operation(
    id="reportCall",
    tag=Tag.CALLS,
    summary="Report that a call was answered or has ended",
    description="A repeated report gets the same answer and changes nothing. After 503, send the report again.",
    parameters=[
        Parameter(ID, "header", "Id of the message.", is_required=True),
        Parameter(TIMESTAMP, "header", "Time of the signature in Unix seconds, at most 300 s from now.", int, True),
    ],
    body=Body([CallReport]),
    answers=_STORED,
    errors=_ERRORS,
    security={Scheme.WEBHOOK_SIGNATURE: ()},
)
REPORT_OF_TWILIO = Operation(
    id="reportCallOfTwilio",
    tag=Tag.CALLS,
    summary="Take a status callback of Twilio",
    parameters=[Parameter("callId", "query", "Id of the call.")],
    body=Body(
        media_type="application/x-www-form-urlencoded",
        description="The fields that Twilio sends, such as `CallSid`, `CallStatus` and `SequenceNumber`.",
    ),
    answers=_STORED,
    errors=_ERRORS,
    security={Scheme.TWILIO_SIGNATURE: ()},
)


class _SignatureInvalid(Unauthenticated):
    """The request is not signed with the secret."""


def callback_routes(settings: Settings, stores: Stores) -> list[DescribedRoute]:
    """Returns the routes. Without a secret they refuse every request."""
    callbacks = _CallbackHandlers(settings, stores)
    return [
        DescribedRoute(TELEPHONY_CALLBACK, _endpoint(callbacks.telephony), {"POST": REPORT}),
        DescribedRoute(TWILIO_CALLBACK, _endpoint(callbacks.twilio), {"POST": REPORT_OF_TWILIO}),
    ]


def _endpoint(handle: Callable[[Request], Awaitable[None]]) -> Callable[[Request], Awaitable[Response]]:
    async def endpoint(request: Request) -> Response:
        try:
            await handle(request)
        except ClientDisconnect:
            return Response(status_code=400)
        except Exception as error:
            return error_answer(error)
        return Response(status_code=204)

    return endpoint


class _CallbackHandlers:
    """Verifies the signatures of callbacks, and stores the reports in them."""

    def __init__(self, settings: Settings, stores: Stores) -> None:
        self._secret = settings.telephony_secret
        self._token = settings.twilio_token
        self._base_url = settings.base_url
        self._calls = stores.calls
        self._recordings = stores.call_recordings

    async def telephony(self, request: Request) -> None:
        """Stores one report, sent as JSON."""
        body = await read_body(request, MAX_BODY_BYTES)
        if not self._secret:
            raise _SignatureInvalid("No telephony secret is set on this server.")
        try:
            verify(self._secret, request.headers, body, time.time())
        except SignatureRefused as error:
            raise _SignatureInvalid(str(error)) from None
        report = parsed(CallReport, json_object(body))
        recording_url = checked_recording_url(report.recording_url)
        task = await self._calls.report(report.call_id, report.sequence, report.event, report.outcome)
        if recording_url is not None:
            await self._recordings.report(task.organization_id, report.call_id, recording_url)

    async def twilio(self, request: Request) -> None:
        """Stores one status callback of Twilio. Accepts callbacks without a report, such as those for ringing."""
        body = await read_body(request, MAX_BODY_BYTES)
        fields = _form(body)
        url = f"{self._base_url}{request.url.path}" + (f"?{request.url.query}" if request.url.query else "")
        signature = request.headers.get("x-twilio-signature", "")
        if not self._token or not hmac.compare_digest(
            twilio_signature(self._token, url, fields).encode(), signature.encode()
        ):
            raise _SignatureInvalid("X-Twilio-Signature does not match.")
        try:
            report = report_of(dict(fields))
        except ValueError:
            raise BadUserInput("SequenceNumber", "a number") from None
        call_id = request.query_params.get("callId", "")
        if sid := dict(fields).get("CallSid"):
            await self._calls.store_reference(call_id, sid)
        if report is not None and report.sequence > MAX_SEQUENCE:
            raise BadUserInput("SequenceNumber", f"at most {MAX_SEQUENCE}")
        if report is not None:
            await self._calls.report(call_id, report.sequence, report.kind, report.outcome)


def _form(body: bytes) -> list[tuple[str, str]]:
    try:
        return parse_qsl(body.decode(), keep_blank_values=True, max_num_fields=MAX_FIELDS)
    except ValueError:
        raise BadUserInput("body", "a form") from None
