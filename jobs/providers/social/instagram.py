"""Instagram: a container is created, becomes FINISHED, and is published once. It expires after 24 hours.

The container's status reveals the outcome of a lost response, and Instagram refuses to publish a container twice. So
only a call with the same container is repeated.
Source: developers.facebook.com, Instagram Platform, Content Publishing.
"""

import asyncio
from collections.abc import Sequence
from datetime import datetime
from typing import Any

from jobs.providers.social.http import HttpClient, NetworkResponse, bearer, require_success
from jobs.providers.social.network import (
    Account,
    MediaUpload,
    NetworkRefused,
    NoEffect,
    NotPublished,
    OutcomeUncertain,
    OutgoingPost,
    PublishedPost,
    UploadExpired,
)
from storage.publishing.networks import BEHAVIOURS, MediaKind, Network, ReconciliationMethod
from storage.publishing.records import ScheduledMedia

CONTAINER_KEPT_S = 24 * 3600
POLL_S = 5.0
POLLS = 60
NOT_READY = 9007
MAY_BE_PUBLISHED = 2207051
"""A subcode that Instagram returns although the post went live."""

RATE_LIMITED = frozenset({4, 17, 32, 613})
LIMIT_REACHED = 2207042


class Instagram:
    """Publishes to professional accounts. Instagram fetches the media itself, so their addresses must be public."""

    def __init__(self, http: HttpClient, poll_s: float = POLL_S) -> None:
        """`poll_s` is the pause in seconds between two requests for a container's status."""
        self._http = http
        self._poll_s = poll_s

    async def upload(self, account: Account, post: OutgoingPost) -> MediaUpload:
        """Creates one container: of an image or a reel, or of a carousel after its children."""
        if len(post.media) == 1:
            container = await self._create(account, _medium(post.media[0]) | {"caption": post.text})
        else:
            children = [await self._create_finished_child(account, each) for each in post.media]
            carousel = {"media_type": "CAROUSEL", "children": ",".join(children), "caption": post.text}
            container = await self._create(account, carousel)
        await self._wait_until_finished(account, container)
        return MediaUpload([container], CONTAINER_KEPT_S)

    async def _create_finished_child(self, account: Account, medium: ScheduledMedia) -> str:
        child = await self._create(account, _medium(medium) | {"is_carousel_item": "true"})
        await self._wait_until_finished(account, child)
        return child

    async def _create(self, account: Account, fields: dict[str, str]) -> str:
        user, headers = _credentials(account)
        answer = await self._http.send_retryable("POST", _url(account, f"{user}/media"), headers=headers, data=fields)
        return answer.text("id")

    async def _wait_until_finished(self, account: Account, container: str) -> None:
        for _ in range(POLLS):
            status, detail = await self._status(account, container)
            if status == "FINISHED":
                return
            if status in ("ERROR", "EXPIRED"):
                raise NetworkRefused("MEDIA_REFUSED", f"{status}: {detail}")
            await asyncio.sleep(self._poll_s)
        raise NoEffect("Instagram is still processing the media.")

    async def _status(self, account: Account, container: str) -> tuple[str, str]:
        _, headers = _credentials(account)
        query = {"fields": "status_code,status"}
        answer = await self._http.send_retryable("GET", _url(account, container), headers=headers, params=query)
        return answer.text("status_code"), str(answer["status"])

    async def publish(self, account: Account, post: OutgoingPost, key: str, references: Sequence[Any]) -> PublishedPost:
        """Publishes the container, unless the account's quota is used up."""
        user, headers = _credentials(account)
        await self._check_quota(account)
        (container,) = references
        answer = await self._http.send(
            "POST", _url(account, f"{user}/media_publish"), headers=headers, data={"creation_id": container}
        )
        if not answer.is_success:
            raise _failure(answer)
        id_ = answer.text("id")
        return PublishedPost(id_, await self._permalink(account, id_))

    async def _check_quota(self, account: Account) -> None:
        """Checks the quota. Instagram documents different numbers, so the limit is read from the API."""
        user, headers = _credentials(account)
        query = {"fields": "quota_usage,config"}
        answer = await self._http.send_retryable(
            "GET", _url(account, f"{user}/content_publishing_limit"), headers=headers, params=query
        )
        for limit in answer["data"] or ():
            total = limit.get("config", {}).get("quota_total")
            if total is not None and limit["quota_usage"] >= total:
                raise NetworkRefused("QUOTA_REACHED", f"The account has published {total} posts within a day.")

    async def _permalink(self, account: Account, id_: str) -> str | None:
        _, headers = _credentials(account)
        try:
            answer = await self._http.send_retryable(
                "GET", _url(account, id_), headers=headers, params={"fields": "permalink"}
            )
        except (NoEffect, NetworkRefused):
            return None  # The post is published all the same.
        return answer["permalink"] and str(answer["permalink"])

    async def look_up(self, account: Account, references: Sequence[Any]) -> PublishedPost | None:
        """Returns the publication for PUBLISHED, and None for EXPIRED or ERROR, which never publish."""
        if not references:
            return None
        status, detail = await self._status(account, references[0])
        if status == "PUBLISHED":
            return PublishedPost(None, None)
        if status in ("EXPIRED", "ERROR"):
            return None
        if status == "FINISHED":
            raise NotPublished(detail)
        raise OutcomeUncertain(f"{status}: {detail}")

    def reconciliation_method(self, account: Account) -> ReconciliationMethod:
        """Returns QUERYABLE: the container's status is requested."""
        return ReconciliationMethod.QUERY

    def new_key(self, publication_id: str, due_at: datetime) -> str:
        """Returns the publication's id; it is the container that is published once."""
        return publication_id


def _medium(medium: ScheduledMedia) -> dict[str, str]:
    if medium.kind is MediaKind.IMAGE:
        return {"image_url": medium.url} | ({"alt_text": medium.alt_text} if medium.alt_text else {})
    return {"video_url": medium.url, "media_type": "REELS" if medium.kind is MediaKind.REEL else "VIDEO"}


def _credentials(account: Account) -> tuple[str, dict[str, str]]:
    user, _, token = account.secret.partition(":")
    return user, bearer(token)


def _url(account: Account, path: str) -> str:
    return f"{account.base_url or BEHAVIOURS[Network.INSTAGRAM].own_address}/{path}"


def _failure(answer: NetworkResponse) -> Exception:
    """Classifies Instagram's error codes by their effect."""
    error = answer["error"] if isinstance(answer["error"], dict) else {}
    code, subcode, message = error.get("code"), error.get("error_subcode"), str(error.get("message", answer.summary))
    if subcode == MAY_BE_PUBLISHED:
        return OutcomeUncertain(message)
    if subcode == LIMIT_REACHED:
        return NetworkRefused("QUOTA_REACHED", message)
    if code == NOT_READY or code in RATE_LIMITED:
        return NoEffect(message)
    if code == 24 or "expired" in message.lower():
        return UploadExpired(message)
    try:
        require_success(answer)
    except (NetworkRefused, NoEffect, OutcomeUncertain) as failure:
        return failure
    return OutcomeUncertain(message)
