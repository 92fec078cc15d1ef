"""Link previews, and the search for a text's first link. No I/O: jobs decide whether a link may be fetched."""

import re
from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from typing import Any, TypedDict

from storage.identity.formatting import without_code

MAX_URL_CHARS = 2048

# Japanese text has no space after a link, so Japanese punctuation ends a link. Slack's clients end links with `|`.
_URL_ENDS = r"\s\x00-\x1f\x7f<>\"`|\\^{}" + "\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff"
_JAPANESE_PUNCTUATION = "、。，．：；？！｡､｢｣「」『』【】〔〕〈〉《》（）［］｛｝＜＞“”‘’…‥〜～"
_URL = re.compile(rf"(?<![A-Za-z0-9+.\-])https?://[^{_URL_ENDS}{_JAPANESE_PUNCTUATION}]+", re.IGNORECASE)
_HOST = re.compile(r"https?://(?:\[[0-9a-f:.]+\]|[^\W_])", re.IGNORECASE)

_TRAILING = ".,:;!?'*_~"
_OPENERS = {")": "(", "]": "["}


def first_url(text: str) -> str | None:
    """Returns the first http or https URL of the text as written, without trailing punctuation, or None.

    A closing bracket belongs to the URL only if its opening bracket is inside the URL too, as the inner bracket of
    `(see https://ja.wikipedia.org/wiki/狼_(動物))`.
    URLs of more than 2,048 characters, and URLs in code, are skipped.
    """
    for match in _URL.finditer(without_code(text)):
        url = _trimmed(match[0])
        if len(url) <= MAX_URL_CHARS and _HOST.match(url):
            return url
    return None


def _trimmed(url: str) -> str:
    open_count = dict.fromkeys(_OPENERS.values(), 0)
    for index, character in enumerate(url):
        if character in open_count:
            open_count[character] += 1
        elif opener := _OPENERS.get(character):
            open_count[opener] -= 1
            if open_count[opener] < 0:
                return url[:index].rstrip(_TRAILING)
    return url.rstrip(_TRAILING)


@dataclass(frozen=True, slots=True)
class PreviewPicture:
    """Size in pixels and blurhash of the stored copy of a preview's image. `url` is the image's remote address."""

    url: str
    width: int
    height: int
    blurhash: str


@dataclass(frozen=True, slots=True)
class LinkPreview:
    """Title, summary and image of a linked page. `image_url` is the image's address on the remote server."""

    url: str
    title: str
    description: str | None
    image_url: str | None
    site_name: str | None
    picture: PreviewPicture | None = None
    """The stored copy of the image; None if there is none."""

    @property
    def image(self) -> PreviewPicture | None:
        """The stored copy, with `image_url` as its URL."""
        if self.picture is None or self.image_url is None:
            return None
        return replace(self.picture, url=self.image_url)


class PreviewPictureDocument(TypedDict):
    """The stored copy of a preview's image, stored as `preview_picture` beside `preview`.

    It is not a key of `preview`, because earlier releases accept exactly the five keys of `preview`.
    """

    url: str
    """Address of the image on the remote server. The copy is ignored if the preview has another image."""

    width: int
    """Width in pixels."""

    height: int
    """Height in pixels."""

    blurhash: str


class LinkPreviewDocument(TypedDict):
    """A link preview, stored as `preview` of its message or post."""

    url: str
    """The linked page, as written in the text."""

    title: str
    """Title of the page."""

    description: str | None
    """Summary of the page; None if it has none."""

    image_url: str | None
    """Address of the page's image on the remote server; None if it has none."""

    site_name: str | None
    """Name of the page's site; None if it has none."""


def preview_document(preview: LinkPreview) -> LinkPreviewDocument:
    """Returns the stored form of a preview, without its picture."""
    return {
        "url": preview.url,
        "title": preview.title,
        "description": preview.description,
        "image_url": preview.image_url,
        "site_name": preview.site_name,
    }


def put_preview(document: Any, preview: LinkPreview) -> None:
    """Stores a preview in the document of a message or a post."""
    document["preview"] = preview_document(preview)
    document.pop("preview_picture", None)
    if preview.picture is not None:
        document["preview_picture"] = asdict(preview.picture)


def preview_record(preview: Mapping[str, Any], picture: PreviewPictureDocument | None) -> LinkPreview:
    """Returns the record of a stored preview, with the stored copy of its image."""
    is_current = picture is not None and picture["url"] == preview["image_url"]
    return LinkPreview(**preview, picture=PreviewPicture(**picture) if picture and is_current else None)
