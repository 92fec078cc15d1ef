"""The first URL of a text, in Latin and in Japanese text, and stored previews."""

import time
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from storage.files.link_previews import (
    LinkPreview,
    PreviewPicture,
    first_url,
    preview_document,
    preview_record,
    put_preview,
)


@pytest.mark.parametrize(
    ("text", "url"),
    [
        ("https://example.com", "https://example.com"),
        ("HTTP://Example.com/A", "HTTP://Example.com/A"),
        ("see http://example.com/a?b=c&d=%E3%81%82#e now", "http://example.com/a?b=c&d=%E3%81%82#e"),
        ("https://a.example/ https://b.example/", "https://a.example/"),
        ("line\nhttps://example.com/a\nline", "https://example.com/a"),
        ("http://127.0.0.1:8000/x", "http://127.0.0.1:8000/x"),
        ("http://[::1]:8000/x", "http://[::1]:8000/x"),
    ],
)
def test_first_url_is_returned_as_written(text: str, url: str) -> None:
    assert first_url(text) == url


@pytest.mark.parametrize(
    "text", ["", "no link", "ftp://example.com", "example.com", "xhttps://example.com", "git+https://x", "https:/x"]
)
def test_text_without_url_has_none(text: str) -> None:
    assert first_url(text) is None


@pytest.mark.parametrize("after", [".", ",", "!", "?", ":", ";", "...", "?!", "'", "**", "`", '"', ">", ").", "]."])
def test_trailing_punctuation_is_no_part_of_the_url(after: str) -> None:
    assert first_url(f"go to https://example.com/a{after}") == "https://example.com/a"
    assert first_url(f"go to https://example.com/a{after} now") == "https://example.com/a"


@pytest.mark.parametrize("after", "。、」）】』！？，．：；　｡､｣〉》］｝”’…")
def test_japanese_punctuation_ends_url_before_adjacent_text(after: str) -> None:
    assert first_url(f"詳しくは「https://example.com/狼煙{after}続き") == "https://example.com/狼煙"


def test_url_right_after_japanese_text_is_found() -> None:
    assert first_url("こちらhttps://example.com/") == "https://example.com/"


@pytest.mark.parametrize(
    ("text", "url"),
    [
        ("(https://example.com/a)", "https://example.com/a"),
        ("(https://example.com/a)の続き", "https://example.com/a"),
        ("https://example.com/a_(b)", "https://example.com/a_(b)"),
        ("(see https://ja.wikipedia.org/wiki/狼_(動物))", "https://ja.wikipedia.org/wiki/狼_(動物)"),
        ("https://example.com/?a[]=1", "https://example.com/?a[]=1"),
        ("[https://example.com/a](https://example.com/b)", "https://example.com/a"),
        ("[text](https://example.com/b).", "https://example.com/b"),
        ("<https://example.com/a|text>", "https://example.com/a"),
    ],
)
def test_closing_bracket_needs_its_opening_bracket_in_the_url(text: str, url: str) -> None:
    assert first_url(text) == url


@pytest.mark.parametrize(
    "scheme", ["https://", "http://.", "https://...", "https://)", "http://#a", "http://?", "http://[x"]
)
def test_scheme_without_host_is_skipped(scheme: str) -> None:
    assert first_url(scheme) is None
    assert first_url(f"{scheme} https://example.com") == "https://example.com"


def test_url_longer_than_2048_characters_is_skipped() -> None:
    longest = "https://example.com/".ljust(2048, "a")
    assert first_url(longest) == longest
    assert first_url(f"{longest}a https://example.com") == "https://example.com"


def test_invisible_and_bidi_characters_end_a_url() -> None:
    assert first_url("https://example.com/\u202egpj.exe") == "https://example.com/"
    assert first_url("https://example.com\u200b/x") == "https://example.com"


@given(
    st.text() | st.lists(st.sampled_from(["https://", "http", "(", ")", "[", "]", ".", "a", "。", " "])).map("".join)
)
def test_found_url_is_a_trimmed_substring_of_any_text(text: str) -> None:
    url = first_url(text)
    if url is not None:
        assert url in text
        assert url.lower().startswith(("http://", "https://"))
        assert not url.endswith((".", ",", "!", "?", ":", ";", "'"))
        assert not any(character.isspace() for character in url)


@pytest.mark.parametrize("piece", ["https://", "https://)", "https://a.", "(", "http", "https://a" + "." * 50])
def test_hostile_text_is_searched_in_linear_time(piece: str) -> None:
    started_at = time.process_time()
    first_url(piece * (400_000 // len(piece)))
    assert time.process_time() - started_at < 5


PREVIEW = LinkPreview("https://tides.example/", "Tides", None, "https://tides.example/a.png", None)
PREVIEW_DOCUMENT: dict[str, Any] = dict(preview_document(PREVIEW))
PICTURE = PreviewPicture("https://tides.example/a.png", 40, 30, "a-hash")


@pytest.mark.parametrize("preview", [PREVIEW, replace(PREVIEW, picture=PICTURE)], ids=["no copy", "copy"])
def test_stored_preview_is_read_as_it_was(preview: LinkPreview) -> None:
    document: dict[str, Any] = {"preview_picture": {"url": "of an earlier preview"}}
    put_preview(document, preview)
    assert preview_record(document["preview"], document.get("preview_picture")) == preview


def test_earlier_release_reads_the_stored_preview() -> None:
    document: dict[str, Any] = {}
    put_preview(document, replace(PREVIEW, picture=PICTURE))
    assert LinkPreview(**document["preview"]) == PREVIEW


def test_copy_of_another_image_is_ignored() -> None:
    """A process of an earlier release replaces the preview, and leaves the copy beside it."""
    other = PREVIEW_DOCUMENT | {"image_url": "https://tides.example/b.png"}
    assert preview_record(other, {"url": PICTURE.url, "width": 40, "height": 30, "blurhash": "a-hash"}).image is None


def test_image_of_a_preview_has_the_address_of_the_preview() -> None:
    signed = replace(PREVIEW, picture=PICTURE, image_url="/images/signed")
    assert signed.image == replace(PICTURE, url="/images/signed")
    assert replace(signed, image_url=None).image is None
