"""A user's own URL: one signed POST, the same on every attempt (docs/interfaces.md, Signed webhooks)."""

import time
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any

import orjson

from jobs.providers.signed_webhooks import sign
from jobs.providers.social.http import HttpClient
from jobs.providers.social.network import (
    MediaUpload,
    OutcomeUncertain,
    OutgoingPost,
    PublishedPost,
    PublishingAccount,
    PublishingRefused,
)
from storage.publishing.networks import ReconciliationMethod
from storage.publishing.records import NOT_VERIFIED, VerifiedAccount


class WebhookNetwork:
    """Publishes by webhook. The receiver repeats its response to a known `webhook-id` for 24 hours."""

    def __init__(self, http: HttpClient) -> None:
        self._http = http

    async def verify(self, account: PublishingAccount) -> VerifiedAccount:
        """Returns an empty account: a receiver of webhooks is asked nothing."""
        return NOT_VERIFIED

    async def upload(self, account: PublishingAccount, post: OutgoingPost) -> MediaUpload:
        """Uploads nothing: media are sent as URLs."""
        return MediaUpload((), None)

    async def publish(
        self, account: PublishingAccount, post: OutgoingPost, key: str, references: Sequence[Any]
    ) -> PublishedPost:
        """Sends the post. 2xx means that it is published, 3xx and 4xx are final refusals, all else is uncertain."""
        body = orjson.dumps(_body(post))
        headers = sign(account.secret, key, int(time.time()), body)
        headers["Content-Type"] = "application/json"
        response = await self._http.send("POST", account.base_url or "", content=body, headers=headers)
        if response.is_success:
            return PublishedPost(_text(response["id"]), _text(response["url"]))
        if 300 <= response.status < 500:
            raise PublishingRefused("REFUSED", response.summary)
        raise OutcomeUncertain(response.summary)

    async def look_up(self, account: PublishingAccount, references: Sequence[Any]) -> PublishedPost | None:
        """Raises OutcomeUncertain: after a lost response, the same key is sent again instead."""
        raise OutcomeUncertain("Webhooks offer no query.")

    def reconciliation_method(self, account: PublishingAccount) -> ReconciliationMethod:
        """Returns REPEAT, because the receiver remembers keys."""
        return ReconciliationMethod.REPEAT

    def new_key(self, publication_id: str, due_at: datetime) -> str:
        """Returns the publication's id."""
        return publication_id


def _body(post: OutgoingPost) -> dict[str, Any]:
    author = post.author
    return {
        "publicationId": post.publication_id,
        "text": post.text,
        "media": [{"url": each.url, "altText": each.alt_text} for each in post.media],
        "dueAt": post.due_at.astimezone(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z"),
        "author": {"id": author.id, "handle": author.handle, "name": author.name},
    }


def _text(value: Any) -> str | None:
    return str(value)[:2048] if isinstance(value, str | int) else None
