"""Mentions (`@handle`) and hashtags (`#tag`) in the texts of messages and posts. In code there are none."""

import re
import unicodedata

from storage.identity.formatting import without_code
from storage.identity.users import UserStore

MAX_MENTIONS = 50
MAX_HASHTAGS = 30
MAX_HASHTAG_CHARS = 100
_HASHTAG = re.compile(rf"(?<![\w#＃&/])[#＃](\w{{1,{MAX_HASHTAG_CHARS}}})(?!\w)")
_MENTION = re.compile(r"(?<![\w@])@([a-z0-9_]{1,30}(?:-[0-9]+)?)(?!\w)", re.ASCII | re.IGNORECASE)


async def find_mentioned(users: UserStore, organization_id: str, text: str) -> list[str]:
    """Returns the ids of the users that the text mentions, in the order of mention, at most 50."""
    handles = list(dict.fromkeys(match.lower() for match in _MENTION.findall(without_code(text))))[:MAX_MENTIONS]
    if not handles:
        return []
    # "@ann-2" mentions ann-2 if that handle exists, otherwise ann.
    unnumbered = {handle: handle.partition("-")[0] for handle in handles}
    users_by_handle = await users.find_handles(organization_id, [*handles, *unnumbered.values()])
    users_in_order = [users_by_handle.get(handle) or users_by_handle.get(unnumbered[handle]) for handle in handles]
    return list(dict.fromkeys(user.id for user in users_in_order if user is not None))


def find_hashtags(text: str) -> list[str]:
    """Returns the text's hashtags, normalized, in the order of first use, at most 30. Digits alone are no hashtag."""
    tags = (normalize_hashtag(match) for match in _HASHTAG.findall(without_code(text)))
    return list(dict.fromkeys(tag for tag in tags if not tag.isdigit()))[:MAX_HASHTAGS]


def normalize_hashtag(tag: str) -> str:
    """Returns the form in which hashtags are stored and compared: NFKC, case-folded."""
    return unicodedata.normalize("NFKC", tag).casefold()
