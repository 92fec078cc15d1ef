"""Bluesky (AT Protocol): sessions by app password, uploads of blobs and videos, and posts.

A post is a record under a key that this module chooses. Putting the same record under its key again has no effect.
Sources: lexicons com.atproto.server.createSession and getServiceAuth, com.atproto.repo.uploadBlob and putRecord,
app.bsky.feed.post, app.bsky.embed.images and video.
"""

import asyncio
import re
import secrets
import time
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from urllib.parse import urlsplit

from jobs.providers.social.bluesky_video import MAX_VIDEO_BYTES, VideoService
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
    CredentialsRefused,
    MediaUpload,
    OutcomeUncertain,
    OutgoingPost,
    PublishedPost,
    PublishingAccount,
    PublishingRefused,
    RetryableFailure,
    UploadExpired,
)
from storage.publishing.network_files import FILE_LIMITS
from storage.publishing.networks import BEHAVIOURS, MediaKind, Network, ReconciliationMethod
from storage.publishing.records import ScheduledMedia, VerifiedAccount
from storage.timeline import instant

COLLECTION = "app.bsky.feed.post"
MAX_BLOB_BYTES = FILE_LIMITS[Network.BLUESKY].max_image_bytes
BLOB_LIFETIME_S = 300.0
"""How long an uploaded blob is used. Bluesky removes a blob without a record after some minutes (not documented)."""

BLOB_NOT_FOUND = "Could not find blob"
"""The beginning of the refusal of a record whose blob is gone (atproto, packages/pds/src/actor-store/blob)."""

SESSION_REUSE_S = 1800.0
VIDEO_TOKEN_LIFETIME_S = 1800
MAX_VIDEO_ALT_CHARS = 1000
"""The lexicon of videos limits alternative text to 1,000 graphemes; the lexicon of images has no limit."""

_TID_ALPHABET = "234567abcdefghijklmnopqrstuvwxyz"
_URL = re.compile(rb"https?://[^\s<>\"]+[^\s<>\".,:;!?')\]]", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class _Session:
    """A session of an account: `did` identifies the account, `server_did` the server that hosts its data."""

    token: str
    did: str
    server_did: str
    reusable_until: float


class Bluesky:
    """Publishes to Bluesky. Sessions are reused for half an hour, since servers limit how many may be created."""

    def __init__(self, http: HttpClient, videos: VideoService | None = None) -> None:
        self._http = http
        self._videos = videos or VideoService(http)
        self._sessions: dict[tuple[str, str], _Session] = {}

    async def verify(self, account: PublishingAccount) -> VerifiedAccount:
        """Creates a session, and uses it for nothing else.

        An account that is deactivated or suspended gets a session too, with a `status` that says so.
        """
        session = require_accepted(await self._request_session(account))
        if session["status"] not in (None, "active"):
            raise CredentialsRefused(f"The account is {session['status']}.")
        return VerifiedAccount(session.text("did"), f"@{session.text('handle')}")

    async def upload(self, account: PublishingAccount, post: OutgoingPost) -> MediaUpload:
        """Uploads one blob per medium."""
        blobs = [await self._upload_medium(account, post, each) for each in post.media]
        return MediaUpload(blobs, BLOB_LIFETIME_S)

    async def _upload_medium(self, account: PublishingAccount, post: OutgoingPost, medium: ScheduledMedia) -> Any:
        if medium.kind is MediaKind.VIDEO:
            async with self._http.load_medium(medium, MAX_VIDEO_BYTES) as video:
                job = await self._begin_video(account, post, video)
            return await self._videos.wait_for_blob(job)
        async with self._http.load_medium(medium, MAX_BLOB_BYTES) as fetched:
            response = await self._send_retryable(
                "POST",
                account,
                "com.atproto.repo.uploadBlob",
                {"Content-Type": fetched.content_type},
                content=fetched,
                timeout_s=UPLOAD_TIMEOUT_S,
            )
        return response["blob"]

    async def _begin_video(self, account: PublishingAccount, post: OutgoingPost, video: MediaFile) -> dict[str, Any]:
        if video.media_type != "video/mp4":
            raise PublishingRefused(
                "MEDIA_REFUSED", f"Bluesky accepts video/mp4 only; this video is {video.content_type or 'of no type'}."
            )
        session = await self._session(account)
        # The video service passes the processed video to the account's server, so the token is issued for that server.
        query = {"aud": session.server_did, "lxm": "com.atproto.repo.uploadBlob"}
        query["exp"] = str(int(time.time()) + VIDEO_TOKEN_LIFETIME_S)
        response = await self._send_retryable("GET", account, "com.atproto.server.getServiceAuth", params=query)
        return await self._videos.begin(response.text("token"), session.did, f"{post.publication_id}.mp4", video)

    async def _send_retryable(
        self, method: str, account: PublishingAccount, nsid: str, headers: dict[str, str] | None = None, **request: Any
    ) -> NetworkResponse:
        """Sends a request that publishes nothing, in the account's session. `nsid` is the name of the XRPC method.

        Raises: PublishingRefused; RetryableFailure, also for a lost response.
        """
        session = await self._session(account)
        try:
            response = await self._http.send(
                method, _xrpc_url(account, nsid), headers=bearer(session.token) | (headers or {}), **request
            )
            self._check_session(account, response)
            return require_success(response)
        except OutcomeUncertain as error:
            raise RetryableFailure(str(error)) from None

    def _check_session(self, account: PublishingAccount, response: NetworkResponse) -> None:
        """Raises: RetryableFailure when the session has expired; the next request creates a new one."""
        if response["error"] in ("ExpiredToken", "InvalidToken"):
            self._sessions.pop(_session_key(account), None)
            raise RetryableFailure("The session has expired.", after_s=0.0)

    async def publish(
        self, account: PublishingAccount, post: OutgoingPost, key: str, references: Sequence[Any]
    ) -> PublishedPost:
        """Puts the post's record under the key. Raises UploadExpired when the server no longer has a blob."""
        session = await self._session(account)
        body = {"repo": session.did, "collection": COLLECTION, "rkey": key, "record": _record(post, key, references)}
        response = await self._http.send(
            "POST", _xrpc_url(account, "com.atproto.repo.putRecord"), headers=bearer(session.token), json=body
        )
        self._check_session(account, response)
        if response.status == 400 and str(response["message"]).startswith(BLOB_NOT_FOUND):
            raise UploadExpired(str(response["message"]))
        return PublishedPost(
            require_success(response).text("uri"), f"https://bsky.app/profile/{session.did}/post/{key}"
        )

    async def look_up(self, account: PublishingAccount, references: Sequence[Any]) -> PublishedPost | None:
        """Raises OutcomeUncertain: after a lost response, the same record is put again instead."""
        raise OutcomeUncertain("Bluesky is not queried: the same record is put again.")

    def reconciliation_method(self, account: PublishingAccount) -> ReconciliationMethod:
        """Returns REPEAT, because a repository holds one record per key."""
        return ReconciliationMethod.REPEAT

    def new_key(self, publication_id: str, due_at: datetime) -> str:
        """Returns a record key: a timestamp identifier (TID) of the due moment with random microseconds."""
        microseconds = int(due_at.timestamp()) * 1_000_000 + secrets.randbelow(1_000_000)
        return tid(microseconds, secrets.randbelow(1024))

    async def _session(self, account: PublishingAccount) -> _Session:
        session, now = self._sessions.get(_session_key(account)), asyncio.get_running_loop().time()
        if session is not None and session.reusable_until > now:
            return session
        try:
            response = require_success(await self._request_session(account))
        except OutcomeUncertain as error:
            raise RetryableFailure(str(error)) from None
        server_did = _server_did(response, account)
        session = _Session(response.text("accessJwt"), response.text("did"), server_did, now + SESSION_REUSE_S)
        self._sessions[_session_key(account)] = session
        return session

    async def _request_session(self, account: PublishingAccount) -> NetworkResponse:
        identifier, _, password = account.secret.partition(":")
        return await self._http.send(
            "POST",
            _xrpc_url(account, "com.atproto.server.createSession"),
            json={"identifier": identifier, "password": password},
        )


def tid(microseconds: int, clock_id: int) -> str:
    """Returns a timestamp identifier: 53 bits of microseconds and 10 bits of clock id, as 13 sortable characters."""
    value = (microseconds & (2**53 - 1)) << 10 | clock_id
    return "".join(_TID_ALPHABET[value >> shift & 31] for shift in range(60, -1, -5))


def _session_key(account: PublishingAccount) -> tuple[str, str]:
    return account.id, account.secret


def _xrpc_url(account: PublishingAccount, nsid: str) -> str:
    return f"{account.base_url or BEHAVIOURS[Network.BLUESKY].own_address}/xrpc/{nsid}"


def _server_did(response: NetworkResponse, account: PublishingAccount) -> str:
    """Returns the DID of the server that hosts the account's data. The session may be at another server."""
    document = response["didDoc"]
    services = document.get("service", ()) if isinstance(document, dict) else ()
    endpoints = [str(each.get("serviceEndpoint")) for each in services if str(each.get("id")).endswith("#atproto_pds")]
    url = endpoints[0] if endpoints else _xrpc_url(account, "")
    return f"did:web:{urlsplit(url).hostname}"


def tid_time(key: str) -> datetime:
    """Returns the time that a timestamp identifier encodes."""
    value = 0
    for character in key:
        value = value << 5 | _TID_ALPHABET.index(character)
    return instant(value >> 10)


def _record(post: OutgoingPost, key: str, blobs: Sequence[Any]) -> dict[str, Any]:
    """Returns the record, which is the same on every attempt: even its creation time derives from the key."""
    created_at = tid_time(key).isoformat(timespec="milliseconds").replace("+00:00", "Z")
    record: dict[str, Any] = {"$type": COLLECTION, "text": post.text, "createdAt": created_at}
    if facets := _link_facets(post.text):
        record["facets"] = facets
    if blobs:
        record["embed"] = _embed(post.media, blobs)
    return record


def _embed(media: Sequence[ScheduledMedia], blobs: Sequence[Any]) -> dict[str, Any]:
    if media[0].kind is MediaKind.VIDEO:
        return {"$type": "app.bsky.embed.video", "video": blobs[0], "alt": media[0].alt_text[:MAX_VIDEO_ALT_CHARS]}
    images = [{"alt": each.alt_text, "image": blob} for each, blob in zip(media, blobs, strict=True)]
    return {"$type": "app.bsky.embed.images", "images": images}


def _link_facets(text: str) -> list[dict[str, Any]]:
    """Returns a facet for each URL, which makes it a link. Positions count bytes of UTF-8."""
    return [
        {
            "index": {"byteStart": match.start(), "byteEnd": match.end()},
            "features": [{"$type": "app.bsky.richtext.facet#link", "uri": match[0].decode()}],
        }
        for match in _URL.finditer(text.encode())
    ]
