"""Bluesky (AT Protocol): a session by app password, blobs, and one record under a key that we choose.

Putting the same record under the same key again changes nothing, at any time.
Source: lexicons com.atproto.server.createSession, com.atproto.repo.uploadBlob and putRecord, app.bsky.feed.post.
"""

import asyncio
import re
import secrets
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from jobs.providers.social.http import UPLOAD_TIMEOUT_S, Answer, Http, bearer, check
from jobs.providers.social.network import Account, NoEffect, OutgoingPost, Published, Uncertain, Uploaded, UploadGone
from storage.networks import BEHAVIOURS, Certainty, Network
from storage.publishing.records import ScheduledMedia
from storage.timeline import instant

COLLECTION = "app.bsky.feed.post"
MAX_BLOB_BYTES = 1_000_000
BLOB_KEPT_S = 300.0
"""A blob that no record refers to is removed after minutes; the network does not say how many."""

SESSION_S = 1800.0
_ALPHABET = "234567abcdefghijklmnopqrstuvwxyz"
_URL = re.compile(rb"https?://[^\s<>\"]+[^\s<>\".,:;!?')\]]", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class _Session:
    token: str
    did: str
    until: float


class Bluesky:
    """Sessions are kept for half an hour, since servers limit how many are made."""

    def __init__(self, http: Http) -> None:
        self._http = http
        self._sessions: dict[tuple[str, str], _Session] = {}

    async def upload(self, account: Account, post: OutgoingPost) -> Uploaded:
        """One blob a medium."""
        session = await self._session(account)
        blobs = [await self._upload_one(account, session, each) for each in post.media]
        return Uploaded(blobs, BLOB_KEPT_S)

    async def _upload_one(self, account: Account, session: _Session, medium: ScheduledMedia) -> Any:
        fetched = await self._http.fetch(medium, MAX_BLOB_BYTES)
        answer = await self._http.ask(
            "POST",
            _method(account, "com.atproto.repo.uploadBlob"),
            headers=bearer(session.token) | {"Content-Type": fetched.content_type},
            content=fetched.body,
            timeout_s=UPLOAD_TIMEOUT_S,
        )
        return answer["blob"]

    async def publish(self, account: Account, post: OutgoingPost, key: str, references: Sequence[Any]) -> Published:
        """Puts the record under the key."""
        session = await self._session(account)
        body = {"repo": session.did, "collection": COLLECTION, "rkey": key, "record": _record(post, key, references)}
        answer = await self._http.send(
            "POST", _method(account, "com.atproto.repo.putRecord"), headers=bearer(session.token), json=body
        )
        if answer["error"] in ("ExpiredToken", "InvalidToken"):
            self._sessions.pop(_known(account), None)
            raise NoEffect("The session has expired.", 0.0)
        if answer.status == 400 and "blob" in str(answer["message"]).lower():
            raise UploadGone(str(answer["message"]))
        return Published(check(answer).text("uri"), f"https://bsky.app/profile/{session.did}/post/{key}")

    async def look_up(self, account: Account, references: Sequence[Any]) -> Published | None:
        """Never asked: the same record is put again."""
        raise Uncertain("Bluesky is not asked.")

    def certainty(self, account: Account) -> Certainty:
        """A record key is there once."""
        return Certainty.IDEMPOTENT

    def new_key(self, publication_id: str, due_at: datetime) -> str:
        """A record key of its own: a timestamp identifier (TID), random below the second."""
        microseconds = int(due_at.timestamp()) * 1_000_000 + secrets.randbelow(1_000_000)
        return tid(microseconds, secrets.randbelow(1024))

    async def _session(self, account: Account) -> _Session:
        known, now = self._sessions.get(_known(account)), asyncio.get_running_loop().time()
        if known is not None and known.until > now:
            return known
        identifier, _, password = account.secret.partition(":")
        answer: Answer = await self._http.ask(
            "POST",
            _method(account, "com.atproto.server.createSession"),
            json={"identifier": identifier, "password": password},
        )
        session = _Session(answer.text("accessJwt"), answer.text("did"), now + SESSION_S)
        self._sessions[_known(account)] = session
        return session


def tid(microseconds: int, clock_id: int) -> str:
    """A timestamp identifier: 53 bits of microseconds and 10 of a clock, in 13 sortable characters."""
    value = (microseconds & (2**53 - 1)) << 10 | clock_id
    return "".join(_ALPHABET[value >> shift & 31] for shift in range(60, -1, -5))


def _known(account: Account) -> tuple[str, str]:
    return account.id, account.secret


def _method(account: Account, name: str) -> str:
    return f"{account.base_url or BEHAVIOURS[Network.BLUESKY].own_address}/xrpc/{name}"


def tid_moment(key: str) -> datetime:
    """When the identifier says that it was made."""
    value = 0
    for character in key:
        value = value << 5 | _ALPHABET.index(character)
    return instant(value >> 10)


def _record(post: OutgoingPost, key: str, blobs: Sequence[Any]) -> dict[str, Any]:
    """The same on every try, or putting it again would change it: even its moment is the key's."""
    created_at = tid_moment(key).isoformat(timespec="milliseconds").replace("+00:00", "Z")
    record: dict[str, Any] = {"$type": COLLECTION, "text": post.text, "createdAt": created_at}
    if facets := _links(post.text):
        record["facets"] = facets
    if blobs:
        images = [{"alt": each.alt_text, "image": blob} for each, blob in zip(post.media, blobs, strict=True)]
        record["embed"] = {"$type": "app.bsky.embed.images", "images": images}
    return record


def _links(text: str) -> list[dict[str, Any]]:
    """What makes links of addresses: their places in bytes."""
    return [
        {
            "index": {"byteStart": match.start(), "byteEnd": match.end()},
            "features": [{"$type": "app.bsky.richtext.facet#link", "uri": match[0].decode()}],
        }
        for match in _URL.finditer(text.encode())
    ]
