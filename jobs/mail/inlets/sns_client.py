"""Fetches the certificates by which Amazon SNS signs, and confirms subscriptions."""

from collections.abc import Callable

from cachetools import LRUCache

from jobs.mail.inlets.sns import is_sns_url
from jobs.providers.egress import Egress, EgressFailed, EgressRefused, FetchedResponse
from jobs.providers.signed_webhooks import SignatureRefused
from storage.errors import Unavailable

MAX_CERTIFICATES = 32
MAX_CERTIFICATE_BYTES = 64 * 1024


class SnsClient:
    """Sends requests to SNS. `is_sns_url` decides which addresses belong to it, also after redirects."""

    def __init__(self, egress: Egress, is_sns_url: Callable[[str], bool] = is_sns_url) -> None:
        self._egress = egress
        self._is_sns_url = is_sns_url
        self._certificates: LRUCache[str, bytes] = LRUCache(MAX_CERTIFICATES)

    async def certificate(self, url: str) -> bytes:
        """Returns the certificate at an address. Raises: SignatureRefused, Unavailable."""
        if url not in self._certificates:
            response = await self._get("SigningCertURL", url)
            if not 200 <= response.status < 300:
                raise SignatureRefused(f"SigningCertURL answers {response.status}")
            self._certificates[url] = response.body
        return self._certificates[url]

    async def confirm(self, subscribe_url: str) -> bool:
        """Confirms a subscription. Returns whether SNS has accepted it. Raises: SignatureRefused, Unavailable."""
        return 200 <= (await self._get("SubscribeURL", subscribe_url)).status < 300

    async def _get(self, name: str, url: str) -> FetchedResponse:
        if not self._is_sns_url(url):
            raise SignatureRefused(f"{name} is no address of Amazon SNS")
        try:
            response = await self._egress.get(url, max_bytes=MAX_CERTIFICATE_BYTES)
        except EgressRefused as error:
            raise SignatureRefused(f"{name} can't be fetched: {error}") from None
        except EgressFailed:
            raise Unavailable("Amazon SNS does not answer.") from None
        if not self._is_sns_url(response.url):
            raise SignatureRefused(f"{name} redirects to another server")
        return response
