"""The formatting of texts: parses the small Markdown of docs/formatting.md. Pure; no I/O.

The web client has the same parser in web-client/src/ui/text/formatting.ts. Both take time linear in the text's length:
each line is read once, and at most one opening marker of each kind is remembered.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

# Explicit classes, because `\s` and `\w` differ between Python and JavaScript.
_SPACE = r"\x00-\x20\x7f-\xa0\u1680\u2000-\u200f\u2028-\u202f\u205f-\u206f\u3000\ufeff"
_SPACED_LETTER = r"A-Za-z0-9\u00c0-\u1fff"
LETTER = _SPACED_LETTER + r"\u3005-\u3007\u3041-\u9fff\uac00-\ud7a3"
URL_ENDS = _SPACE + r"<>\"`\\「」『』（）【】、。！？"

_LINE_BREAK = re.compile(r"\r\n?|\n")
_FENCE_START = re.compile(r"```[A-Za-z0-9+#.-]*[ \t]*")
_FENCE_END = re.compile(r"```[ \t]*")
_LINE_MARKER = re.compile(r"(>)(?: |\Z)|(-) |([0-9]{1,9})\. ")
_ESCAPE_OR_BACKTICKS = re.compile(r"\\[\\*_~`\[\]]|`+")
_MARKER_CHARACTER = re.compile(r"[\\*_~`\[]")
_HTTP = "[hH][tT][tT][pP][sS]?://"
_TAG_OR_MENTION = f"[@＠﹫#＃﹟][_＿０-９Ａ-Ｚａ-ｚ{LETTER}]+"
_TOKEN = re.compile(rf"\\[\\*_~`\[\]]|`+|\*+|_+|~+|\[|\]|({_HTTP}[^{URL_ENDS}]+)|{_TAG_OR_MENTION}")
_LINK_TARGET = re.compile(rf"\]\(({_HTTP}[^{URL_ENDS}()]+(?:\([^{URL_ENDS}()]*\)[^{URL_ENDS}()]*)*)\)")
_URL_TRAILING = ".,:;!?'*_~)]}"
_IS_BLANK = re.compile(f"[{_SPACE}]*")
_IS_SPACED_LETTER = re.compile(f"[{_SPACED_LETTER}]")
_IS_LETTER = re.compile(f"[{LETTER}]")
_IS_FACE = re.compile(r"[\^;=<>°´¨≧≦∀・･ﾟ＾￣｀-]")
"""Characters of faces such as `(^_^)`, before which italic text does not begin."""

_KINDS = {"*": "italic", "_": "italic", "**": "bold", "~~": "struck"}
_MARKERS = {*_KINDS, "***", "["}


@dataclass(frozen=True, slots=True)
class Node:
    """A part of a formatted text.

    Blocks are `paragraph`, `quote`, `codeBlock` and `list` with `item`s. Inside of blocks are `text`, `code`, `italic`,
    `bold`, `struck` and `link`.
    """

    kind: str
    text: str = ""
    children: "tuple[Node, ...]" = ()
    href: str = ""
    """Address of a link."""

    number: int | None = None
    """Number of an item as typed; None for an item with a bullet."""


def parse(text: str) -> list[Node]:
    """Returns the blocks of a text."""
    groups: list[tuple[str, list[_BlockLine]]] = []
    for row in _block_lines(text):
        previous, rows = groups[-1] if groups else ("", [])
        if row.kind == previous and row.kind != "codeBlock" and (row.number is None) == (rows[-1].number is None):
            rows.append(row)
        else:
            groups.append((row.kind, [row]))
    blocks = (_block(kind, rows) for kind, rows in groups)
    return [block for block in blocks if block.text or block.children or block.kind == "codeBlock"]


def plain_text(text: str) -> str:
    """Returns the text without its markers. Items of lists keep their bullets and numbers."""
    return "\n".join(_plain(block) for block in parse(text))


def without_code(text: str) -> str:
    """Returns the text as typed, with a backtick in place of each code block and each `code`."""
    if "`" not in text:
        return text
    return "\n".join("`" if row.kind == "codeBlock" else _without_code(row.content) for row in _block_lines(text))


def unlinked_texts(text: str) -> Iterator[str]:
    """Yields the texts between markers, code and links, in which URLs, mentions and hashtags are found."""
    if not _MARKER_CHARACTER.search(text):
        yield text
        return
    nodes = list(reversed(parse(text)))
    while nodes:
        node = nodes.pop()
        if node.kind == "text":
            yield node.text
        elif node.kind != "link":
            nodes += reversed(node.children)


@dataclass(frozen=True, slots=True)
class _BlockLine:
    """A line without the marker at its beginning, or all lines of a code block."""

    kind: str
    content: str
    number: int | None = None


def _block_lines(text: str) -> Iterator[_BlockLine]:
    lines = _LINE_BREAK.split(text)
    ends = [index for index, line in enumerate(lines) if _FENCE_END.fullmatch(line)]
    ends.reverse()
    index = 0
    while index < len(lines):
        while ends and ends[-1] <= index:
            ends.pop()
        if ends and _FENCE_START.fullmatch(lines[index]):
            yield _BlockLine("codeBlock", "\n".join(lines[index + 1 : ends[-1]]))
            index = ends[-1] + 1
        else:
            yield _block_line(lines[index])
            index += 1


def _block_line(line: str) -> _BlockLine:
    marker = _LINE_MARKER.match(line)
    if marker is None:
        is_escaped = line.startswith("\\") and _LINE_MARKER.match(line, 1) is not None
        return _BlockLine("paragraph", line[1:] if is_escaped else line)
    content = line[marker.end() :]
    if marker[1]:
        return _BlockLine("quote", content)
    return _BlockLine("list", content, None if marker[2] else int(marker[3]))


def _block(kind: str, rows: list[_BlockLine]) -> Node:
    if kind == "codeBlock":
        return Node(kind, rows[0].content)
    if kind == "list":
        items = (Node("item", children=_joined(_inline(row.content)), number=row.number) for row in rows)
        return Node(kind, children=tuple(items))
    filled = [index for index, row in enumerate(rows) if not _IS_BLANK.fullmatch(row.content)]
    pieces: list[str | Node] = []
    for row in rows[filled[0] : filled[-1] + 1] if filled else ():
        pieces += ["\n", *_inline(row.content)] if pieces else _inline(row.content)
    return Node(kind, children=_joined(pieces))


def _joined(pieces: Sequence[str | Node]) -> tuple[Node, ...]:
    """Returns the nodes with a text node for each run of adjacent strings."""
    nodes: list[Node] = []
    run: list[str] = []
    for piece in (*pieces, None):
        if isinstance(piece, str):
            run.append(piece)
            continue
        if joined := "".join(run):
            nodes.append(Node("text", joined))
        run.clear()
        if piece is not None:
            nodes.append(piece)
    return tuple(nodes)


def _plain(node: Node) -> str:
    if node.kind == "list":
        return "\n".join(_plain(item) for item in node.children)
    inner = node.text + "".join(_plain(child) for child in node.children)
    if node.kind != "item":
        return inner
    return f"- {inner}" if node.number is None else f"{node.number}. {inner}"


def _without_code(line: str) -> str:
    parts: list[str] = []
    position = 0
    for start, (end, _) in _code_spans(line).items():
        parts += [line[position:start], "`"]
        position = end
    return "".join([*parts, line[position:]])


def _code_spans(line: str) -> dict[int, tuple[int, str]]:
    """Returns the ends and texts of the line's code spans by their starts."""
    runs: dict[int, list[int]] = {1: [], 2: [], 3: []}
    for run in re.finditer("`+", line):
        runs.get(len(run[0]), []).append(run.start())
    for starts in runs.values():
        starts.reverse()
    spans: dict[int, tuple[int, str]] = {}
    position = 0
    while token := _ESCAPE_OR_BACKTICKS.search(line, position):
        position = token.end()
        closing = runs.get(len(token[0]), []) if token[0][0] == "`" else []
        while closing and closing[-1] < position:
            closing.pop()
        if closing:
            content = line[position : closing[-1]]
            position = closing[-1] + len(token[0])
            spans[token.start()] = position, _unpadded(content)
    return spans


def _unpadded(code: str) -> str:
    """Returns the code without a space at both ends, which lets it begin or end with a backtick."""
    return code[1:-1] if code.startswith(" ") and code.endswith(" ") and code.strip(" ") else code


def _inline(line: str) -> list[str | Node]:
    """Returns the line as strings and nodes."""
    return _LineParser(line).parse()


def _sides(run: str, before: str, after: str) -> tuple[bool, bool]:
    """Returns whether the run of markers between two characters may open, and whether it may close."""
    if run not in _MARKERS:
        return False, False
    may_open, may_close = not _IS_BLANK.fullmatch(after), not _IS_BLANK.fullmatch(before)
    if run == "[":
        return may_open and after != "]", False
    if run == "_":
        may_open, may_close = may_open and not _IS_LETTER.match(before), may_close and not _IS_LETTER.match(after)
    elif _IS_SPACED_LETTER.match(before) and _IS_SPACED_LETTER.match(after):
        may_open = False
    is_in_face = run in ("*", "_") and _IS_FACE.match(after) is not None
    return may_open and not is_in_face, may_close


@dataclass(slots=True)
class _Opening:
    """An opening marker, and what follows it so far. The outermost has no marker."""

    marker: str
    pieces: list[str | Node] = field(default_factory=list)


class _LineParser:
    """Parses one line. At most one opening of each marker is kept: the nearest before the position."""

    def __init__(self, line: str) -> None:
        self._line = line
        self._code = _code_spans(line) if "`" in line else {}
        self._openings = [_Opening("")]

    def parse(self) -> list[str | Node]:
        """Returns the line as strings and nodes."""
        position = 0
        while token := _TOKEN.search(self._line, position):
            self._add(self._line[position : token.start()])
            position = self._take(token)
        self._add(self._line[position:])
        while len(self._openings) > 1:
            self._give_up(len(self._openings) - 1)
        return self._openings[0].pieces

    def _take(self, token: re.Match[str]) -> int:
        """Adds the token to the tree. Returns the position after it."""
        text, start, end = token[0], token.start(), token.end()
        if text[0] == "`" and start in self._code:
            end, code = self._code[start]
            self._add(Node("code", code))
        elif text[0] == "\\":
            self._add(text[1])
        elif token[1]:
            return start + self._take_url(text)
        elif text == "]":
            return self._close_link(start)
        elif text[0] in "*_~[":
            self._take_marker(text, start, end)
        else:
            self._add(text)
        return end

    def _take_url(self, text: str) -> int:
        """Adds a URL as typed. A link's own text must not show another address."""
        url = text.rstrip(_URL_TRAILING)
        self._give_up(self._index_of("["))
        self._add(url)
        return len(url)

    def _take_marker(self, run: str, start: int, end: int) -> None:
        """Closes what the run of markers ends, and opens or adds the markers that are left."""
        may_open, may_close = _sides(run, self._line[start - 1 : start], self._line[end : end + 1])
        left = self._close(run) if may_close else run
        for marker in ("**", "*") if left == "***" else (left,) if left else ():
            self._open(marker) if may_open else self._add(marker)

    def _close(self, run: str) -> str:
        """Closes the openings that the run of markers ends. Returns the markers that are left."""
        while run:
            shorter = [marker for marker in ("**", "*") if run[0] == "*" and len(marker) < len(run)]
            index = self._index_of(run) or max(map(self._index_of, shorter), default=0)
            if index == 0:
                return run
            marker = self._openings[index].marker
            self._wrap(index, Node(_KINDS[marker]))
            run = run[len(marker) :]
        return run

    def _close_link(self, start: int) -> int:
        """Makes a link of what follows the opening bracket if a target follows. Returns the position after it."""
        index = self._index_of("[")
        target = _LINK_TARGET.match(self._line, start) if index else None
        if target is None:
            self._give_up(index)
            self._add("]")
            return start + 1
        self._wrap(index, Node("link", href=target[1]))
        return target.end()

    def _open(self, marker: str) -> None:
        self._give_up(self._index_of(marker))
        self._openings.append(_Opening(marker))

    def _index_of(self, marker: str) -> int:
        """Returns the index of the marker's opening, or 0."""
        return next((index for index, opening in enumerate(self._openings) if opening.marker == marker), 0)

    def _give_up(self, index: int) -> None:
        """Makes text of an opening marker. Index 0 has none."""
        if index:
            opening = self._openings.pop(index)
            self._openings[index - 1].pieces += [opening.marker, *opening.pieces]

    def _wrap(self, index: int, node: Node) -> None:
        """Puts what follows the opening into the node, and the node in its place."""
        while len(self._openings) > index + 1:
            self._give_up(len(self._openings) - 1)
        pieces = self._openings.pop().pieces
        self._add(Node(node.kind, children=_joined(pieces), href=node.href))

    def _add(self, piece: str | Node) -> None:
        if piece != "":
            self._openings[-1].pieces.append(piece)
