"""Link previews, and the link of a text that one is made of. Pure: whether it may be fetched is decided elsewhere."""

import re
from dataclasses import dataclass

from storage.mongo import Document

MAX_URL_CHARS = 2048

# Japanese text has no space after a link, so its punctuation ends one. `|` is how Slack's clients end theirs.
_ENDS = r"\s\x00-\x1f\x7f<>\"`|\\^{}" + "\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff"
_JAPANESE_PUNCTUATION = "、。，．：；？！｡､｢｣「」『』【】〔〕〈〉《》（）［］｛｝＜＞“”‘’…‥〜～"
_URL = re.compile(rf"(?<![A-Za-z0-9+.\-])https?://[^{_ENDS}{_JAPANESE_PUNCTUATION}]+", re.IGNORECASE)
_HOST = re.compile(r"https?://(?:\[[0-9a-f:.]+\]|[^\W_])", re.IGNORECASE)

_TRAILING = ".,:;!?'*_~"
_OPENERS = {")": "(", "]": "["}


def first_url(text: str) -> str | None:
    """The first http(s) URL in `text` as written, without the punctuation after it; None when there is none.

    A closing bracket belongs to it only when its opening one does: `(see https://ja.wikipedia.org/wiki/狼_(動物))`.
    One of more than 2,048 characters is passed over.
    """
    for match in _URL.finditer(text):
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
class LinkPreview:
    """What a linked page says of itself. `image_url` is the remote address."""

    url: str
    title: str
    description: str | None
    image_url: str | None
    site_name: str | None


def preview_document(preview: LinkPreview) -> Document:
    """How a preview is stored; LinkPreview(**document) reads it."""
    return {
        "url": preview.url,
        "title": preview.title,
        "description": preview.description,
        "image_url": preview.image_url,
        "site_name": preview.site_name,
    }
