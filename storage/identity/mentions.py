"""Mentions (`@handle`) and hashtags (`#tag`) in the texts of messages and posts. In code, links and addresses are none.

The web client finds the same with web-client/src/ui/text/text.ts. Both read the texts between the markers of
storage/identity/formatting.py, and take time linear in their length.
"""

import re
import unicodedata
from collections.abc import Iterator

from storage.identity.formatting import LETTER, URL_ENDS, unlinked_texts
from storage.identity.users import UserStore
from storage.mongo.text_index.tokenizer import is_spaceless

MAX_MENTIONS = 50
MAX_HASHTAGS = 30
MAX_HASHTAG_CHARS = 100

_AT, _HASH = "@＠﹫", "#＃﹟"
_AT_SIGNS = frozenset(_AT)
_URL = rf"(?<![A-Za-z0-9+.-])[A-Za-z][A-Za-z0-9+.-]*://[^{URL_ENDS}]+"
_PAGE = rf"(?<![{LETTER}.-])[{LETTER}-]+(?:\.[{LETTER}-]+)+(?::[0-9]+)?/[^{URL_ENDS}]*"
"""An address of the web without a scheme, such as example.org/@ann."""

_NAME = rf"[{_AT}](?P<handle>[A-Za-z0-9_Ａ-Ｚａ-ｚ０-９＿]{{1,30}}(?:-[0-9]+)?)|(?P<hash>[{_HASH}])"
_CANDIDATE, _CANDIDATE_WITHOUT_ADDRESSES = re.compile(f"{_URL}|{_PAGE}|{_NAME}"), re.compile(_NAME)
_REST_OF_ADDRESS = re.compile(rf"[A-Za-z0-9_.-]*[{_AT}]")
"""The rest of the address of a user of another server, such as @ann@example.org, after the name."""

_BEFORE_NO_HASHTAG = frozenset(f"{_HASH}&＆/／")
_MEDIAL = frozenset("·・\u200c\u200d")
"""Characters that a hashtag may have between two others: middle dots, and joiners of scripts such as Persian."""

_INVISIBLE = re.compile("[\u034f\u115f\u1160\u17b4\u17b5\u180b-\u180f\ufe00-\ufe0f\U000e0100-\U000e01ef]")


async def find_mentioned(users: UserStore, organization_id: str, text: str) -> list[str]:
    """Returns the ids of the users that the text mentions, in the order of mention, at most 50."""
    handles = find_handles(text)
    if not handles:
        return []
    # "@ann-2" mentions ann-2 if that handle exists, otherwise ann.
    unnumbered = {handle: handle.partition("-")[0] for handle in handles}
    users_by_handle = await users.find_handles(organization_id, [*handles, *unnumbered.values()])
    users_in_order = [users_by_handle.get(handle) or users_by_handle.get(unnumbered[handle]) for handle in handles]
    return list(dict.fromkeys(user.id for user in users_in_order if user is not None))


def find_handles(text: str) -> list[str]:
    """Returns the handles after an @, in lower case, in the order of first use, at most 50."""
    return list(dict.fromkeys(value for kind, value in _find(text) if kind == "mention"))[:MAX_MENTIONS]


def find_hashtags(text: str) -> list[str]:
    """Returns the text's hashtags, normalized, in the order of first use, at most 30. Digits alone are none."""
    return list(dict.fromkeys(value for kind, value in _find(text) if kind == "hashtag"))[:MAX_HASHTAGS]


def normalize_hashtag(tag: str) -> str:
    """Returns the form in which hashtags are stored and compared: NFKC, case-folded, without invisible characters."""
    return _INVISIBLE.sub("", _normalized(tag)).casefold()


def _find(text: str) -> Iterator[tuple[str, str]]:
    """Yields "mention" with a handle, or "hashtag" with a normalized tag, in the order of the text."""
    if any(sign in text for sign in _AT + _HASH):
        for part in unlinked_texts(text):
            yield from _find_in_part(part)


def _find_in_part(text: str) -> Iterator[tuple[str, str]]:
    position, pattern = 0, _CANDIDATE if "/" in text else _CANDIDATE_WITHOUT_ADDRESSES
    while candidate := pattern.search(text, position):
        start, position = candidate.span()
        if candidate["handle"]:
            if _is_mention(text, start, position):
                yield "mention", _normalized(candidate["handle"]).lower()
            else:
                position = start + 1
        elif candidate["hash"] and not _is_inside(text[start - 1 : start]):
            position = _end_of_tag(text, position)
            tag = normalize_hashtag(text[start + 1 : position])
            if len(tag) <= MAX_HASHTAG_CHARS and not all(map(_is_digit_or_mark, tag)):
                yield "hashtag", tag


def _is_mention(text: str, start: int, end: int) -> bool:
    """Returns whether the name is a word, and no part of a mail address or of a name with a server."""
    before, after = text[start - 1 : start], text[end : end + 1]
    is_in_word = _is_spaced(before) or _is_spaced(after) or before in _AT_SIGNS
    has_domain = after == "." and _is_spaced(text[end + 1 : end + 2])
    return not (is_in_word or has_domain or _REST_OF_ADDRESS.match(text, end))


def _is_inside(before: str) -> bool:
    """Returns whether the character before a # makes it a part of a word or of an address."""
    return _is_word(before) or before in _BEFORE_NO_HASHTAG


def _end_of_tag(text: str, start: int) -> int:
    """Returns the end of the hashtag whose first character would be at `start`. No hashtag begins with a mark."""
    if not _is_word(text[start : start + 1]) or _category(text[start]) == "M":
        return start
    end = start + 1
    while _is_word(text[end : end + 1]) or _is_medial(text[end : end + 2]):
        end += 1
    return end


def _is_medial(pair: str) -> bool:
    return _normalized(pair[:1]) in _MEDIAL and _is_word(pair[1:])


def _is_spaced(character: str) -> bool:
    """Returns whether a character belongs to a word of a script with spaces."""
    return _is_word(character) and not is_spaceless(_normalized(character))


def _is_word(character: str) -> bool:
    """Returns whether a character, normalized, is made of letters, marks, numbers and underscores. "" is not."""
    if character.isascii():
        return character.isalnum() or character == "_"
    return all(each == "_" or _category(each) in "LMN" for each in _normalized(character))


def _is_digit_or_mark(character: str) -> bool:
    return character.isdecimal() or _category(character) == "M"


def _category(character: str) -> str:
    return unicodedata.category(character)[0]


def _normalized(text: str) -> str:
    return unicodedata.normalize("NFKC", text)
