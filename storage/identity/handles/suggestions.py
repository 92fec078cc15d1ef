"""Handles of new users: derived from claims and names, readable, and not taken."""

import re
import secrets
import unicodedata

from storage.identity.handles.reserved import ReservedHandles
from storage.identity.handles.romanization import romanize
from storage.mongo import Mongo, Session

MAX_HANDLE = 30
MAX_NUMBERED_HANDLES = 1000
VIEWER_WORD = "me"
"""Means the viewer in searches, so nobody gets it as a handle."""

HANDLE_FORMAT = f"1 to {MAX_HANDLE} lower-case letters, digits and underscores, other than {VIEWER_WORD}"
_HANDLE = re.compile(f"(?!{VIEWER_WORD}$)[a-z0-9_]{{1,{MAX_HANDLE}}}")
_FIRST_CANDIDATES = 10
_RANDOM_CHARACTERS = "23456789bcdfghjkmnpqrstvwxz"
"""Letters and digits that nobody confuses, and no vowels, so that they form no words."""


def is_handle(text: str) -> bool:
    """Returns whether a person may choose the text as a handle."""
    return _HANDLE.fullmatch(text) is not None


def normalize_handle(text: str) -> str:
    """Returns the text as a handle, `[a-z0-9_]{1,30}`, or "" if no Latin letter and no digit is left.

    Accents are dropped, and other characters become underscores.
    """
    if is_handle(text):
        return text
    plain = unicodedata.normalize("NFKD", text).encode("ascii", "ignore").decode().lower()
    return re.sub(r"[^a-z0-9_]+", "_", plain).strip("_")[:MAX_HANDLE]


def suggest_handle(*texts: str | None) -> str:
    """Returns a handle from the first text that has Latin letters, digits or kana, or `member_` and four characters."""
    handles = (normalize_handle(romanize(text)) for text in texts if text is not None)
    return next(filter(is_handle, handles), None) or "member_" + "".join(
        secrets.choice(_RANDOM_CHARACTERS) for _ in range(4)
    )


async def free_handle(mongo: Mongo, organization_id: str, base: str, session: Session) -> str:
    """Returns a handle that no user of the organization has and that is not reserved.

    This is the handle `base`, if it is free; otherwise the same with the smallest free number up to 999. If all of
    these are taken, it is the same with random hexadecimal digits.
    """
    suffixes = ["", *(f"-{number}" for number in range(2, MAX_NUMBERED_HANDLES)), f"-{secrets.token_hex(6)}"]
    candidates = [with_suffix(base, suffix) for suffix in suffixes]
    first = await _free_among(mongo, organization_id, candidates[:_FIRST_CANDIDATES], session)
    return (first or await _free_among(mongo, organization_id, candidates, session))[0]


async def _free_among(mongo: Mongo, organization_id: str, candidates: list[str], session: Session) -> list[str]:
    query = {"_id.org": organization_id, "handle": {"$in": candidates}}
    taken = {user["handle"] for user in await mongo.find("users", query, {"handle": 1}, session=session)}
    taken |= await ReservedHandles(mongo).reserved_among(organization_id, candidates, session)
    return [each for each in candidates if each not in taken]


def with_suffix(handle: str, suffix: str) -> str:
    """Returns the handle with the suffix, shortened so that both fit."""
    return handle[: MAX_HANDLE - len(suffix)] + suffix
