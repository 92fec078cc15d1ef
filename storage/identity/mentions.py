"""Whom and what a text mentions: `@handle` and `#tag`, as people write them in messages and posts."""

import re
import unicodedata

from storage.identity.users import UserStore

MAX_MENTIONS = 50
MAX_HASHTAGS = 30
MAX_HASHTAG = 100
_HASHTAG = re.compile(rf"(?<![\w#＃&/])[#＃](\w{{1,{MAX_HASHTAG}}})(?!\w)")
_MENTION = re.compile(r"(?<![\w@])@([a-z0-9_]{1,30}(?:-[0-9]+)?)(?!\w)", re.ASCII | re.IGNORECASE)


async def mentioned(users: UserStore, organization_id: str, text: str) -> list[str]:
    """Ids of those whom the text mentions, in the order of mention, at most 50."""
    written = list(dict.fromkeys(match.lower() for match in _MENTION.findall(text)))[:MAX_MENTIONS]
    if not written:
        return []
    # "@ann-2" names ann-2 where there is one, and else ann.
    plain = {handle: handle.partition("-")[0] for handle in written}
    found = await users.find_handles(organization_id, [*written, *plain.values()])
    people = [found.get(handle) or found.get(plain[handle]) for handle in written]
    return list(dict.fromkeys(user.id for user in people if user is not None))


def hashtags_in(text: str) -> list[str]:
    """The hashtags of a text, folded, in the order of first use; one of digits only is none."""
    found = (fold_hashtag(match) for match in _HASHTAG.findall(text))
    return list(dict.fromkeys(tag for tag in found if not tag.isdigit()))[:MAX_HASHTAGS]


def fold_hashtag(tag: str) -> str:
    """How hashtags are compared."""
    return unicodedata.normalize("NFKC", tag).casefold()
