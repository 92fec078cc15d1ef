"""Kana in Latin letters, by the Hepburn system.

Long vowels are written as in kana: しょうへい is `shouhei`, いのうえ is `inoue`. Kanji are left as they are, because
the reading of a name in kanji is unknown.
"""

import re
import unicodedata

_KANA = "ぁ-ゖァ-ヺー"
_KANJI = "々\u3400-\u4dbf\u4e00-\u9fff"
_WORD = re.compile(f"[{_KANA}]+")
_SINGLE_KANA = re.compile(f"(?<=[{_KANJI}])[{_KANA}](?![{_KANA}])|(?<![{_KANA}])[{_KANA}](?=[{_KANJI}])")
"""One kana beside kanji, such as that of 一ノ瀬. It is no readable part of a name."""

_PROLONGED = "ー"
_DIFFERENT_IN_HEPBURN = {
    "si": "shi",
    "ti": "chi",
    "tu": "tsu",
    "hu": "fu",
    "zi": "ji",
    "di": "ji",
    "du": "zu",
    "wi": "i",
    "we": "e",
    "wo": "o",
}
"""Sounds that Unicode names in another system."""


def romanize(text: str) -> str:
    """Returns the text with its kana in Latin letters, in lower case. Leaves out a single kana beside kanji.

    Names are separated by spaces: ジョン・スミス is `jon sumisu`.
    """
    if text.isascii():
        return text
    whole = unicodedata.normalize("NFKC", text).replace("・", " ")
    return _WORD.sub(lambda word: _hepburn(word[0]), _SINGLE_KANA.sub(" ", whole))


def _hepburn(kana: str) -> str:
    romanized, is_doubled = "", False
    for each in kana.replace(_PROLONGED, ""):
        name = unicodedata.name(each).partition(" LETTER ")[2].lower()
        sound = name.removeprefix("small ")
        if name == "small tu":
            is_doubled = True
        elif name.startswith("small ") and romanized:
            romanized = _with_small(romanized, sound)
        else:
            sound = _DIFFERENT_IN_HEPBURN.get(sound, sound)
            romanized += (_doubled(sound) if is_doubled else "") + sound
            is_doubled = False
    return romanized


def _doubled(sound: str) -> str:
    """Returns the consonant by which a small tsu lengthens the sound."""
    return "t" if sound.startswith("ch") else sound[0].strip("aeioun")


def _with_small(romanized: str, sound: str) -> str:
    """Returns the text after a small kana, which replaces the vowel before it: しゃ is sha, ファ is fa, ウィ is wi."""
    if sound in ("ka", "ke"):
        return romanized + sound
    stem, vowel = romanized[:-1], romanized[-1]
    if stem.endswith(("sh", "ch", "j")):
        return stem + sound.removeprefix("y")
    if vowel == "u" and sound in ("a", "i", "e", "o") and stem[-1:] in ("", *"aeioukg"):
        return f"{stem}w{sound}"
    return stem + sound
