"""The emojis of Unicode, each with the one form in which it is stored. Pure; no I/O."""

from emoji import EMOJI_DATA, STATUS

_VARIATION_SELECTOR = "\ufe0f"
_QUALIFIED_FORMS = {
    text.replace(_VARIATION_SELECTOR, ""): text
    for text, data in EMOJI_DATA.items()
    if data["status"] in (STATUS["fully_qualified"], STATUS["component"])
}
"""The emojis in the fully qualified forms of Unicode's emoji-test, by the same texts without variation selectors."""

MAX_EMOJI_CHARS = 128


def qualified_emoji(text: str) -> str | None:
    """Returns the fully qualified form of one emoji in any form that Unicode allows; None for any other text."""
    return _QUALIFIED_FORMS.get(text.replace(_VARIATION_SELECTOR, "")) if len(text) <= MAX_EMOJI_CHARS else None
