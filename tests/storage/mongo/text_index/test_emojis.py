"""The forms of emojis, over all of Unicode's data."""

from itertools import product

from emoji import EMOJI_DATA, STATUS

from storage.mongo.text_index.emojis import MAX_EMOJI_CHARS, qualified_emoji

STORED = [text for text, data in EMOJI_DATA.items() if data["status"] in (STATUS["fully_qualified"], 1)]


def forms(emoji: str) -> set[str]:
    """Returns the emoji with each selection of its variation selectors, and with one more at its end."""
    first, *parts = emoji.split("\ufe0f")
    selections = product(("", "\ufe0f"), repeat=len(parts))
    made = {first + "".join(map("".join, zip(chosen, parts, strict=True))) for chosen in selections}
    return made | {f"{emoji}\ufe0f"}


def test_every_form_of_each_emoji_has_one_stored_form() -> None:
    assert len(STORED) > 3900
    wrong = {form: emoji for emoji in STORED for form in forms(emoji) if qualified_emoji(form) != emoji}
    assert wrong == {}
    assert {text for text in EMOJI_DATA if qualified_emoji(text) not in STORED} == set()


def test_selector_before_skin_tone_is_one_emoji() -> None:
    assert qualified_emoji("\u261d\ufe0f\U0001f3fb") == "\u261d\U0001f3fb"


def test_other_texts_are_no_emoji() -> None:
    for text in ("", "a", "\ufe0f", "1", "👍👍", "❤\ufe0e", "👍" + "\ufe0f" * MAX_EMOJI_CHARS):
        assert qualified_emoji(text) is None
