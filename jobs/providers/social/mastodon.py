"""Mastodon: media first, then one status under an Idempotency-Key, which the server keeps for an hour.

Source: docs.joinmastodon.org, methods/statuses, methods/media, methods/accounts#verify_credentials, and client/intro.
Servers write errors in their default language: app/controllers/api/base_controller.rb skips `set_locale`.
"""

import asyncio
from collections.abc import Sequence
from datetime import datetime
from typing import Any
from urllib.parse import urlsplit

from jobs.providers.social.http import (
    UPLOAD_TIMEOUT_S,
    HttpClient,
    NetworkResponse,
    bearer,
    require_accepted,
    require_success,
)
from jobs.providers.social.network import (
    MediaUpload,
    OutcomeUncertain,
    OutgoingPost,
    PublishedPost,
    PublishingAccount,
    PublishingRefused,
    RetryableFailure,
    UploadExpired,
)
from storage.publishing.network_files import MAX_IMAGE_BYTES, MAX_VIDEO_BYTES
from storage.publishing.networks import MediaKind, ReconciliationMethod
from storage.publishing.records import ScheduledMedia, VerifiedAccount

UNATTACHED_MEDIUM_LIFETIME_S = 24 * 3600
"""Servers remove media without a status after a day."""

NOT_PROCESSED = "not finished processing"
"""Part of the refusal of media that may be ready when they are queried, in English (mastodon/mastodon/issues/21864)."""

POLL_S = 1.0
POLLS = 60


class Mastodon:
    """Publishes to the Mastodon server at the account's `base_url`."""

    def __init__(self, http: HttpClient, poll_s: float = POLL_S) -> None:
        """`poll_s` is the pause in seconds between two requests for a medium that is being processed."""
        self._http = http
        self._poll_s = poll_s

    async def verify(self, account: PublishingAccount) -> VerifiedAccount:
        """Asks the server for the token's account. The token needs the scope `profile` or `read:accounts`."""
        response = await self._http.send(
            "GET", f"{account.base_url}/api/v1/accounts/verify_credentials", headers=bearer(account.secret)
        )
        owner = require_accepted(response)
        return VerifiedAccount(owner.text("id"), f"@{owner.text('acct')}@{urlsplit(account.base_url or '').hostname}")

    async def upload(self, account: PublishingAccount, post: OutgoingPost) -> MediaUpload:
        """Uploads the media, and waits until each is processed. Before that, a medium cannot be attached."""
        ids = [await self._upload_one(account, each) for each in post.media]
        for id_ in ids:
            await self._wait_until_processed(account, id_)
        return MediaUpload(ids, UNATTACHED_MEDIUM_LIFETIME_S)

    async def _upload_one(self, account: PublishingAccount, medium: ScheduledMedia) -> str:
        max_bytes = MAX_IMAGE_BYTES if medium.kind is MediaKind.IMAGE else MAX_VIDEO_BYTES
        async with self._http.load_medium(medium, max_bytes) as fetched:
            response = await self._http.send_retryable(
                "POST",
                f"{account.base_url}/api/v2/media",
                headers=bearer(account.secret),
                data={"description": medium.alt_text},
                files={"file": ("media", fetched.file, fetched.content_type)},
                timeout_s=UPLOAD_TIMEOUT_S,
            )
        return response.text("id")

    async def _wait_until_processed(self, account: PublishingAccount, id_: str) -> None:
        for _ in range(POLLS):
            response = await self._http.send_retryable("GET", _medium_url(account, id_), headers=bearer(account.secret))
            if response.status != 206:
                return
            await asyncio.sleep(self._poll_s)
        raise RetryableFailure("The server is still processing the media.")

    async def publish(
        self, account: PublishingAccount, post: OutgoingPost, key: str, references: Sequence[Any]
    ) -> PublishedPost:
        """Posts one status. A repeated key returns the first status again."""
        body: dict[str, Any] = {"status": post.text}
        if references:
            body["media_ids"] = list(references)
        headers = bearer(account.secret) | {"Idempotency-Key": key}
        response = await self._http.send("POST", f"{account.base_url}/api/v1/statuses", headers=headers, json=body)
        if response.status == 422:
            raise await self._unprocessable(account, response, references)
        posted = require_success(response)
        return PublishedPost(posted.text("id"), posted.text("url"))

    async def _unprocessable(
        self, account: PublishingAccount, response: NetworkResponse, references: Sequence[Any]
    ) -> Exception:
        """Returns the exception for a refused status. The refusal is in the server's language, so media are queried."""
        if NOT_PROCESSED in response.reason:
            return RetryableFailure(response.reason)
        for id_ in references:
            status = await self._medium_status(account, id_)
            if status == 404:
                return UploadExpired(response.reason)
            if status not in (200, 422):
                return RetryableFailure(response.reason)
        return PublishingRefused("REFUSED", response.reason)

    async def _medium_status(self, account: PublishingAccount, id_: str) -> int:
        """Returns the status of the answer: 404 for a medium that is deleted or attached, 206 while it is processed."""
        try:
            return (await self._http.send("GET", _medium_url(account, id_), headers=bearer(account.secret))).status
        except OutcomeUncertain as error:
            raise RetryableFailure(str(error)) from None

    async def look_up(self, account: PublishingAccount, references: Sequence[Any]) -> PublishedPost | None:
        """Raises OutcomeUncertain: after a lost response, the same key is sent again instead."""
        raise OutcomeUncertain("Mastodon is not queried: the same key is sent again.")

    def reconciliation_method(self, account: PublishingAccount) -> ReconciliationMethod:
        """Returns REPEAT, because the server remembers keys."""
        return ReconciliationMethod.REPEAT

    def new_key(self, publication_id: str, due_at: datetime) -> str:
        """Returns the publication's id."""
        return publication_id


def _medium_url(account: PublishingAccount, id_: str) -> str:
    return f"{account.base_url}/api/v1/media/{id_}"
