"""Browsers in which people have signed in with a password. Each one holds an encrypted cookie; nothing is stored here.

Strangers can use up the attempts at an account, and so keep its person out. A known browser has attempts of its own.
"""

import time

from server.auth.sealed_cookies import SealedCookies
from storage.identity.accounts.local_accounts import LocalAccount
from storage.ids import new_id

KNOWN_BROWSER_COOKIE = "__Host-noroshi-known"
KNOWN_FOR_S = 180 * 86_400
"""How long a browser is known after the last sign-in."""

MAX_ACCOUNTS_OF_BROWSER = 5
"""Accounts for which one browser is known: those that signed in last."""

_Entry = tuple[str, str, int, str, int]
"""Organization, user, time of the password in ms, random id of the browser, time of the sign-in in s."""


class KnownBrowsers:
    """Writes and reads the cookies, with a key that all processes share.

    A new password makes every earlier cookie of its account useless.
    """

    def __init__(self, key: bytes) -> None:
        """Takes a key of 32 bytes."""
        self._cookies = SealedCookies(key, KNOWN_FOR_S)

    def cookie(self, account: LocalAccount, earlier: str | None) -> str:
        """Returns the cookie of a browser in which the account's person has just signed in.

        `earlier` is the browser's cookie from before. The browser stays known for the other accounts in it.
        """
        user = (account.organization_id, account.user_id)
        entry = (*user, _password_version(account), new_id(), int(time.time()))
        others = [each for each in self._entries(earlier) if each[:2] != user]
        return self._cookies.seal([entry, *others][:MAX_ACCOUNTS_OF_BROWSER])

    def is_of_any_account(self, cookie: str | None) -> bool:
        """Returns whether the browser is known for an account whose password may have changed since."""
        return bool(self._entries(cookie))

    def browser_id(self, account: LocalAccount, cookie: str | None) -> str | None:
        """Returns the id of a browser that is known for the account; None for other browsers."""
        known_for = (account.organization_id, account.user_id, _password_version(account))
        return next((each[3] for each in self._entries(cookie) if each[:3] == known_for), None)

    def _entries(self, cookie: str | None) -> list[_Entry]:
        oldest = time.time() - KNOWN_FOR_S
        entries: list[_Entry] = [tuple(each) for each in self._cookies.open(cookie) or ()]
        return [each for each in entries if each[4] > oldest]


def _password_version(account: LocalAccount) -> int:
    return 0 if account.password_at is None else round(account.password_at.timestamp() * 1000)
