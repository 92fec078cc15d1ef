"""Whom a text mentions: `@handle`, as in messages and posts."""

import re

from resolvers.context import Info
from storage.identity import User

MAX_MENTIONS = 50
_MENTION = re.compile(r"(?<![\w@])@([a-z0-9_]{1,30}(?:-[0-9]+)?)(?!\w)", re.ASCII | re.IGNORECASE)


async def mentioned(info: Info, viewer: User, body: str) -> list[str]:
    """Ids of those whom the text mentions, in the order of mention."""
    written = list(dict.fromkeys(match.lower() for match in _MENTION.findall(body)))[:MAX_MENTIONS]
    if not written:
        return []
    # "@ann-2" names ann-2 where there is one, and else ann.
    plain = {handle: handle.partition("-")[0] for handle in written}
    found = await info.context.stores.users.find_handles(viewer.organization_id, [*written, *plain.values()])
    users = [found.get(handle) or found.get(plain[handle]) for handle in written]
    return list(dict.fromkeys(user.id for user in users if user is not None))
