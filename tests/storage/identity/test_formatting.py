"""The formatting of texts: examples that the web client shares, equality of both parsers, and the limit of work."""

import json
import subprocess
import sys
from types import FrameType
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import storage.identity.formatting
from storage.files.link_previews import first_url
from storage.identity.formatting import Node, parse, plain_text, without_code
from storage.identity.mentions import find_handles, find_hashtags
from tests.programs import WEB_CLIENT, require_node_and_web_client

TEXT_FOLDER = WEB_CLIENT / "src" / "ui" / "text"
EXAMPLES = json.loads((TEXT_FOLDER / "formatting-examples.json").read_text("utf-8"))
FRAGMENTS = (
    *("*", "**", "***", "_", "~~", "~", "`", "``", "```", "[", "]", "](https://a.b/c)", "](http://d(e)", "(", ")"),
    *("\n", "\n", "\n```\n", "\n> ", "\n- ", "\n12. ", "\\", " ", " ", "\u3000", "\u2028", "\u00a0", "\ufeff", "\r"),
    *(
        "a",
        "b2",
        "é",
        "強調",
        "です",
        "々",
        "가",
        "。",
        "「",
        "^",
        "@ann_b",
        "#tag_",
        "＃山",
        "https://x.y/z_w_",
        "HTTP://q",
        "😀",
    ),
    *(
        "#cafe\u0301",
        "#हिन्दी",
        "・#",
        "＠bob",
        "@x.y",
        "@bob@",
        "-2",
        ".",
        ":",
        "/",
        "a.b/",
        "\u3099",
        "\u200c",
        "㍿",
        "１",
    ),
    *("K", "ſ", "\x1c", "\x85", "𠮷", "<b>", "-", ">", "=", "1. "),
)
texts = st.lists(st.sampled_from(FRAGMENTS), max_size=40).map("".join) | st.text(max_size=40)


def compact(node: Node) -> Any:
    """Returns a node in the form of formatting-examples.json."""
    if node.kind == "text":
        return node.text
    if node.kind in ("code", "codeBlock"):
        return [node.kind, node.text]
    head = node.kind if node.kind != "item" else "-" if node.number is None else f"{node.number}."
    return [head, *([node.href] if node.kind == "link" else []), *map(compact, node.children)]


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda example: str(example["name"]))
def test_examples_are_parsed_as_listed(example: dict[str, Any]) -> None:
    assert [compact(block) for block in parse(example["text"])] == example["blocks"]
    assert plain_text(example["text"]) == example["plainText"]


def test_web_client_parses_random_texts_as_the_server() -> None:
    node = require_node_and_web_client()
    found: list[str] = [example["text"] for example in EXAMPLES]

    @settings(max_examples=500, database=None, derandomize=True)
    @given(texts)
    def collect(text: str) -> None:
        found.append(text)

    collect()
    script = [node, "e2e/formatting-trees.mjs"]
    completed = subprocess.run(script, cwd=WEB_CLIENT, input=json.dumps(found), capture_output=True, text=True)
    assert completed.returncode == 0, completed.stderr
    report = json.loads(completed.stdout)
    for text, tree, plain in zip(found, report["trees"], report["plainTexts"], strict=True):
        assert [_compact_of_client(block) for block in tree] == [compact(block) for block in parse(text)], repr(text)
        assert plain == plain_text(text), repr(text)
    for text, parts in zip(found, report["parts"], strict=True):
        handles = [part["handle"] for part in parts if part["kind"] == "mention"]
        tags = [part["tag"] for part in parts if part["kind"] == "tag"]
        assert list(dict.fromkeys(handles)) == find_handles(text), repr(text)
        # The client only lowers the case, since the server normalizes the tag of a query.
        assert list(dict.fromkeys(each.casefold() for each in tags)) == find_hashtags(text), repr(text)


def _compact_of_client(node: dict[str, Any]) -> Any:
    items = ({"kind": "item", **item} for item in node.get("items", ()))
    children = [_compact_of_client(child) for child in (*items, *node.get("children", ()))]
    if node["kind"] == "text":
        return node["text"]
    if node["kind"] in ("code", "codeBlock"):
        return [node["kind"], node["text"]]
    head = node["kind"] if node["kind"] != "item" else "-" if node["number"] is None else f"{node['number']}."
    return [head, *([node["href"]] if node["kind"] == "link" else []), *children]


@pytest.mark.parametrize(
    "unit",
    [
        *("*", "**a ", "*a ", "**a *b ~~c _d [e ", "[", "[a", "]", "`", "`a ``b ```c ", "\\", "~~a", "_a ", "```\n"),
        *("> ", "- a\n", "[a](https://b.c) ", "[a](https://b(", "](https://a](https://b)", "https://)", "@_", "*a* "),
        *("```a\n", "*a**b~~c", "**a*", "1. \n", "https://a", "***a ", "[a **b](https://c) "),
    ],
)
def test_hostile_texts_take_linear_work(unit: str) -> None:
    text = (unit * 4000)[:4000]

    half, whole = executed_lines(text[:2000]), executed_lines(text)

    assert whole < 2.3 * half + 100
    assert whole < 60 * len(text)


def executed_lines(text: str) -> int:
    """Returns how many lines of the parser run for a text."""
    count = 0

    def trace(frame: FrameType, event: str, _argument: object) -> Any:
        nonlocal count
        if frame.f_code.co_filename != storage.identity.formatting.__file__:
            return None
        count += event == "line"
        return trace

    previous = sys.gettrace()
    sys.settrace(trace)
    try:
        parse(text)
        without_code(text)
    finally:
        sys.settrace(previous)
    return count


@given(texts)
def test_trees_are_never_deeper_than_the_markers(text: str) -> None:
    def depth(node: Node) -> int:
        return 1 + max(map(depth, node.children), default=0)

    assert all(depth(block) <= 8 for block in parse(text))


def test_links_and_hashtags_in_code_are_not_found() -> None:
    text = "`https://a.example #a` x\n```\nhttps://b.example #b\n```\n**#c** [d](https://d.example/e_f)"

    assert first_url(text) == "https://d.example/e_f"
    assert find_hashtags(text) == ["c"]
