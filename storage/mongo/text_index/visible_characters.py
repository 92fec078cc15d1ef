"""Recognizes texts in which nothing can be seen. Pure; no I/O."""

import re

# Control characters and the Default_Ignorable_Code_Points of Unicode (DerivedCoreProperties.txt), which include the
# invisible format characters, variation selectors, tags, and fillers such as U+3164.
_IGNORABLE = (
    "\x00-\x1f\x7f-\x9f\xad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f\u202a-\u202e\u2060-\u206f"
    "\u3164\ufe00-\ufe0f\ufeff\uffa0\ufff0-\ufffb\U0001bca0-\U0001bca3\U0001d173-\U0001d17a\U000e0000-\U000e0fff"
)
# Characters without ink that are neither white space nor ignorable: blanks of Braille, Egyptian, Khitan and music.
_WITHOUT_INK = "\u2800\U00013430-\U00013442\U00016fe4\U0001d159"
_VISIBLE = re.compile(f"[^\\s{_IGNORABLE}{_WITHOUT_INK}]")


def has_visible_character(text: str) -> bool:
    """Returns whether at least one character of the text can be seen."""
    return _VISIBLE.search(text) is not None
