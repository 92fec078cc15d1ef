"""HTTP client for social networks. Requests pass the address guard; failures are classified by their effect."""

import asyncio
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from functools import lru_cache
from io import FileIO
from tempfile import TemporaryFile
from typing import Any, cast

import httpx2
import orjson

from jobs.providers.egress import Egress, EgressFailed, EgressRefused, write_all
from jobs.providers.retry_after import reset_in_s, retry_after_s
from jobs.providers.social.media import MediaFile
from jobs.providers.social.network import (
    CredentialsRefused,
    OutcomeUncertain,
    PublishingRefused,
    RetryableFailure,
    UploadedMedium,
)
from storage.publishing.network_files import MAX_IMAGE_BYTES
from storage.publishing.records import ScheduledMedia

CALL_TIMEOUT_S = 10.0
CONNECT_TIMEOUT_S = 5.0
UPLOAD_TIMEOUT_S = 60.0
MAX_RESPONSE_BYTES = 1024 * 1024
MAX_CONCURRENT_IMAGES = 16
MAX_CONCURRENT_VIDEOS = 2
"""Media are in temporary files during an upload, so a worker needs at most 1.25 GiB of disk for them."""

HEADERS = {"User-Agent": "Noroshi/0.1 (scheduled posts)", "Accept": "*/*", "Accept-Encoding": "identity"}
_SUMMARY_BYTES = 300
_MISSING_SCOPE = b"outside the authorized scopes"
_CREDENTIAL_REFUSALS = (
    b"Your login is ",
    b"/2/problems/oauth1-permissions",
    b"/2/problems/client-forbidden",
)
"""Bodies of a 403 that is about the login or the app.

Mastodon: app/controllers/api/base_controller.rb (`_MISSING_SCOPE`; a login that is disabled, pending or unconfirmed).
X: the problem types of a token without the right to write, and of an app without access.
"""

RESET_HEADERS = ("x-ratelimit-reset", "ratelimit-reset", "x-rate-limit-reset")
"""Headers with the end of a rate limit: of Mastodon (ISO 8601), and of Bluesky and X (Unix times). None of them sends
Retry-After. Sources: docs.joinmastodon.org, api/rate-limits, and mastodon/mastodon, config/initializers/rack_attack.rb;
github.com/MarshalX/atproto/issues/514; docs.x.com, Rate limits.
"""

_INVALID_TOKEN = frozenset({102, 190})
"""Codes of the Graph API for an access token that has expired or is invalid, also with status 400.

Source: developers.facebook.com, Graph API, Handling Errors.
"""


@dataclass(frozen=True, slots=True)
class NetworkResponse:
    """A network's response."""

    status: int
    headers: httpx2.Headers
    body: bytes = field(repr=False)

    @property
    def json(self) -> Any:
        """The body as JSON; an empty object when it is not JSON."""
        try:
            return orjson.loads(self.body)
        except orjson.JSONDecodeError:
            return {}

    def __getitem__(self, name: str) -> Any:
        """Returns a field of the JSON object, or None."""
        body = self.json
        return body.get(name) if isinstance(body, dict) else None

    def text(self, name: str) -> str:
        """Returns a required field. Raises: ValueError when it is missing."""
        value = self[name]
        if not isinstance(value, str | int):
            raise ValueError(f"no {name} in the answer")
        return str(value)

    @property
    def is_success(self) -> bool:
        """Whether the status is 2xx."""
        return 200 <= self.status < 300

    @property
    def reason(self) -> str:
        """The network's explanation of an error on one line; status and body if there is none. May be long."""
        error = self["error"]
        nested = error.get("message") if isinstance(error, dict) else None
        texts = [each for each in (nested, self["message"], self["detail"], error) if each and isinstance(each, str)]
        text = texts[0] if texts else f"HTTP {self.status} {self.body.decode(errors='replace')}"
        return " ".join(text.split())

    @property
    def summary(self) -> str:
        """The status and the beginning of the body, shown to the author."""
        return f"HTTP {self.status} {self.body[:_SUMMARY_BYTES].decode(errors='replace')}".strip()


class HttpClient:
    """Sends requests to addresses from users. Follows no redirects, keeps no cookies, reads no proxy settings."""

    def __init__(self, guard: Egress, call_timeout_s: float = CALL_TIMEOUT_S) -> None:
        """`call_timeout_s` applies to all requests except uploads. It must be shorter than MANUAL_LEASE_S."""
        self._guard = guard
        self._call_timeout_s = call_timeout_s
        self._images = asyncio.Semaphore(MAX_CONCURRENT_IMAGES)
        self._videos = asyncio.Semaphore(MAX_CONCURRENT_VIDEOS)

    async def send(
        self,
        method: str,
        url: str,
        *,
        headers: Mapping[str, str] | None = None,
        json: Any = None,
        content: bytes | MediaFile | None = None,
        data: Mapping[str, str] | None = None,
        files: Mapping[str, Any] | None = None,
        params: Mapping[str, str] | None = None,
        timeout_s: float | None = None,
    ) -> NetworkResponse:
        """Sends a request and returns the response, whatever its status is. A medium as `content` is streamed.

        Raises: RetryableFailure when no connection was made, PublishingRefused for a forbidden address,
        OutcomeUncertain for any later failure.
        """
        limit_s = self._call_timeout_s if timeout_s is None else timeout_s
        length = {"Content-Length": str(content.size)} if isinstance(content, MediaFile) else {}
        request = httpx2.Request(
            method,
            _parse_url(url),
            headers=HEADERS | dict(headers or {}) | length,
            json=json,
            content=content.pieces() if isinstance(content, MediaFile) else content,
            data=data,
            files=files,
            params=params,
            extensions={"timeout": {"connect": min(CONNECT_TIMEOUT_S, limit_s / 2)}},
        )
        try:
            async with asyncio.timeout(limit_s):
                return await self._exchange(request)
        except EgressRefused as error:
            raise PublishingRefused("BAD_ADDRESS", str(error)) from None
        except httpx2.LocalProtocolError as error:
            raise PublishingRefused("REFUSED", f"The request can't be sent: {error}") from None
        except (httpx2.ConnectError, httpx2.ConnectTimeout) as error:
            raise RetryableFailure(f"No connection: {type(error).__name__}") from error
        except (httpx2.HTTPError, OSError, TimeoutError) as error:
            raise OutcomeUncertain(f"The answer was lost: {type(error).__name__}") from error

    async def _exchange(self, request: httpx2.Request) -> NetworkResponse:
        response = await self._guard.transport.handle_async_request(request)
        try:
            body = bytearray()
            is_plain = "content-encoding" not in response.headers
            async for chunk in cast(httpx2.AsyncByteStream, response.stream) if is_plain else response.aiter_bytes():
                body += chunk
                if len(body) > MAX_RESPONSE_BYTES:
                    break
            return NetworkResponse(response.status_code, response.headers, bytes(body[:MAX_RESPONSE_BYTES]))
        finally:
            await response.aclose()

    async def send_retryable(self, method: str, url: str, **request: Any) -> NetworkResponse:
        """Sends a request that publishes nothing, so that a lost response may be retried. Returns the 2xx response.

        Raises: RetryableFailure, PublishingRefused.
        """
        try:
            return require_success(await self.send(method, url, **request))
        except OutcomeUncertain as error:
            raise RetryableFailure(str(error)) from None

    @asynccontextmanager
    async def load_medium(self, medium: ScheduledMedia, max_bytes: int) -> AsyncIterator[MediaFile]:
        """Fetches a medium into a temporary file, after a wait while too many are loaded. Copies an uploaded one.

        Raises: PublishingRefused, RetryableFailure.
        """
        async with self._images if max_bytes <= MAX_IMAGE_BYTES else self._videos:
            with _temporary_file() as file:
                if isinstance(medium, UploadedMedium):
                    yield await _copy(medium, file, max_bytes)
                else:
                    yield await self._fetch(medium, file, max_bytes)

    async def _fetch(self, medium: ScheduledMedia, file: FileIO, max_bytes: int) -> MediaFile:
        try:
            fetched = await self._guard.download(medium.url, file, max_bytes=max_bytes, timeout_s=UPLOAD_TIMEOUT_S)
        except EgressRefused as error:
            raise PublishingRefused("MEDIA_UNAVAILABLE", f"{medium.url}: {error}") from None
        except EgressFailed as error:
            raise RetryableFailure(f"{medium.url}: {error}") from error
        if fetched.status != 200:
            raise PublishingRefused("MEDIA_UNAVAILABLE", f"{medium.url} answers HTTP {fetched.status}")
        return MediaFile(file, file.tell(), fetched.content_type)


async def _copy(medium: UploadedMedium, file: FileIO, max_bytes: int) -> MediaFile:
    if medium.size > max_bytes:
        raise PublishingRefused("MEDIA_REFUSED", f"The file has {medium.size} bytes, more than {max_bytes}.")
    try:
        async for piece in medium.read():
            await asyncio.to_thread(write_all, file, piece)
    except OSError as error:
        raise RetryableFailure(f"The worker can't write a temporary file: {error}") from error
    return MediaFile(file, medium.size, medium.content_type)


def _temporary_file() -> FileIO:
    """Opens a file that has no name and is deleted when it is closed, also by a crash. Raises: RetryableFailure."""
    try:
        return TemporaryFile(buffering=0)
    except OSError as error:
        raise RetryableFailure(f"The worker can't create a temporary file: {error}") from error


@lru_cache(maxsize=1000)
def _parse_url(url: str) -> httpx2.URL:
    """Parses a URL; cached, since parsing takes longer than sending and many posts go to one address."""
    return httpx2.URL(url)


def require_success(response: NetworkResponse) -> NetworkResponse:
    """Returns the response when its status is 2xx.

    Raises: RetryableFailure for 429, since a rate-limited request has no effect; CredentialsRefused for 401, and for
    what `refuses_credentials` names; PublishingRefused for other 3xx and 4xx; OutcomeUncertain for any other status.
    """
    if response.is_success:
        return response
    if response.status == 429:
        raise RetryableFailure(f"Rate limited: {response.summary}", _wait_s(response.headers))
    if refuses_credentials(response):
        raise CredentialsRefused(response.summary)
    if 300 <= response.status < 500:
        raise PublishingRefused("UNAUTHORIZED" if response.status == 403 else "REFUSED", response.summary)
    raise OutcomeUncertain(response.summary)


def _wait_s(headers: httpx2.Headers) -> float | None:
    """Returns how long a rate-limited client has to wait; None if the network does not say so."""
    if (after_s := retry_after_s(headers.get("retry-after", ""))) is not None:
        return after_s
    return next((reset_in_s(headers[name]) for name in RESET_HEADERS if name in headers), None)


def require_accepted(response: NetworkResponse) -> NetworkResponse:
    """Returns the response to a request that verifies credentials, when its status is 2xx.

    Raises: as `require_success`, with the network's reason as the message. It may repeat the credentials. A missing
    scope is no CredentialsRefused: who may not ask for the account may still be allowed to publish.
    """
    try:
        return require_success(response)
    except PublishingRefused as refusal:
        if isinstance(refusal, CredentialsRefused) and not _lacks_scope(response):
            raise CredentialsRefused(response.reason) from None
        raise PublishingRefused(refusal.code, response.reason) from None
    except RetryableFailure as failure:
        raise RetryableFailure(response.reason, failure.after_s) from None
    except OutcomeUncertain:
        raise OutcomeUncertain(response.reason) from None


def refuses_credentials(response: NetworkResponse) -> bool:
    """Returns whether a 4xx is about the credentials. Any other 403 is about the content, or does not say."""
    if response.status == 403:
        return _lacks_scope(response) or any(each in response.body for each in _CREDENTIAL_REFUSALS)
    return response.status == 401 or (response.status == 400 and _graph_error_code(response) in _INVALID_TOKEN)


def _lacks_scope(response: NetworkResponse) -> bool:
    challenge = response.headers.get("www-authenticate", "")
    return response.status == 403 and ("insufficient_scope" in challenge or _MISSING_SCOPE in response.body)


def _graph_error_code(response: NetworkResponse) -> Any:
    error = response["error"]
    return error.get("code") if isinstance(error, dict) else None


def bearer(token: str) -> dict[str, str]:
    """Returns the Authorization header."""
    return {"Authorization": f"Bearer {token}"}
