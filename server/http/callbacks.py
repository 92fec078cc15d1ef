"""Callbacks of telephony providers: signed reports (docs/interfaces.md) and Twilio's status callbacks.

A report is identified by its call and sequence number. A repeated report gets the same answer and changes nothing. The
status 2xx means that the report is durable; 503 asks the provider to repeat it.
"""

import hmac
import time
from collections.abc import Awaitable, Callable
from urllib.parse import parse_qsl

from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response
from starlette.routing import Route

from jobs.providers.signed_webhooks import SignatureRefused, verify
from jobs.providers.telephony.twilio import report_of, twilio_signature
from resolvers.arguments import require_storable
from resolvers.calls.arguments import checked_recording_url
from server.http.json_answers import error_answer
from server.settings import Settings
from server.telephony import TELEPHONY_CALLBACK, TWILIO_CALLBACK
from server.transport.bodies import read_body
from server.transport.json_decoding import decode_json
from storage.calls.records import MAX_SEQUENCE, CallOutcome, CallReportKind
from storage.errors import BadUserInput, Unauthenticated
from storage.stores import Stores

MAX_BODY_BYTES = 64 * 1024
MAX_FIELDS = 100


class _SignatureInvalid(Unauthenticated):
    """The request is not signed with the secret."""


def callback_routes(settings: Settings, stores: Stores) -> list[Route]:
    """Returns the routes. Without a secret they refuse every request."""
    callbacks = _CallbackHandlers(settings, stores)
    return [
        Route(TELEPHONY_CALLBACK, _endpoint(callbacks.telephony), methods=["POST"]),
        Route(TWILIO_CALLBACK, _endpoint(callbacks.twilio), methods=["POST"]),
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
        call_id, sequence, kind, outcome, recording_url = _report(body)
        task = await self._calls.report(call_id, sequence, kind, outcome)
        if recording_url is not None:
            await self._recordings.report(task.organization_id, call_id, recording_url)

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


def _report(body: bytes) -> tuple[str, int, CallReportKind, CallOutcome | None, str | None]:
    """Returns a report's call id, sequence, kind, outcome and address of a recording. Raises: BadUserInput."""
    try:
        report = decode_json(body)
        require_storable(report)
        call_id, sequence, outcome = report["callId"], report["sequence"], report.get("outcome")
        recording_url = report.get("recordingUrl")
        kind = CallReportKind(report["event"])
        call_outcome = None if outcome is None else CallOutcome(outcome)
    except (ValueError, KeyError, TypeError, AttributeError):
        raise BadUserInput("body", '{"callId", "sequence", "event": "ANSWERED"|"ENDED", "outcome"?}') from None
    if not isinstance(call_id, str):
        raise BadUserInput("callId", "a string")
    if type(sequence) is not int or not 0 <= sequence <= MAX_SEQUENCE:
        raise BadUserInput("sequence", f"a number from 0 to {MAX_SEQUENCE}")
    if not isinstance(recording_url, str | None):
        raise BadUserInput("recordingUrl", "an address or null")
    return call_id, sequence, kind, call_outcome, checked_recording_url(recording_url)
