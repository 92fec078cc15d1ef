"""Twilio's Calls API and its status callbacks (https://www.twilio.com/docs/voice/api/call-resource).

Twilio has no parameter for callId or notAfter. The callId is part of the callback's URL, and the broker must prevent
late starts.
"""

import base64
import hashlib
import hmac
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from email.utils import parsedate_to_datetime
from urllib.parse import quote, urlencode
from xml.sax.saxutils import escape

import httpx2

from jobs.providers.telephony.protocol import (
    CallActive,
    CallDeferred,
    CallEnded,
    CallRefused,
    CallStarted,
    CallState,
    CallUntraceable,
    QueryFailed,
    StartOutcome,
    StartUncertain,
)
from jobs.providers.telephony.webhook import HOLD_OFF_S, TIMEOUT_S, hold_off_s
from storage.calls.call_changes import Call
from storage.calls.records import CallOutcome, CallReportKind

API_URL = "https://api.twilio.com"
VERSION = "2010-04-01"
EVENTS = ("initiated", "ringing", "answered", "completed")
CLOCK_SLACK = timedelta(seconds=5)
PAGE_SIZE = 200
NO_SUCH_NUMBER_SIP_CODES = frozenset({"404", "484", "604"})
_OUTCOMES = {
    "busy": CallOutcome.BUSY,
    "no-answer": CallOutcome.NO_ANSWER,
    "failed": CallOutcome.NETWORK_ERROR,
    "canceled": CallOutcome.EXPIRED,
}
FINAL_STATUSES = frozenset({"completed", *_OUTCOMES})


class TwilioTelephony:
    """One Twilio account that calls from one number."""

    honours_not_after = False

    def __init__(self, account: str, token: str, caller: str, callback_url: str, api_url: str = API_URL) -> None:
        """`caller` is the number that is shown to the called person; `callback_url` has no query."""
        self._calls = f"{api_url}/{VERSION}/Accounts/{account}/Calls"
        self._caller = caller
        self._callback_url = callback_url
        self._http = httpx2.AsyncClient(auth=(account, token), timeout=TIMEOUT_S, trust_env=False)

    async def start(self, call: Call) -> StartOutcome:
        """Sends POST Calls.json. After a lost response the request is not repeated, because Twilio would call twice."""
        try:
            response = await self._http.post(f"{self._calls}.json", data=self._form(call))
        except httpx2.ConnectError:
            return CallDeferred(HOLD_OFF_S)
        except httpx2.HTTPError as error:
            return StartUncertain(type(error).__name__)
        if response.status_code == 429:
            return CallDeferred(hold_off_s(response.headers.get("retry-after", "")))
        if response.status_code >= 500:
            return StartUncertain(f"{response.status_code} to a call")
        return CallStarted(_sid(response)) if response.is_success else CallRefused(_refusal_reason(response))

    async def look_up(self, call: Call) -> CallState:
        """Returns the call's state. Without the SID, looks for the call among Twilio's calls to its number."""
        try:
            if call.reference is not None:
                return _state_from_response(
                    await self._http.get(f"{self._calls}/{quote(call.reference, safe='')}.json")
                )
            # Not filtered by StartTime, which queued calls lack.
            query = {"To": call.phone_number, "From": self._caller, "PageSize": str(PAGE_SIZE)}
            return _state_from_list(await self._http.get(f"{self._calls}.json", params=query), call)
        except (httpx2.HTTPError, ValueError, KeyError, TypeError) as error:
            return QueryFailed(type(error).__name__)

    async def aclose(self) -> None:
        """Closes connections."""
        await self._http.aclose()

    def _form(self, call: Call) -> dict[str, str | Sequence[str]]:
        form: dict[str, str | Sequence[str]] = {
            "To": call.phone_number,
            "From": self._caller,
            "StatusCallback": f"{self._callback_url}?{urlencode({'callId': call.id})}",
            "StatusCallbackMethod": "POST",
            "StatusCallbackEvent": EVENTS,
            "MachineDetection": "Enable",
        }
        return {**form, **_instructions(call)}


def _instructions(call: Call) -> dict[str, str]:
    """Returns the parameters for a scenario: a URL of TwiML, an application's id, or words to say."""
    variables = dict(call.variables)
    if call.scenario.startswith(("https://", "http://")):
        separator = "&" if "?" in call.scenario else "?"
        return {"Url": f"{call.scenario}{separator}{urlencode(variables)}" if variables else call.scenario}
    if call.scenario.startswith("AP") and len(call.scenario) == 34:
        return {"ApplicationSid": call.scenario}
    words = call.scenario
    for name, value in variables.items():
        words = words.replace(f"{{{name}}}", value)
    return {"Twiml": f"<Response><Say>{escape(words)}</Say></Response>"}


def _refusal_reason(response: httpx2.Response) -> str:
    try:
        body = response.json()
        return f"Twilio {body['code']}: {body['message']}"[:200]
    except (ValueError, KeyError, TypeError):
        return f"Twilio: {response.status_code}"


def _may_be_same_call(listed_call: Mapping[str, str], call: Call) -> bool:
    """Returns whether Twilio created the listed call at the time when this call may have been started."""
    try:
        created: datetime = parsedate_to_datetime(listed_call["date_created"])
    except (KeyError, TypeError, ValueError):
        return False
    return call.start_at - CLOCK_SLACK <= created <= call.not_after + timedelta(seconds=TIMEOUT_S) + CLOCK_SLACK


def _sid(response: httpx2.Response) -> str | None:
    try:
        sid = response.json()["sid"]
    except (ValueError, KeyError, TypeError):
        return None
    return sid if isinstance(sid, str) else None


def _state_from_response(response: httpx2.Response) -> CallState:
    if response.status_code == 404:
        # The call was deleted, which Twilio allows for ended calls only.
        return CallEnded(None)
    if response.status_code != 200:
        return QueryFailed(f"{response.status_code} to a query")
    return _state_of_listed_call(response.json())


def _state_from_list(response: httpx2.Response, call: Call) -> CallState:
    """Returns the state from the listed calls that may be this call: active while any of these calls is active."""
    if response.status_code != 200:
        return QueryFailed(f"{response.status_code} to a query")
    states = [
        _state_of_listed_call(listed_call)
        for listed_call in response.json()["calls"]
        if _may_be_same_call(listed_call, call)
    ]
    if CallActive() in states:
        return CallActive()
    return states[0] if len(states) == 1 else CallUntraceable()


def _state_of_listed_call(listed_call: Mapping[str, str]) -> CallState:
    return CallEnded(outcome_of(listed_call)) if listed_call["status"] in FINAL_STATUSES else CallActive()


def outcome_of(fields: Mapping[str, str]) -> CallOutcome | None:
    """Returns how a call ended, from the fields of a callback or a call; None if they do not show it."""
    status = fields.get("CallStatus") or fields.get("status", "")
    if status == "completed":
        machine = fields.get("AnsweredBy") or fields.get("answered_by") or ""
        return CallOutcome.VOICEMAIL if machine.startswith(("machine", "fax")) else CallOutcome.ANSWERED
    if status == "failed" and fields.get("SipResponseCode") in NO_SUCH_NUMBER_SIP_CODES:
        return CallOutcome.INVALID_NUMBER
    return _OUTCOMES.get(status)


@dataclass(frozen=True, slots=True)
class TwilioReport:
    """A status callback of Twilio as a report."""

    sequence: int
    kind: CallReportKind
    outcome: CallOutcome | None


def report_of(fields: Mapping[str, str]) -> TwilioReport | None:
    """Returns the report in a callback, or None for states such as ringing.

    Raises: ValueError if SequenceNumber is not a number.
    """
    sequence = int(fields.get("SequenceNumber", ""))
    if fields.get("CallStatus") == "in-progress":
        return TwilioReport(sequence, CallReportKind.ANSWERED, None)
    outcome = outcome_of(fields)
    return None if outcome is None else TwilioReport(sequence, CallReportKind.ENDED, outcome)


def twilio_signature(token: str, url: str, fields: Sequence[tuple[str, str]]) -> str:
    """Returns X-Twilio-Signature of a POSTed form: HMAC-SHA1 over the URL and the sorted fields, without separators."""
    signed = url + "".join(name + value for name, value in sorted(set(fields)))
    return base64.b64encode(hmac.new(token.encode(), signed.encode(), hashlib.sha1).digest()).decode()
