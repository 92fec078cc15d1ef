"""Telephony by signed webhook (docs/interfaces.md): POST starts a call, GET queries it, callbackUrl gets reports."""

import time
from urllib.parse import quote, urlsplit

import httpx2
import orjson

from jobs.providers.retry_after import retry_after_s
from jobs.providers.signed_webhooks import sign
from jobs.providers.telephony.protocol import (
    CallActive,
    CallDeferred,
    CallEnded,
    CallNotFound,
    CallRefused,
    CallStarted,
    CallState,
    QueryFailed,
    StartOutcome,
    StartUncertain,
)
from storage.calls.call_changes import Call
from storage.calls.records import CallOutcome

TIMEOUT_S = 10.0
HOLD_OFF_S = 1.0
MAX_HOLD_OFF_S = 60.0
MAX_REASON_CHARS = 200


class WebhookTelephony:
    """The telephony service at the operator's URL. The address may be private, since the operator chose it."""

    honours_not_after = True

    def __init__(self, url: str, secret: str, callback_url: str) -> None:
        """`url` has no slash at its end."""
        self._url = url
        self._secret = secret
        self._callback_url = callback_url
        self._http = httpx2.AsyncClient(timeout=TIMEOUT_S, trust_env=False, follow_redirects=False, limits=_LIMITS)

    async def start(self, call: Call) -> StartOutcome:
        """Sends POST /calls, without retries."""
        body = orjson.dumps(self._request_body(call))
        headers = {"content-type": "application/json", **sign(self._secret, call.id, int(time.time()), body)}
        try:
            response = await self._http.post(f"{self._url}/calls", content=body, headers=headers)
        except httpx2.ConnectError:
            return CallDeferred(HOLD_OFF_S)
        except httpx2.HTTPError as error:
            return StartUncertain(_reason(error))
        return _start_outcome(response)

    async def look_up(self, call: Call) -> CallState:
        """Sends GET /calls/{callId}. The signature covers the path."""
        url = f"{self._url}/calls/{quote(call.id, safe='')}"
        headers = sign(self._secret, call.id, int(time.time()), urlsplit(url).path.encode())
        try:
            response = await self._http.get(url, headers=headers)
        except httpx2.HTTPError as error:
            return QueryFailed(_reason(error))
        if response.status_code == 404:
            return CallNotFound()
        if response.status_code != 200:
            return QueryFailed(f"{response.status_code} to a query")
        return _state_from_body(response.content)

    async def aclose(self) -> None:
        """Closes connections."""
        await self._http.aclose()

    def _request_body(self, call: Call) -> dict[str, object]:
        return {
            "callId": call.id,
            "organizationId": call.organization_id,
            "phoneNumber": call.phone_number,
            "scenario": call.scenario,
            "variables": dict(call.variables),
            "callbackUrl": self._callback_url,
            "notAfter": call.not_after.timestamp(),
        }


_LIMITS = httpx2.Limits(max_connections=1000, max_keepalive_connections=100)


def _start_outcome(response: httpx2.Response) -> StartOutcome:
    status = response.status_code
    if response.is_success:
        return CallStarted()
    if status == 410:
        return CallDeferred()
    if status == 429:
        return CallDeferred(hold_off_s(response.headers.get("retry-after", "")))
    if 400 <= status < 500:
        return CallRefused(f"{status}: {response.text[:MAX_REASON_CHARS]}")
    return StartUncertain(f"{status} to a call")


def hold_off_s(retry_after: str) -> float:
    """Returns the seconds until the time of a Retry-After header, at least 1 and at most 60; 1 without a valid one."""
    return min(max(retry_after_s(retry_after) or 0.0, HOLD_OFF_S), MAX_HOLD_OFF_S)


def _state_from_body(content: bytes) -> CallState:
    try:
        body = orjson.loads(content)
        state, outcome = body["state"], body.get("outcome")
        if state == "active":
            return CallActive()
        if state == "ended":
            return CallEnded(None if outcome is None else CallOutcome(outcome))
    except (ValueError, KeyError, TypeError, AttributeError):
        pass
    return QueryFailed("The response has no known state.")


def _reason(error: Exception) -> str:
    return f"{type(error).__name__}: {error}"[:MAX_REASON_CHARS]
