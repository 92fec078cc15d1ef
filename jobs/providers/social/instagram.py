"""Instagram: a container is created, becomes FINISHED, and is published once. A container expires after 24 hours.

After a lost response, the container's status shows the outcome. Instagram refuses to publish a container twice, so a
call is repeated only with the same container.
Source: developers.facebook.com, Instagram Platform, Content Publishing and Error Codes; and for `verify` API with
Instagram Login, Get Started.
"""

import asyncio
from collections.abc import Sequence
from datetime import datetime
from typing import Any

from jobs.providers.social.http import (
    HttpClient,
    NetworkResponse,
    bearer,
    refuses_credentials,
    require_accepted,
    require_success,
)
from jobs.providers.social.network import (
    CredentialsRefused,
    MediaUpload,
    NotPublished,
    OutcomeUncertain,
    OutgoingPost,
    PublishedPost,
    PublishingAccount,
    PublishingRefused,
    RetryableFailure,
    UploadExpired,
)
from storage.publishing.networks import BEHAVIOURS, MediaKind, Network, ReconciliationMethod
from storage.publishing.records import ScheduledMedia, VerifiedAccount

CONTAINER_LIFETIME_S = 24 * 3600
POLL_S = 5.0
POLLS = 60
NOT_READY = 9007
MAY_BE_PUBLISHED = 2207051
"""A subcode that Instagram returns although the post went live."""

RATE_LIMITED = frozenset({4, 17, 32, 613})
LIMIT_REACHED = 2207042
SERVER_ERRORS = frozenset({-2, -1, 1, 2})
"""Failures of Instagram itself, which come with status 400 too. Their pages say: try again."""


class Instagram:
    """Publishes to professional accounts. Instagram fetches the media itself, so their addresses must be public."""

    def __init__(self, http: HttpClient, poll_s: float = POLL_S) -> None:
        """`poll_s` is the pause in seconds between two requests for a container's status."""
        self._http = http
        self._poll_s = poll_s

    async def verify(self, account: PublishingAccount) -> VerifiedAccount:
        """Asks for the token's account, which must be the one whose id is in the credentials."""
        user, headers = _credentials(account)
        response = await self._http.send(
            "GET", _url(account, "me"), headers=headers, params={"fields": "user_id,username"}
        )
        if _error(response).get("code") in RATE_LIMITED:
            raise RetryableFailure(response.reason)
        owner = owner_of(require_accepted(response))
        if user not in (str(owner["user_id"]), str(owner.get("id"))):
            raise CredentialsRefused(f"The token belongs to the user {owner['user_id']}, not to {user}.")
        return VerifiedAccount(str(owner["user_id"]), f"@{owner['username']}")

    async def upload(self, account: PublishingAccount, post: OutgoingPost) -> MediaUpload:
        """Creates one container. Several media become a carousel, whose children are created first."""
        if len(post.media) == 1:
            container = await self._create(account, _medium(post.media[0]) | {"caption": post.text})
        else:
            children = [await self._create_finished_child(account, each) for each in post.media]
            carousel = {"media_type": "CAROUSEL", "children": ",".join(children), "caption": post.text}
            container = await self._create(account, carousel)
        await self._wait_until_finished(account, container)
        return MediaUpload([container], CONTAINER_LIFETIME_S)

    async def _create_finished_child(self, account: PublishingAccount, medium: ScheduledMedia) -> str:
        child = await self._create(account, _medium(medium) | {"is_carousel_item": "true"})
        await self._wait_until_finished(account, child)
        return child

    async def _create(self, account: PublishingAccount, fields: dict[str, str]) -> str:
        user, headers = _credentials(account)
        try:
            response = await self._http.send("POST", _url(account, f"{user}/media"), headers=headers, data=fields)
            if _error(response).get("code") in RATE_LIMITED | SERVER_ERRORS:
                raise RetryableFailure(response.reason)
            return require_success(response).text("id")
        except OutcomeUncertain as error:
            raise RetryableFailure(str(error)) from None

    async def _wait_until_finished(self, account: PublishingAccount, container: str) -> None:
        for _ in range(POLLS):
            status, detail = await self._status(account, container)
            if status == "FINISHED":
                return
            if status in ("ERROR", "EXPIRED"):
                raise PublishingRefused("MEDIA_REFUSED", f"{status}: {detail}")
            await asyncio.sleep(self._poll_s)
        raise RetryableFailure("Instagram is still processing the media.")

    async def _status(self, account: PublishingAccount, container: str) -> tuple[str, str]:
        _, headers = _credentials(account)
        query = {"fields": "status_code,status"}
        response = await self._http.send_retryable("GET", _url(account, container), headers=headers, params=query)
        return response.text("status_code"), str(response["status"])

    async def publish(
        self, account: PublishingAccount, post: OutgoingPost, key: str, references: Sequence[Any]
    ) -> PublishedPost:
        """Publishes the container, unless the account's quota is used up."""
        user, headers = _credentials(account)
        await self._check_quota(account)
        (container,) = references
        response = await self._http.send(
            "POST", _url(account, f"{user}/media_publish"), headers=headers, data={"creation_id": container}
        )
        if not response.is_success:
            raise _failure(response)
        id_ = response.text("id")
        return PublishedPost(id_, await self._permalink(account, id_))

    async def _check_quota(self, account: PublishingAccount) -> None:
        """Reads the account's quota from the API, since Instagram documents several values.

        Raises: PublishingRefused when the quota is used up.
        """
        user, headers = _credentials(account)
        query = {"fields": "quota_usage,config"}
        response = await self._http.send_retryable(
            "GET", _url(account, f"{user}/content_publishing_limit"), headers=headers, params=query
        )
        for limit in response["data"] or ():
            total = limit.get("config", {}).get("quota_total")
            if total is not None and limit["quota_usage"] >= total:
                raise PublishingRefused("QUOTA_REACHED", f"The account has published {total} posts within a day.")

    async def _permalink(self, account: PublishingAccount, id_: str) -> str | None:
        _, headers = _credentials(account)
        try:
            response = await self._http.send_retryable(
                "GET", _url(account, id_), headers=headers, params={"fields": "permalink"}
            )
        except (RetryableFailure, PublishingRefused):
            return None  # The post is published all the same.
        return response["permalink"] and str(response["permalink"])

    async def look_up(self, account: PublishingAccount, references: Sequence[Any]) -> PublishedPost | None:
        """Returns the post if the container is PUBLISHED.

        Returns None if nothing can be published: there is no container, or it is EXPIRED or ERROR. Raises: NotPublished
        for a FINISHED container, OutcomeUncertain for any other status.
        """
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

    def reconciliation_method(self, account: PublishingAccount) -> ReconciliationMethod:
        """Returns QUERY, because the container's status shows the outcome."""
        return ReconciliationMethod.QUERY

    def new_key(self, publication_id: str, due_at: datetime) -> str:
        """Returns the publication's id, which Instagram does not receive: the container prevents a second post."""
        return publication_id


def _medium(medium: ScheduledMedia) -> dict[str, str]:
    if medium.kind is MediaKind.IMAGE:
        return {"image_url": medium.url} | ({"alt_text": medium.alt_text} if medium.alt_text else {})
    return {"video_url": medium.url, "media_type": "REELS" if medium.kind is MediaKind.REEL else "VIDEO"}


def _credentials(account: PublishingAccount) -> tuple[str, dict[str, str]]:
    user, _, token = account.secret.partition(":")
    return user, bearer(token)


def _url(account: PublishingAccount, path: str) -> str:
    return f"{account.base_url or BEHAVIOURS[Network.INSTAGRAM].own_address}/{path}"


def _error(response: NetworkResponse) -> dict[str, Any]:
    error = response["error"]
    return error if isinstance(error, dict) else {}


def owner_of(response: NetworkResponse) -> dict[str, Any]:
    """Returns the user of a token. The page Get Started shows a list of one user, other pages the user itself.

    Raises: ValueError.
    """
    data = response["data"]
    owner = data[0] if isinstance(data, list) and data else response.json
    if not isinstance(owner, dict) or not {"user_id", "username"} <= owner.keys():
        raise ValueError("no user in the answer")
    return owner


def _failure(response: NetworkResponse) -> Exception:
    """Returns the exception for an error response, by whether the call may have had an effect."""
    error = _error(response)
    code, subcode, message = error.get("code"), error.get("error_subcode"), str(error.get("message", response.summary))
    if subcode == MAY_BE_PUBLISHED:
        return OutcomeUncertain(message)
    if refuses_credentials(response):
        # The message of an expired token is like that of an expired container.
        return CredentialsRefused(message)
    if subcode == LIMIT_REACHED:
        return PublishingRefused("QUOTA_REACHED", message)
    if code == NOT_READY or code in RATE_LIMITED:
        return RetryableFailure(message)
    if code == 24 or "expired" in message.lower():
        return UploadExpired(message)
    if code in SERVER_ERRORS:
        return OutcomeUncertain(message)
    try:
        require_success(response)
    except (PublishingRefused, RetryableFailure, OutcomeUncertain) as failure:
        return failure
    return OutcomeUncertain(message)
