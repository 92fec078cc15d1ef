"""Reads the own text of a bounce: decoded, without markup, and only what precedes the quoted original message."""

import re
from collections.abc import Iterator
from email.message import Message
from html import unescape
from itertools import takewhile

from jobs.mail.report_parts import decoded_text, is_attached_message

MAX_BODY_CHARS = 64_000
MAX_TEXT_CHARS = 16_000

_NOUN = r"(?:message|e-?mail|mail|nachricht)"
_OF_ORIGINAL = r"(?:original|returned|undelivered|unsent|rejected|bounced|failed|forwarded|old|ursprüngliche)"
_TITLE = (
    rf"(?:(?:begin(?:ning)?|start|copy) of )?(?:the |your )?{_OF_ORIGINAL} {_NOUN}(?:'s)?"
    rf"(?: text| headers?| body| contents?| details)?"
    rf"|(?:the )?(?:{_NOUN} )?(?:text|headers?|body|contents?)(?: of (?:the|your) (?:{_OF_ORIGINAL} )?{_NOUN})?"
    r"|message d'origine|mensaje original|(?:元の|元|オリジナル)の?(?:メッセージ|メール)"
)
_FOLLOWS = r"(?: section)? ?(?:follows?|(?:is )?(?:following|below|attached|included(?: below)?)|は以下の通り)"
_THE_MESSAGE = rf"(?:the|your) (?:{_OF_ORIGINAL} )?{_NOUN}\b"
_COPY = (
    r"(?:(?:below|after|beneath|following) )?(?:this|the next) line is a copy of (?:the|your) "
    r"|(?:this is a copy of|(?:here|following|attached|(?:included )?below) is(?: a copy of)?) "
    rf"{_THE_MESSAGE}(?!.*\b(?:could|was|has|delivery)\b)"
    rf"|(?:included is )?(?:a|the) copy of {_THE_MESSAGE}|your {_NOUN} reads"
)
_SEPARATOR = re.compile(
    rf"\s*(?:[-=*_#~+]{{2,}}\W*(?:{_TITLE})(?:{_FOLLOWS})?\W*$|(?:{_TITLE})(?:{_FOLLOWS}\W*|\s*:\s*)$|\W*(?:{_COPY}))",
    re.IGNORECASE,
)
_TRACE_FIELD = re.compile(
    r"[\s>|]*(?:return-path|received|x-received|delivered-to|dkim-signature|x-mailer|mime-version|content-type"
    r"|content-transfer-encoding|authentication-results|arc-[\w-]+|list-[\w-]+|x-originating-ip|user-agent)\s?:",
    re.IGNORECASE,
)
_WRITTEN_FIELD = re.compile(
    r"(from|to|cc|subject|date|reply-to|sender|message-id|in-reply-to|x-[\w-]+)\s?:", re.IGNORECASE
)
_BLOCKS = {"p", "br", "div", "tr", "li", "pre", "h1", "h2", "h3", "h4", "table", "ul", "ol", "blockquote", "td", "hr"}
_HIDDEN = {"script": "</script", "style": "</style", "title": "</title", "<!--": "-->"}
"""Elements whose content is not shown, with their ends."""

_TAG = re.compile(r"<!--|-->|<(?P<end>/?)(?P<name>[A-Za-z][\w:-]*)(?:[\s/][^<>]*)?>|<[!?][^<>]*>")


def body_text(message: Message) -> str:
    """Returns the text of a bounce up to an attached message. HTML is read where there is no plain text."""
    parts = takewhile(lambda part: not is_attached_message(part), _leaves(message))
    texts = [_part_text(part) for part in parts if part.get_content_disposition() != "attachment"]
    return "\n".join(texts)[:MAX_BODY_CHARS].replace("\r\n", "\n").replace("\r", "\n").replace("\xa0", " ")


def own_text(text: str) -> str:
    """Returns the lines before the quoted original message, which a separator or its header fields begin."""
    lines = before_separator(text).split("\n")
    ends = (number for number in range(len(lines)) if _starts_header(lines[number : number + 4]))
    return "\n".join(lines[: next(ends, len(lines))])[:MAX_TEXT_CHARS]


def before_separator(text: str) -> str:
    """Returns the lines before a separator such as `--- Below this line is a copy of the message`."""
    return "\n".join(takewhile(lambda line: not _SEPARATOR.match(line[:200]), text.split("\n")))[:MAX_TEXT_CHARS]


def _part_text(part: Message) -> str:
    """Returns what people read of a part: nothing of an image, the text of HTML."""
    text = decoded_text(part)[:MAX_BODY_CHARS] if part.get_content_maintype() in ("text", "multipart") else ""
    return _text_of_html(text) if part.get_content_type() == "text/html" else text


def _leaves(part: Message) -> Iterator[Message]:
    """Yields the parts that are no multiparts. Of alternatives, plain text is chosen if there is any."""
    if not part.is_multipart():
        yield part
        return
    children = [each for each in part.get_payload() if isinstance(each, Message)]
    if part.get_content_type() == "multipart/alternative":
        plain = (each for each in children if each.get_content_type() == "text/plain" and _part_text(each).strip())
        children = list(plain)[:1] or children
    for child in children:
        yield from _leaves(child)


def _starts_header(lines: list[str]) -> bool:
    """Returns whether a quoted header starts here: a field of transport, From and another field, or three fields."""
    if _TRACE_FIELD.match(lines[0]):
        return True
    names = [found[1].lower() for found in takewhile(bool, map(_WRITTEN_FIELD.match, lines)) if found]
    return len(names) >= 3 or (len(names) == 2 and "from" in names)


def _text_of_html(document: str) -> str:
    """Returns the text of HTML, with a line for each block. Whitespace has a meaning only in preformatted text.

    The time of html.parser is quadratic in the number of unclosed tags.
    """
    texts: list[str] = []
    position, hidden, is_preformatted = 0, "", False
    for tag in _TAG.finditer(document):
        name = tag["name"].lower() if tag["name"] else tag[0]
        if not hidden:
            texts += _data(document[position : tag.start()], is_preformatted), "\n" if name in _BLOCKS else ""
            hidden = _HIDDEN.get(name, "")
        elif tag[0].lower().startswith(hidden):
            hidden = ""
        is_preformatted = not tag["end"] if name == "pre" else is_preformatted
        position = tag.end()
    texts.append("" if hidden else _data(document[position:], is_preformatted))
    return "\n".join(" ".join(line.split()) for line in "".join(texts).split("\n"))


def _data(text: str, is_preformatted: bool) -> str:
    return unescape(text if is_preformatted else re.sub(r"\s+", " ", text))
