"""Metadata of web pages for link previews: title, description, image, site name.

Pages are fetched through the address guard and may be hostile. Tags are matched in linear time, without an HTML tree.
Building a tree of 512 KiB of nested elements or attributes would block the event loop for many seconds.
"""

import re
import time
import unicodedata
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from html import unescape

import orjson

from jobs.providers.egress import MAX_URL_CHARS, Egress, EgressFailed, EgressRefused, FetchedResponse, web_url
from storage.mongo.text_index.visible_characters import has_visible_character

MAX_PAGE_BYTES = 512 * 1024
MAX_OEMBED_BYTES = 64 * 1024
TIMEOUT_S = 3.0
MAX_TITLE_CHARS = 300
MAX_DESCRIPTION_CHARS = 500
MAX_SITE_CHARS = 100

_PAGE_TYPES = ("text/html", "application/xhtml+xml")
_OEMBED_TYPE = "application/json+oembed"
_OEMBED_RESPONSE_TYPES = ("application/json", _OEMBED_TYPE, "text/json", "text/javascript")

_TITLES = ("og:title", "twitter:title", "<title>")
_DESCRIPTIONS = ("og:description", "twitter:description", "description")
_IMAGES = ("og:image:secure_url", "og:image", "og:image:url", "twitter:image", "twitter:image:src")
_SITES = ("og:site_name", "application-name")


@dataclass(frozen=True, slots=True)
class Preview:
    """Metadata as plain text, truncated. `url` is the requested URL, `image_url` the original URL of the image."""

    url: str
    title: str
    description: str | None
    image_url: str | None
    site_name: str | None


async def fetch_preview(egress: Egress, url: str) -> Preview | None:
    """Fetches the preview of a page within 3 s. Returns None for a refused URL, a page that is not HTML, or no title.

    Reads at most 512 KiB of the page. Raises: EgressFailed when a retry may succeed.
    """
    started_at_s = time.monotonic()
    try:
        page = await egress.get(url, accept=_PAGE_TYPES, max_bytes=MAX_PAGE_BYTES, timeout_s=TIMEOUT_S, truncate=True)
    except EgressRefused:
        return None
    if page.status == 429 or page.status >= 500:
        raise EgressFailed(f"the page answers {page.status}")
    metadata = read_page(page)
    if not {"title", "image", "site"} <= metadata.keys() and (address := metadata.get("oembed")):
        metadata = await _oembed(egress, address, TIMEOUT_S - (time.monotonic() - started_at_s)) | metadata
    return _preview(url, metadata)


def read_page(page: FetchedResponse) -> dict[str, str]:
    """Returns the page's `title`, `description`, `image`, `site` and `oembed`, as far as they are not empty."""
    values = _metadata_values(_decode(page))
    return _non_empty(
        title=_text(_first(values, _TITLES), MAX_TITLE_CHARS),
        description=_text(_first(values, _DESCRIPTIONS), MAX_DESCRIPTION_CHARS),
        image=_web_url(_first(values, _IMAGES), page.url),
        site=_text(_first(values, _SITES), MAX_SITE_CHARS),
        oembed=_web_url(values.get("<oembed>", ""), page.url),
    )


async def _oembed(egress: Egress, address: str, timeout_s: float) -> dict[str, str]:
    try:
        response = await egress.get(
            address, accept=_OEMBED_RESPONSE_TYPES, max_bytes=MAX_OEMBED_BYTES, timeout_s=timeout_s
        )
        metadata = orjson.loads(response.body)
    except (EgressRefused, EgressFailed, orjson.JSONDecodeError):
        return {}
    if not isinstance(metadata, dict):
        return {}
    texts = {name: value for name, value in metadata.items() if isinstance(value, str)}
    return _non_empty(
        title=_text(texts.get("title", ""), MAX_TITLE_CHARS),
        image=_web_url(texts.get("thumbnail_url", ""), response.url),
        site=_text(texts.get("provider_name", ""), MAX_SITE_CHARS),
    )


def _preview(url: str, metadata: Mapping[str, str]) -> Preview | None:
    if "title" not in metadata:
        return None
    return Preview(url, metadata["title"], metadata.get("description"), metadata.get("image"), metadata.get("site"))


def _non_empty(**texts: str) -> dict[str, str]:
    return {name: text for name, text in texts.items() if text}


def _first(values: Mapping[str, str], names: tuple[str, ...]) -> str:
    return next((values[name] for name in names if name in values), "")


# Joiners are kept, because they join emoji. Other format characters are removed, because they reorder or hide text.
_JOINERS = "\u200c\u200d"


def _text(raw: str, max_chars: int) -> str:
    words = " ".join(raw.split())
    visible = (c for c in words if c in _JOINERS or unicodedata.category(c) not in ("Cc", "Cf", "Cs"))
    text = "".join(visible).strip()[:max_chars].rstrip()
    return text if has_visible_character(text) else ""


def _web_url(raw: str, base: str) -> str:
    try:
        url = str(web_url(raw.strip(), base)) if raw.strip() else ""
    except EgressRefused:
        return ""
    return url if len(url) <= MAX_URL_CHARS else ""


MAX_TAG_CHARS = 4096
MAX_TAGS = 1000

# Each pattern consumes its input, or stops after MAX_TAG_CHARS. A page is therefore scanned a few times at most.
_ELEMENTS = re.compile(
    r"<!--.*?(?:-->|\Z)"
    r"|<(script|style|template)\b.*?(?:</\1\b|\Z)"
    r"|<title\b[^<>]*+>(?P<title>.*?)(?:</title|\Z)"
    r"|<(?P<tag>meta|link)\b"
    r"|(?P<drawing></?(?:svg|math)\b[^<>]*+)"
    r"|(?P<body></head\b|<body\b)",
    re.IGNORECASE | re.DOTALL,
)
_TAG = re.compile(r"""<\w+(?:(?:[^<>"']|"[^"]*+"|'[^']*+')*+>|[^<>]*+>)""")
_ATTRIBUTE = re.compile(r"""([^\s"'<>/=]++)(?:\s*+=\s*+(?:"([^"]*+)(?:"|\Z)|'([^']*+)(?:'|\Z)|([^\s>]*+)))?""")


def _metadata_values(html: str) -> dict[str, str]:
    """Returns the first visible value of each metadata name (in lower case), and of `<title>` and `<oembed>`."""
    values: dict[str, str] = {}
    for name, value in _metadata_of(html):
        if has_visible_character(value):
            values.setdefault(name, value)
    return values


def _metadata_of(html: str) -> Iterator[tuple[str, str]]:
    """Yields names and values. The title is one of the head, and of no drawing, which may have titles of its own."""
    tags = depth = 0
    has_title = True
    for element in _ELEMENTS.finditer(html):
        if drawing := element["drawing"]:
            depth = max(0, depth - 1 if drawing.startswith("</") else depth + (not drawing.endswith("/")))
        elif element["body"]:
            has_title = False
        elif element["title"] is not None and has_title and depth == 0:
            yield "<title>", unescape(element["title"][:MAX_TAG_CHARS])
        elif element["tag"] and tags < MAX_TAGS:
            tags += 1
            tag = _TAG.match(html, element.start(), element.start() + MAX_TAG_CHARS)
            yield from _tag_metadata(_attributes(tag[0])) if tag else ()


def _tag_metadata(attributes: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    if "content" in attributes:
        for key in ("property", "name"):
            if name := attributes.get(key, "").strip().lower():
                yield name, attributes["content"]
    elif attributes.get("type", "").strip().lower() == _OEMBED_TYPE:
        yield "<oembed>", attributes.get("href", "")


def _attributes(tag: str) -> dict[str, str]:
    attributes: dict[str, str] = {}
    for name, *values in _ATTRIBUTE.findall(tag, len("<meta")):
        attributes.setdefault(name.lower(), unescape("".join(values)))
    return attributes


# Encoding labels (WHATWG) that pages use, by Python codec. Other codecs are not allowed, because some of them
# (punycode, idna, unicode_escape) take quadratic time or are unsafe.
_CODECS = {
    "utf-8": ("utf8", "unicode-1-1-utf-8"),
    "cp932": ("shift-jis", "sjis", "x-sjis", "ms-kanji", "windows-31j", "ms932"),
    "euc_jp": ("euc-jp", "x-euc-jp"),
    "iso2022_jp": ("iso-2022-jp",),
    "cp949": ("euc-kr", "ks-c-5601-1987", "korean"),
    "gb18030": ("gb2312", "gbk", "x-gbk"),
    "big5hkscs": ("big5", "big5-hkscs", "x-x-big5"),
    "cp1252": ("iso-8859-1", "latin1", "us-ascii", "ascii", "windows-1252"),
    "iso8859_2": ("iso-8859-2",),
    "cp1251": ("windows-1251",),
    "koi8_r": ("koi8-r",),
    "utf_16_le": ("utf-16", "utf-16le"),
    "utf_16_be": ("utf-16be",),
}
_CODEC_OF_LABEL = {label: codec for codec, labels in _CODECS.items() for label in (*labels, codec)}
_BYTE_ORDER_MARKS = ((b"\xef\xbb\xbf", "utf-8"), (b"\xff\xfe", "utf_16_le"), (b"\xfe\xff", "utf_16_be"))
_CHARSET = r"""\s*+=\s*+["']?([\w.:-]{1,40})"""
_CHARSET_OF_HEADER = re.compile(f"charset{_CHARSET}", re.IGNORECASE)
_CHARSET_OF_PAGE = re.compile(rf"<(?:meta\b[^<>]*?charset|\?xml\b[^<>]*?encoding){_CHARSET}", re.IGNORECASE)
_PRESCAN_BYTES = 4096


def _decode(page: FetchedResponse) -> str:
    codec = (
        _codec_of_byte_order_mark(page.body)
        or _declared_codec(_CHARSET_OF_HEADER, page.content_type)
        or _codec_declared_in_page(page.body)
        or "utf-8"
    )
    return page.body.decode(codec, errors="replace")


def _codec_declared_in_page(body: bytes) -> str | None:
    codec = _declared_codec(_CHARSET_OF_PAGE, body[:_PRESCAN_BYTES].decode("latin-1"))
    # Content that decodes as ASCII is not UTF-16, even when it declares UTF-16.
    return None if codec and codec.startswith("utf_16") else codec


def _codec_of_byte_order_mark(body: bytes) -> str | None:
    return next((codec for mark, codec in _BYTE_ORDER_MARKS if body.startswith(mark)), None)


def _declared_codec(pattern: re.Pattern[str], text: str) -> str | None:
    label = pattern.search(text)
    return _CODEC_OF_LABEL.get(label[1].lower().replace("_", "-")) if label else None
