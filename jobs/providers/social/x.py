"""X: media are uploaded in chunks, then one post is created.

X has neither idempotency keys nor a query for posts. After a lost response, a person must look at the account.

Source: docs.x.com, X API v2: media/upload (initialize, append, finalize, status) and POST /2/tweets, and GET
/2/users/me. Errors have the form of real responses, quoted in github.com/plhery/node-twitter-api-v2/issues/375 and
github.com/akrherz/iembot/issues/163.
"""

import asyncio
from collections.abc import Sequence
from datetime import datetime
from typing import Any

from jobs.providers.social.http import (
    UPLOAD_TIMEOUT_S,
    HttpClient,
    NetworkResponse,
    bearer,
    require_accepted,
    require_success,
)
from jobs.providers.social.media import MediaFile
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
from storage.publishing.networks import BEHAVIOURS, MediaKind, Network, ReconciliationMethod
from storage.publishing.records import ScheduledMedia, VerifiedAccount

CHUNK_BYTES = 4 * 1024 * 1024
MAX_POLL_S = 10.0
POLLS = 60


class X:
    """Publishes to X, whose responses say how long an uploaded medium can be used."""

    def __init__(self, http: HttpClient, max_poll_s: float = MAX_POLL_S) -> None:
        """`max_poll_s` is the longest pause in seconds between two requests for a medium that is being processed."""
        self._http = http
        self._max_poll_s = max_poll_s

    async def verify(self, account: PublishingAccount) -> VerifiedAccount:
        """Asks for the token's user, which only a token of a user has. It needs users.read and tweet.read."""
        response = await self._http.send("GET", _url(account, "/2/users/me"), headers=bearer(account.secret))
        user = require_accepted(response)["data"]
        if not isinstance(user, dict) or not {"id", "username"} <= user.keys():
            raise ValueError("no user in the answer")
        return VerifiedAccount(str(user["id"]), f"@{user['username']}")

    async def upload(self, account: PublishingAccount, post: OutgoingPost) -> MediaUpload:
        """Uploads the media. The upload as a whole expires when its first medium does."""
        uploads = [await self._upload_one(account, each) for each in post.media]
        lifetimes_s = [expires_in_s for _, expires_in_s in uploads if expires_in_s is not None]
        return MediaUpload([id_ for id_, _ in uploads], min(lifetimes_s, default=None))

    async def _upload_one(self, account: PublishingAccount, medium: ScheduledMedia) -> tuple[str, float | None]:
        is_image = medium.kind is MediaKind.IMAGE
        async with self._http.load_medium(medium, MAX_IMAGE_BYTES if is_image else MAX_VIDEO_BYTES) as fetched:
            id_ = await self._begin(account, fetched, is_image)
            await self._append(account, id_, fetched)
        data = (await self._send_retryable("POST", account, f"/2/media/upload/{id_}/finalize"))["data"]
        data = await self._wait_until_processed(account, id_, data)
        if medium.alt_text:
            metadata = {"id": id_, "metadata": {"alt_text": {"text": medium.alt_text[:1000]}}}
            await self._send_retryable("POST", account, "/2/media/metadata", json=metadata)
        expires_in_s = data.get("expires_after_secs")
        return id_, None if expires_in_s is None else float(expires_in_s)

    async def _begin(self, account: PublishingAccount, fetched: MediaFile, is_image: bool) -> str:
        begin = {
            "media_type": fetched.media_type,
            "total_bytes": fetched.size,
            "media_category": "tweet_image" if is_image else "tweet_video",
        }
        response = await self._send_retryable("POST", account, "/2/media/upload/initialize", json=begin)
        return str(response["data"]["id"])

    async def _append(self, account: PublishingAccount, id_: str, fetched: MediaFile) -> None:
        for index, start in enumerate(range(0, fetched.size, CHUNK_BYTES)):
            chunk = await fetched.read(start, CHUNK_BYTES)
            await self._send_retryable(
                "POST",
                account,
                f"/2/media/upload/{id_}/append",
                data={"segment_index": str(index)},
                files={"media": ("media", chunk, fetched.content_type)},
                timeout_s=UPLOAD_TIMEOUT_S,
            )

    async def _wait_until_processed(self, account: PublishingAccount, id_: str, data: Any) -> Any:
        for _ in range(POLLS):
            processing = data.get("processing_info")
            if processing is None or processing["state"] == "succeeded":
                return data
            if processing["state"] == "failed":
                raise PublishingRefused(
                    "MEDIA_REFUSED", str(processing.get("error", {}).get("message", "processing failed"))
                )
            await asyncio.sleep(min(float(processing.get("check_after_secs", 1)), self._max_poll_s))
            query = {"command": "STATUS", "media_id": id_}
            data = (await self._send_retryable("GET", account, "/2/media/upload", params=query))["data"]
        raise RetryableFailure("X is still processing the media.")

    async def publish(
        self, account: PublishingAccount, post: OutgoingPost, key: str, references: Sequence[Any]
    ) -> PublishedPost:
        """Creates one post."""
        body: dict[str, Any] = {"text": post.text}
        if references:
            body["media"] = {"media_ids": list(references)}
        response = await self._http.send("POST", _url(account, "/2/tweets"), headers=bearer(account.secret), json=body)
        if response.status == 400 and _refuses_media_ids(response):
            raise UploadExpired(response.summary)
        if response.status == 403 and "duplicate content" in str(response["detail"]):
            # The credentials are valid. X refuses a text that the account has posted before.
            raise PublishingRefused("REFUSED", response.summary)
        id_ = str(require_success(response)["data"]["id"])
        return PublishedPost(id_, f"https://x.com/i/status/{id_}")

    async def look_up(self, account: PublishingAccount, references: Sequence[Any]) -> PublishedPost | None:
        """Raises OutcomeUncertain: X reports nothing that links a post to a call."""
        raise OutcomeUncertain("X offers no query for posts.")

    def reconciliation_method(self, account: PublishingAccount) -> ReconciliationMethod:
        """Returns MANUAL, because X has neither keys nor a query."""
        return ReconciliationMethod.MANUAL

    def new_key(self, publication_id: str, due_at: datetime) -> str:
        """Returns the publication's id; X ignores it."""
        return publication_id

    async def _send_retryable(
        self, method: str, account: PublishingAccount, path: str, **request: Any
    ) -> NetworkResponse:
        return await self._http.send_retryable(method, _url(account, path), headers=bearer(account.secret), **request)


def _refuses_media_ids(response: NetworkResponse) -> bool:
    """Returns whether an item of `errors` names the parameter media.media_ids."""
    errors = response["errors"] or ()
    return any("media.media_ids" in (error.get("parameters") or {}) for error in errors)


def _url(account: PublishingAccount, path: str) -> str:
    return f"{account.base_url or BEHAVIOURS[Network.X].own_address}{path}"
