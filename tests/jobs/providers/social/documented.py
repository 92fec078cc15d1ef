"""The requests that the networks' documentation describes, with the names and the types of all fields in question.

Field names are as in tests/twins/sent_requests.py. A name with "?" at its end is optional, or the page does not say
that it is required. Some optional fields that this product has no use for are left out.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from tests.twins.sent_requests import SentRequest

Kind = type | frozenset[str] | re.Pattern[str]
"""A type, the documented values, or the documented form of a text."""

TOKEN = re.compile(r"Bearer \S+")
AUTHORIZATION: dict[str, Kind] = {"authorization": TOKEN}
JSON: dict[str, Kind] = {"content-type": frozenset({"application/json"})}
FORM: dict[str, Kind] = {"content-type": frozenset({"application/x-www-form-urlencoded"})}
MULTIPART: dict[str, Kind] = {"content-type": re.compile("multipart/form-data; boundary=.+")}


def names_of(*names: str) -> re.Pattern[str]:
    """Returns the form of a list of these names, separated by commas."""
    name = f"(?:{'|'.join(names)})"
    return re.compile(f"{name}(?:,{name})*")


@dataclass(frozen=True)
class DocumentedRequest:
    """A request as a page documents it. `path` is a regular expression."""

    page: str
    method: str
    path: str
    query: Mapping[str, Kind] = field(default_factory=dict)
    body: Mapping[str, Kind] = field(default_factory=dict)
    headers: Mapping[str, Kind] = field(default_factory=lambda: AUTHORIZATION)
    needs_length: bool = False
    """Whether the page sets Content-Length, for a body that is a file."""

    def matches(self, sent: SentRequest) -> bool:
        """Returns whether this is the documentation of a request's method and path."""
        return sent.method == self.method and re.fullmatch(self.path, sent.path) is not None

    def check(self, sent: SentRequest) -> None:
        """Compares all headers and fields. Raises: AssertionError."""
        is_text = sent.content_type != "application/json"
        _compare({name: [text] for name, text in sent.headers.items()}, self.headers, is_text=True)
        _compare(sent.query, self.query, is_text=True)
        _compare(sent.body, self.body, is_text=is_text)
        assert sent.has_length or not self.needs_length


def _compare(sent: Mapping[str, list[Any]], documented: Mapping[str, Kind], *, is_text: bool) -> None:
    kinds = {name.removesuffix("?"): kind for name, kind in documented.items()}
    assert sent.keys() <= kinds.keys(), "A field is not documented."
    assert {name for name in documented if not name.endswith("?")} <= sent.keys(), "A required field is missing."
    for name, values in sent.items():
        assert name.endswith("]") or "[]." in name or len(values) == 1, f"{name} is given twice"
        assert all(_has_kind(value, kinds[name], is_text) for value in values), (name, values)


def _has_kind(value: Any, kind: Kind, is_text: bool) -> bool:
    match kind:
        case frozenset():
            return value in kind
        case re.Pattern():
            return isinstance(value, str) and kind.fullmatch(value) is not None
    if is_text and kind is int:
        return isinstance(value, str) and value.isdecimal()
    if is_text and kind is bool:
        return value in ("true", "false")
    return type(value) is kind


DID, NSID = re.compile(r"did:[a-z]+:\S+"), re.compile(r"[a-z]+(\.[a-zA-Z]+)+")
MEDIA_ID = re.compile(r"[0-9]{1,19}")

X = (
    DocumentedRequest(
        "docs.x.com/x-api/users/lookup/quickstart/authenticated-lookup",
        "GET",
        "/2/users/me",
        query={"user.fields?": str},
    ),
    DocumentedRequest(
        "docs.x.com/x-api/media/initialize-media-upload",
        "POST",
        "/2/media/upload/initialize",
        body={
            "additional_owners[]?": str,
            "media_category?": frozenset({"amplify_video", "tweet_gif", "tweet_image", "tweet_video", "subtitles"}),
            "media_type?": frozenset({"video/mp4", "video/webm", "video/quicktime", "image/jpeg", "image/png"}),
            "shared?": bool,
            "total_bytes?": int,
        },
        headers=AUTHORIZATION | JSON,
    ),
    DocumentedRequest(
        # The page has an example in JSON too. Its field `media` is a file, so it is sent as a form.
        "docs.x.com/x-api/media/append-media-upload, and quickstart/media-upload-chunked (multipart/form-data)",
        "POST",
        "/2/media/upload/[0-9]{1,19}/append",
        body={"media": bytes, "segment_index": int},
        headers=AUTHORIZATION | MULTIPART,
    ),
    DocumentedRequest("docs.x.com/x-api/media/finalize-media-upload", "POST", "/2/media/upload/[0-9]{1,19}/finalize"),
    DocumentedRequest(
        "docs.x.com/x-api/media/get-media-upload-status",
        "GET",
        "/2/media/upload",
        query={"media_id": MEDIA_ID, "command?": frozenset({"STATUS"})},
    ),
    DocumentedRequest(
        "docs.x.com/x-api/media/create-media-metadata",
        "POST",
        "/2/media/metadata",
        body={"id": MEDIA_ID, "metadata.alt_text.text?": re.compile("(?s).{1,1000}")},
        headers=AUTHORIZATION | JSON,
    ),
    DocumentedRequest(
        "docs.x.com/x-api/posts/creation-of-a-post",
        "POST",
        "/2/tweets",
        body={
            "media.media_ids[]?": MEDIA_ID,
            "media.tagged_user_ids[]?": str,
            "reply_settings?": str,
            "text?": str,
        },
        headers=AUTHORIZATION | JSON,
    ),
)

# The references of Instagram show the token as the parameter `access_token`, and Content Publishing as a header.
# Reading with a header at graph.instagram.com is reported in github.com/codeforboston/CutePetsBoston/pull/165. Content
# Publishing shows JSON, and for `branded_content_sponsor_ids` a form, as here.
CONTAINER_FIELDS: dict[str, Kind] = {
    "image_url?": re.compile(r"https?://\S+"),
    "video_url?": re.compile(r"https?://\S+"),
    "media_type?": frozenset({"VIDEO", "REELS", "STORIES", "CAROUSEL"}),
    "is_carousel_item?": bool,
    "children?": re.compile(r"\w+(,\w+){1,9}"),
    "caption?": str,
    "alt_text?": str,
}
INSTAGRAM_PAGES = "developers.facebook.com/docs/instagram-platform"
INSTAGRAM = (
    DocumentedRequest(
        f"{INSTAGRAM_PAGES}/instagram-api-with-instagram-login/get-started, and reference/me",
        "GET",
        "/me",
        query={"fields": names_of("id", "user_id", "username", "name", "account_type")},
    ),
    DocumentedRequest(
        f"{INSTAGRAM_PAGES}/content-publishing, and instagram-graph-api/reference/ig-user/media",
        "POST",
        "/[0-9]+/media",
        body=CONTAINER_FIELDS,
        headers=AUTHORIZATION | FORM,
    ),
    DocumentedRequest(
        f"{INSTAGRAM_PAGES}/content-publishing#publish-the-container",
        "POST",
        "/[0-9]+/media_publish",
        body={"creation_id": str},
        headers=AUTHORIZATION | FORM,
    ),
    DocumentedRequest(
        f"{INSTAGRAM_PAGES}/instagram-graph-api/reference/ig-user/content_publishing_limit",
        "GET",
        "/[0-9]+/content_publishing_limit",
        query={"fields?": names_of("config", "quota_usage"), "since?": int},
    ),
    DocumentedRequest(
        # `permalink` is a field of media, and the others are fields of containers.
        f"{INSTAGRAM_PAGES}/instagram-graph-api/reference/ig-container, and reference/instagram-media",
        "GET",
        "/[a-z0-9]+",
        query={"fields": names_of("copyright_check_status", "id", "status", "status_code", "permalink")},
    ),
)

MASTODON = (
    DocumentedRequest(
        "docs.joinmastodon.org/methods/accounts#verify_credentials", "GET", "/api/v1/accounts/verify_credentials"
    ),
    DocumentedRequest(
        "docs.joinmastodon.org/methods/media#v2",
        "POST",
        "/api/v2/media",
        body={"file": bytes, "thumbnail?": bytes, "description?": str, "focus?": str},
        headers=AUTHORIZATION | MULTIPART,
    ),
    DocumentedRequest("docs.joinmastodon.org/methods/media#get", "GET", "/api/v1/media/[^/]+"),
    DocumentedRequest(
        # The page lists fields of a form. JSON is equally understood: docs.joinmastodon.org/client/intro#parameters.
        "docs.joinmastodon.org/methods/statuses#create",
        "POST",
        "/api/v1/statuses",
        body={"status": str, "media_ids[]?": str, "sensitive?": bool, "visibility?": str, "language?": str},
        headers={**AUTHORIZATION, **JSON, "idempotency-key?": str},
    ),
)

_BLOB: dict[str, Kind] = {
    "$type": frozenset({"blob"}),
    "ref.$link": str,
    "mimeType": re.compile("(image|video)/.+"),
    "size": int,
}


def _blob(name: str) -> dict[str, Kind]:
    return {f"{name}.{part}?": kind for part, kind in _BLOB.items()}


LEXICONS = "github.com/bluesky-social/atproto, lexicons"
BLUESKY = (
    DocumentedRequest(
        f"{LEXICONS}/com/atproto/server/createSession.json",
        "POST",
        "/xrpc/com.atproto.server.createSession",
        body={"identifier": str, "password": str, "authFactorToken?": str},
        headers=JSON,
    ),
    DocumentedRequest(
        # Clients should set both headers: atproto.com/specs/blob.
        f"{LEXICONS}/com/atproto/repo/uploadBlob.json",
        "POST",
        "/xrpc/com.atproto.repo.uploadBlob",
        headers={**AUTHORIZATION, "content-type": re.compile(r"\w+/\w+")},
        needs_length=True,
    ),
    DocumentedRequest(
        f"{LEXICONS}/com/atproto/server/getServiceAuth.json",
        "GET",
        "/xrpc/com.atproto.server.getServiceAuth",
        query={"aud": DID, "exp?": int, "lxm?": NSID},
    ),
    DocumentedRequest(
        # The lexicon has no parameters. The tutorial shows two.
        f"docs.bsky.app/docs/tutorials/video; {LEXICONS}/app/bsky/video/uploadVideo.json",
        "POST",
        "/xrpc/app.bsky.video.uploadVideo",
        query={"did": DID, "name": re.compile(r"[^/]+\.mp4")},
        headers={**AUTHORIZATION, "content-type": frozenset({"video/mp4"})},
        needs_length=True,
    ),
    DocumentedRequest(
        f"{LEXICONS}/app/bsky/video/getJobStatus.json",
        "GET",
        "/xrpc/app.bsky.video.getJobStatus",
        query={"jobId": str},
        headers={},
    ),
    DocumentedRequest(
        f"{LEXICONS}/com/atproto/repo/putRecord.json; app/bsky: feed/post, embed/images, embed/video, richtext/facet",
        "POST",
        "/xrpc/com.atproto.repo.putRecord",
        body={
            "repo": DID,
            "collection": NSID,
            "rkey": re.compile(r"[a-zA-Z0-9._:~-]{1,512}"),
            "validate?": bool,
            "record.$type": frozenset({"app.bsky.feed.post"}),
            "record.text": str,
            "record.createdAt": re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z"),
            "record.langs[]?": str,
            "record.facets[].index.byteStart?": int,
            "record.facets[].index.byteEnd?": int,
            "record.facets[].features[].$type?": frozenset({"app.bsky.richtext.facet#link"}),
            "record.facets[].features[].uri?": re.compile(r"https?://\S+"),
            "record.embed.$type?": frozenset({"app.bsky.embed.images", "app.bsky.embed.video"}),
            "record.embed.images[].alt?": str,
            **_blob("record.embed.images[].image"),
            "record.embed.alt?": str,
            **_blob("record.embed.video"),
        },
        headers=AUTHORIZATION | JSON,
    ),
)
