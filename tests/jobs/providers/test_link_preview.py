"""Link previews of pages on loopback: complete, incomplete, Japanese and hostile pages."""

import time
import unicodedata
from collections.abc import AsyncIterator
from ipaddress import ip_network
from types import SimpleNamespace

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from jobs.providers.egress import Egress, EgressFailed, FetchedResponse
from jobs.providers.link_preview import MAX_PAGE_BYTES, Preview, fetch_preview, read_page
from tests.jobs.providers.stub_server import StubServer, endless, redirect, respond, silent, stub_server

PAGE_URL = "https://example.com/articles/1"


@pytest.fixture
async def server() -> AsyncIterator[StubServer]:
    async with stub_server() as server:
        yield server


EGRESS = Egress((ip_network("127.0.0.1/32"),))


def preview_of(html: str | bytes, content_type: str = "text/html; charset=utf-8") -> dict[str, str]:
    return read_page(FetchedResponse(PAGE_URL, 200, content_type, html if isinstance(html, bytes) else html.encode()))


# Complete previews

COMPLETE_PAGE = """<!doctype html><html><head>
<title>Title of the page</title>
<meta property="og:title" content="狼煙 &amp; 烽火">
<meta property="og:description" content="From hilltop
   to   hilltop.">
<meta property="og:image" content="/images/a b.png?c=d&amp;e">
<meta property="og:site_name" content="Noroshi">
</head><body>...</body></html>"""


@pytest.mark.anyio
async def test_open_graph_page_gives_full_preview(server: StubServer) -> None:
    server.answers["/a"] = respond(COMPLETE_PAGE.encode())
    assert await fetch_preview(EGRESS, server.url("/a")) == Preview(
        url=server.url("/a"),
        title="狼煙 & 烽火",
        description="From hilltop to hilltop.",
        image_url=server.url("/images/a%20b.png?c=d&e"),
        site_name="Noroshi",
    )


@pytest.mark.anyio
async def test_relative_image_resolves_against_final_url(
    server: StubServer,
) -> None:
    server.answers["/short"] = redirect("/blog/2026/post")
    server.answers["/blog/2026/post"] = respond(b"<title>T</title><meta property=og:image content=cover.jpg>")
    preview = await fetch_preview(EGRESS, server.url("/short"))
    assert preview == Preview(server.url("/short"), "T", None, server.url("/blog/2026/cover.jpg"), None)


@pytest.mark.anyio
@pytest.mark.parametrize(
    ("status", "body", "content_type"),
    [
        (200, b"<p>no title", "text/html"),
        (200, b"<title> \n </title>", "text/html"),
        (200, "<title>\u3164\u200b\u2800</title>".encode(), "text/html; charset=utf-8"),
        (200, b"<svg><title>icon</title></svg>", "text/html"),
        (200, b"<head></head><body><svg><title>icon</title><desc>d</desc></svg>", "text/html"),
        (200, b"<html><body><object><title>icon</title></object>", "text/html"),
        (200, b"<title>T</title>", "application/pdf"),
        (200, b"<title>T</title>", "image/svg+xml"),
        (404, b"<title>Not found</title>", "text/html"),
        (403, b"<title>Forbidden</title>", "text/html"),
    ],
)
async def test_page_without_html_title_or_success_has_no_preview(
    server: StubServer, status: int, body: bytes, content_type: str
) -> None:
    server.answers["/"] = respond(body, status, content_type)
    assert await fetch_preview(EGRESS, server.url()) is None


@pytest.mark.anyio
@pytest.mark.parametrize("url", ["http://10.0.0.1/", "http://127.0.0.2/", "file:///etc/passwd", "nonsense"])
async def test_refused_url_has_no_preview(url: str) -> None:
    assert await fetch_preview(EGRESS, url) is None


@pytest.mark.anyio
@pytest.mark.parametrize("status", [429, 500, 503])
async def test_server_error_is_retryable(server: StubServer, status: int) -> None:
    server.answers["/"] = respond(b"<title>Trouble</title>", status)
    with pytest.raises(EgressFailed, match=str(status)):
        await fetch_preview(EGRESS, server.url())


@pytest.mark.anyio
async def test_page_without_response_is_retryable(server: StubServer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("jobs.providers.link_preview.TIMEOUT_S", 0.2)
    server.answers["/"] = silent()
    with pytest.raises(EgressFailed, match=r"0\.2 s"):
        await fetch_preview(EGRESS, server.url())


@pytest.mark.anyio
async def test_endless_page_is_read_up_to_512_kib(server: StubServer) -> None:
    written: list[int] = []
    start = b"<title>Long</title>".ljust(65536)
    server.answers["/"] = endless(start, written)
    preview = await fetch_preview(EGRESS, server.url())
    assert preview is not None
    assert preview.title == "Long"
    assert sum(written) < 32 * MAX_PAGE_BYTES, "More was read than the socket buffers hold."


# oEmbed


def serve_page_with_oembed(server: StubServer, path: str = "/oembed?format=json", head: str = "") -> None:
    """Makes the server answer with a page that has `head` and a link to an oEmbed document."""
    link = f'<link rel="alternate" type="application/json+oembed" href="{path.replace("&", "&amp;")}">'
    server.answers["/"] = respond(f"<head>{head}{link}</head>".encode())


@pytest.mark.anyio
async def test_oembed_fills_missing_fields(server: StubServer) -> None:
    serve_page_with_oembed(server, head="<meta name=description content=D><meta property=og:site_name content=Site>")
    answer = {"title": "Song\n1", "thumbnail_url": "t.png", "provider_name": "Provider", "version": 1.0}
    server.answers["/oembed?format=json"] = respond(orjson.dumps(answer), content_type="application/json+oembed")
    preview = await fetch_preview(EGRESS, server.url())
    assert preview == Preview(server.url(), "Song 1", "D", server.url("/t.png"), "Site")
    assert server.paths() == ["/", "/oembed?format=json"]


@pytest.mark.anyio
async def test_oembed_is_not_requested_for_complete_page(server: StubServer) -> None:
    serve_page_with_oembed(server, head=COMPLETE_PAGE)
    assert await fetch_preview(EGRESS, server.url()) is not None
    assert server.paths() == ["/"]


@pytest.mark.anyio
@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"[]",
        b"null",
        b"{",
        b'"title"',
        b'{"title": 5}',
        b'{"title": "\\ud800"}',
        b'{"title": ["x"]}',
        b"[" * 60000,
    ],
)
async def test_invalid_oembed_response_is_ignored(server: StubServer, body: bytes) -> None:
    serve_page_with_oembed(server, head="<title>T</title>")
    server.answers["/oembed?format=json"] = respond(body, content_type="application/json")
    assert await fetch_preview(EGRESS, server.url()) == Preview(server.url(), "T", None, None, None)


@pytest.mark.anyio
async def test_oembed_request_passes_egress_guard(server: StubServer) -> None:
    async with stub_server("127.0.0.2") as private_server:
        private_server.answers["/admin"] = respond(b'{"title": "secret"}', content_type="application/json")
        server.answers["/redirect"] = redirect(private_server.url("/admin"))
        for path in (private_server.url("/admin"), "/redirect", "file:///etc/passwd", "javascript:alert(1)"):
            serve_page_with_oembed(server, path, head="<title>T</title>")
            assert await fetch_preview(EGRESS, server.url()) == Preview(server.url(), "T", None, None, None)
        assert private_server.connections == 0


@pytest.mark.anyio
async def test_page_and_oembed_share_one_deadline(server: StubServer, monkeypatch: pytest.MonkeyPatch) -> None:
    """The page seems to have taken all but 0.5 s of the deadline."""
    readings = iter((0.0, 59.5))
    monkeypatch.setattr("jobs.providers.link_preview.TIMEOUT_S", 60.0)
    monkeypatch.setattr("jobs.providers.link_preview.time", SimpleNamespace(monotonic=lambda: next(readings)))
    serve_page_with_oembed(server, head="<title>T</title>")
    server.answers["/oembed?format=json"] = silent()
    started_at = time.monotonic()
    egress = Egress((ip_network("127.0.0.1/32"),), timeout_s=60.0)
    assert await fetch_preview(egress, server.url()) == Preview(server.url(), "T", None, None, None)
    assert time.monotonic() - started_at < 20, "A deadline of its own would be 60 s."


# Parsing of pages


@pytest.mark.parametrize(
    ("html", "title"),
    [
        ("<title>plain</title>", "plain"),
        ("<TITLE lang='ja'>upper</TITLE>", "upper"),
        ("<title>a < b &lt; c</title>", "a < b < c"),
        ("<title>unclosed", "unclosed"),
        ("<title></title><title>second</title>", "second"),
        ("<title>t</title><meta name=twitter:title content=w>", "w"),
        ("<meta name=twitter:title content=w><meta property=og:title content=o>", "o"),
        ("<meta property=og:title content=''><title>t</title>", "t"),
        ("<meta property=og:title content=1><meta property=og:title content=2>", "1"),
        ("<meta content='before' property='og:title'>", "before"),
        ("<meta name='og:title' content='as a name'/>", "as a name"),
        ("<META PROPERTY=OG:Title CONTENT=upper>", "upper"),
        ("<meta property = 'og:title' content = \"a > b's\" >", "a > b's"),
        ("<meta property=og:title content=it's>", "it's"),
        ("<!-- <title>hidden</title> --><title>shown</title>", "shown"),
        ("<script>'<title>script</title>'</script><title>shown</title>", "shown"),
        ("<meta property=og:title content='a&#x202e;b&#0;&#7;c &zwj;'>", "ab\ufffdc \u200d"),
        ("<title>\U0001f468\u200d\U0001f469\u200d\U0001f467</title>", "\U0001f468\u200d\U0001f469\u200d\U0001f467"),
        ("<title>\u3164\u200b</title><title>second</title>", "second"),
        ("<head><svg><title>icon</title><desc>d</desc></svg><title>page</title></head>", "page"),
        ("<svg viewBox='0 0 1 1'><svg><title>a</title></svg><title>b</title></svg><title>page</title>", "page"),
        ("<svg/><math><title>m</title></math><SVG ><TITLE>s</TITLE></SVG><title>page</title>", "page"),
        ("</svg><svg><title>a</title></svg><title>page</title>", "page"),
        ("<template><title>hidden</title></template><title>page</title>", "page"),
        ("<svg><title>icon</title></svg><meta property=og:title content=o>", "o"),
        ("<title>\u3000全角\u3000空白\n</title>", "全角 空白"),
    ],
)
def test_title_is_the_best_nonblank_one(html: str, title: str) -> None:
    assert preview_of(html).get("title") == title


def test_preview_texts_are_truncated() -> None:
    html = "".join(
        f"<meta property={name} content='{'あ' * 2000}'>" for name in ("og:title", "og:description", "og:site_name")
    )
    assert {name: len(text) for name, text in preview_of(html).items()} == {
        "title": 300,
        "description": 500,
        "site": 100,
    }


@pytest.mark.parametrize(
    ("content", "image"),
    [
        ("https://cdn.example/a.png", "https://cdn.example/a.png"),
        ("//cdn.example/a.png", "https://cdn.example/a.png"),
        ("/a.png", "https://example.com/a.png"),
        ("a.png", "https://example.com/articles/a.png"),
        (" /画像.png ", "https://example.com/%E7%94%BB%E5%83%8F.png"),
        ("data:image/png;base64,AAAA", None),
        ("javascript:alert(1)", None),
        ("ftp://example.com/a.png", None),
        ("http://", None),
        ("http://[", None),
        ("http://a\x01b/", None),
        ("/" + "a" * 2048, None),
        ("/" + "画" * 1000, None),
    ],
)
def test_image_is_an_absolute_web_url_or_none(content: str, image: str | None) -> None:
    assert preview_of(f'<meta property="og:image" content="{content}">').get("image") == image


def test_secure_image_is_preferred_and_twitter_image_is_last() -> None:
    twitter = "<meta name=twitter:image content=/t.png>"
    plain = "<meta property=og:image content=/p.png>"
    secure = "<meta property=og:image:secure_url content=/s.png>"
    assert preview_of(twitter + plain + secure)["image"].endswith("/s.png")
    assert preview_of(twitter + plain)["image"].endswith("/p.png")
    assert preview_of(twitter)["image"].endswith("/t.png")


# Encodings

JAPANESE = "狼煙を上げる①～髙"


@pytest.mark.parametrize(
    ("codec", "label"),
    [
        ("utf-8", "utf-8"),
        ("utf-8", "UTF8"),
        ("cp932", "Shift_JIS"),
        ("cp932", "x-sjis"),
        ("cp932", "Windows-31J"),
        ("euc_jp", "EUC-JP"),
        ("iso2022_jp", "ISO-2022-JP"),
    ],
)
def test_japanese_encoding_is_read_from_any_declaration(codec: str, label: str) -> None:
    title = JAPANESE if codec in ("utf-8", "cp932") else "狼煙を上げる"
    page = f"<title>{title}</title>".encode(codec)
    http_equiv = f'<meta http-equiv="Content-Type" content="text/html; charset={label}">'.encode()
    assert preview_of(page, f"text/html; charset={label}")["title"] == title
    assert preview_of(page, f'text/html;charset="{label}"')["title"] == title
    assert preview_of(f"<meta charset='{label}'>".encode() + page, "text/html")["title"] == title
    assert preview_of(http_equiv + page, "text/html")["title"] == title
    assert preview_of(f'<?xml version="1.0" encoding="{label}"?>'.encode() + page, "text/html")["title"] == title


def test_byte_order_mark_outranks_header_and_page() -> None:
    page = f"<meta charset=euc-jp><title>{JAPANESE}</title>"
    assert preview_of(page.encode("cp932"), "text/html; charset=shift_jis")["title"] == JAPANESE
    assert preview_of(page.encode("utf-8-sig"), "text/html; charset=shift_jis")["title"] == JAPANESE
    assert preview_of(page.encode("utf-16"), "text/html; charset=shift_jis")["title"] == JAPANESE


@pytest.mark.parametrize(
    "label", ["punycode", "idna", "unicode_escape", "zlib", "base64", "utf-7", "rot13", "x", "utf-16"]
)
def test_unsuitable_encoding_is_read_as_utf_8(label: str) -> None:
    assert (
        preview_of(f"<meta charset={label}><title>\\u0041 狼煙</title>".encode(), "text/html")["title"]
        == "\\u0041 狼煙"
    )


def test_undecodable_bytes_are_replaced() -> None:
    assert preview_of(b"<title>a\xff\x81b</title>")["title"] == "a\ufffd\ufffdb"


# Hostile pages


def test_tag_over_4096_characters_is_skipped() -> None:
    tag = "<meta property=og:title content={}>"
    longest_tag = tag.format("a" * (4096 - len(tag) + 2))
    assert preview_of(longest_tag)["title"] == "a" * 300
    assert preview_of(longest_tag.replace(">", "a>") + "<title>after</title>")["title"] == "after"


def test_only_the_first_1000_tags_are_read() -> None:
    tag = "<meta property=og:title content=found>"
    assert preview_of("<meta a>" * 999 + tag) == {"title": "found"}
    assert preview_of("<meta a>" * 1000 + tag) == {}


PIECES = [
    b"<",
    b">",
    b"<meta ",
    b"<title>",
    b"</title>",
    b"<link type=application/json+oembed href=",
    b"<!--",
    b"-->",
    b"<script>",
    b"</script",
    b'"',
    b"'",
    b"=",
    b"/",
    b" property=og:title",
    b" property=og:image",
    b" content=",
    b"http://[",
    b"&#",
    b"9" * 5000,
    b"&#xd800;",
    b"charset=",
    b"iso-2022-jp",
    b"\x1b$B",
    b"\xed\xa0\x80",
    b"\0",
    "狼".encode(),
]


@given(
    st.binary() | st.lists(st.sampled_from(PIECES) | st.binary(max_size=5), max_size=40).map(b"".join),
    st.text(max_size=30) | st.sampled_from(["text/html; charset=utf-16", "text/html; charset=big5", "charset=gb2312"]),
)
def test_arbitrary_page_gives_displayable_preview(body: bytes, content_type: str) -> None:
    preview = preview_of(body, content_type)
    for name, text in preview.items():
        assert text == text.strip() != ""
        assert len(text) <= {"title": 300, "description": 500, "site": 100}.get(name, 2048)
        assert not any(unicodedata.category(character) in ("Cc", "Cs") for character in text)
        text.encode()
    for name in {"image", "oembed"} & preview.keys():
        assert preview[name].startswith(("http://", "https://"))


@pytest.mark.parametrize(
    "piece",
    [
        b"<div>",
        b"<b></p>",
        b"<meta ",
        b"<meta '",
        b'<meta "',
        b"<meta x=\"'>",
        b"<meta a" + b" a" * 2000 + b">",
        b"<meta " + b"a" * 4000 + b">",
        b"<meta a=" + b'"b="' * 900 + b">",
        b"<meta " + b"a=1 " * 1000,
        b"<link <title ",
        b"<title ",
        b"<title>",
        b"<script ",
        b"<script></script ",
        b"<!--",
        b"<!-- -",
        b"<meta content='" + b"&" * 3000 + b"' name=x>",
        b"<meta content='" + b"&#9" * 1000 + b"' name=x>",
        b"<title>" + b"&#" + b"9" * 6000,
        b"<meta charset=",
        b"<?xml ",
        b" ",
        b"<",
        b"=",
    ],
)
def test_hostile_page_is_read_in_linear_time(piece: bytes) -> None:
    page = piece * (MAX_PAGE_BYTES // len(piece))
    started_at = time.process_time()
    preview_of(page, "text/html")
    assert time.process_time() - started_at < 5
