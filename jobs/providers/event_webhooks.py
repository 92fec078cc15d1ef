"""Sends events to addresses of organizations: one signed POST for each."""

import asyncio
import time
from collections.abc import Sequence
from typing import cast

import httpx2

from jobs.providers.egress import EgressRefused, GuardedTransport, web_url
from jobs.providers.retry_after import retry_after_s
from jobs.providers.signed_webhooks import SIGNATURE, sign
from storage.webhooks.deliveries import DeliveryResult, SentMessage
from storage.webhooks.records import DeliveryOutcome

TIMEOUT_S = 10.0
CONNECT_TIMEOUT_S = 5.0
MAX_ANSWER_BYTES = 4000
USER_AGENT = "Noroshi/0.1 (webhooks)"


class WebhookSender:
    """Sends requests through the address guard. It follows no redirects, and keeps no cookies."""

    def __init__(self, transport: GuardedTransport) -> None:
        self._transport = transport

    async def send(self, url: str, secrets: Sequence[str], message: SentMessage) -> DeliveryResult:
        """Sends a message, signed by each of the secrets. Each failure is a result, too."""
        started = time.monotonic()
        status, answer, retry_after = await self._try(url, secrets, message)
        is_success = status is not None and 200 <= status < 300
        outcome = DeliveryOutcome.DELIVERED if is_success else DeliveryOutcome.FAILED
        duration_ms = round((time.monotonic() - started) * 1000)
        return DeliveryResult(outcome, status, answer, duration_ms, retry_after)

    async def _try(
        self, url: str, secrets: Sequence[str], message: SentMessage
    ) -> tuple[int | None, str, float | None]:
        """Returns the status, the beginning of the answer or what went wrong, and the seconds of Retry-After."""
        try:
            async with asyncio.timeout(TIMEOUT_S):
                return await self._post(url, secrets, message)
        except EgressRefused as error:
            return None, f"This server may not send requests to the address: {error}", None
        except TimeoutError:
            return None, f"No complete answer within {TIMEOUT_S:g} s", None
        except (httpx2.HTTPError, OSError) as error:
            return None, f"{type(error).__name__}: {error}", None

    async def _post(self, url: str, secrets: Sequence[str], message: SentMessage) -> tuple[int, str, float | None]:
        timeout = httpx2.Timeout(None, connect=CONNECT_TIMEOUT_S)
        headers = {
            "Content-Type": "application/json",
            "User-Agent": USER_AGENT,
            "Accept-Encoding": "identity",
            **signatures(secrets, message),
        }
        request = httpx2.Request(
            "POST", web_url(url), headers=headers, content=message.body, extensions={"timeout": timeout.as_dict()}
        )
        response = await self._transport.handle_async_request(request)
        try:
            body = bytearray()
            async for piece in cast(httpx2.AsyncByteStream, response.stream):
                body += piece
                if len(body) > MAX_ANSWER_BYTES:
                    break
            text = bytes(body[:MAX_ANSWER_BYTES]).decode(errors="replace")
            return response.status_code, text, retry_after_s(response.headers.get("retry-after", ""))
        finally:
            await response.aclose()


def signatures(secrets: Sequence[str], message: SentMessage) -> dict[str, str]:
    """Returns the headers that sign a message: one signature for each secret, the newest first."""
    signed_at = int(time.time())
    signed = [sign(secret, message.message_id, signed_at, message.body) for secret in secrets]
    return signed[0] | {SIGNATURE: " ".join(each[SIGNATURE] for each in signed)}
