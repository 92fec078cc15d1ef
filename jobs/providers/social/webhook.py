"""A URL of the user's own: one signed POST, the same on every try (docs/interfaces.md, Signed webhooks)."""

import time
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any

import orjson

from jobs.providers.signed_webhooks import sign
from jobs.providers.social.http import Http
from jobs.providers.social.network import Account, OutgoingPost, Published, Refused, Uncertain, Uploaded
from storage.publishing.networks import Certainty


class Webhook:
    """Sending the same `webhook-id` again is answered as before, for 24 hours."""

    def __init__(self, http: Http) -> None:
        self._http = http

    async def upload(self, account: Account, post: OutgoingPost) -> Uploaded:
        """Nothing: media go along as addresses."""
        return Uploaded((), None)

    async def publish(self, account: Account, post: OutgoingPost, key: str, references: Sequence[Any]) -> Published:
        """2xx is published, 3xx and 4xx are final, everything else leaves it open."""
        body = orjson.dumps(_body(post))
        headers = sign(account.secret, key, int(time.time()), body)
        headers["Content-Type"] = "application/json"
        answer = await self._http.send("POST", account.base_url or "", content=body, headers=headers)
        if answer.is_success:
            return Published(_text(answer["id"]), _text(answer["url"]))
        if 300 <= answer.status < 500:
            raise Refused("REFUSED", answer.told)
        raise Uncertain(answer.told)

    async def look_up(self, account: Account, references: Sequence[Any]) -> Published | None:
        """Never asked: the same key is sent again."""
        raise Uncertain("A webhook can't be asked.")

    def certainty(self, account: Account) -> Certainty:
        """The receiver remembers keys."""
        return Certainty.IDEMPOTENT

    def new_key(self, publication_id: str, due_at: datetime) -> str:
        """The publication's id."""
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
