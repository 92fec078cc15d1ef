"""Passwords: which ones are allowed, and their Argon2id hashes.

Hashes are computed in threads, since a hash takes some 40 ms and 46 MiB. A process computes a few at once. Sign-ins in
known browsers, and new passwords, have threads of their own. So neither strangers who guess nor new passwords, whose
estimate takes longer, keep people from signing in.
"""

import asyncio
import re
import unicodedata
from collections.abc import Callable
from typing import TypeVar

from argon2 import PasswordHasher
from argon2.exceptions import Argon2Error, InvalidHashError

from storage.errors import BadUserInput, RateLimited

MIN_CHARS = 10
MAX_CHARS = 256
MIN_GUESSES = 1_000_000
"""How many guesses a password must withstand by zxcvbn's estimate, which knows 30,000 common passwords."""

MAX_ESTIMATED_CHARS = 72
"""How many characters the estimate reads. Its time grows with their square."""

LEETSPEAK = frozenset("0123456789!@$%([{<|+")
"""Characters that zxcvbn reads as letters, in every combination of their meanings."""

MAX_LEETSPEAK_KINDS = 8
"""Distinct characters of leetspeak up to which the estimate reads MAX_ESTIMATED_CHARS, which takes up to 0.25 s."""

MAX_ESTIMATED_LEETSPEAK = 16
"""How many characters the estimate reads if more are distinct. 16 take up to 0.2 s; 72 took up to 6 s."""

MIN_OTHER_CHARS = 6
"""How many characters must be left of a password without the person's name and address."""

MAX_RUNNING = 2
"""Passwords that one process compares at once."""

MAX_RUNNING_OF_KNOWN = 1
"""Passwords from known browsers that one process compares at once, besides those of others."""

MAX_WAITING = 50
"""Comparisons that wait in one process, for each of the two kinds."""

MAX_RUNNING_CHOICES = 1
"""New passwords that one process checks and hashes at once. zxcvbn keeps a person's own words in a global variable."""

MAX_WAITING_CHOICES = 20
"""New passwords that wait in one process."""

RETRY_AFTER_MS = 2000
ALLOWED = f"{MIN_CHARS} to {MAX_CHARS} characters, not a common password, not the own name or address"

UNKNOWN_HASH = "$argon2id$v=19$m=47104,t=1,p=1$qRfwawzIqWw/JAzRPH5UhA$C8xxNjEL0QkcMj0ROicSNjO/uwPuibnM9ivNZlX/Qhk"
"""Hash of a random password that nobody knows. Sign-ins of unknown accounts are compared with it."""

Result = TypeVar("Result")


def normalize_password(password: str) -> str:
    """Returns the form that is hashed (NFKC), which does not depend on the keyboard. Raises: BadUserInput."""
    try:
        password.encode()
    except UnicodeEncodeError:
        raise BadUserInput("password", "text without lone surrogates") from None
    if len(password) > MAX_CHARS:
        raise BadUserInput("password", ALLOWED, f"The password has more than {MAX_CHARS} characters.")
    return unicodedata.normalize("NFKC", password)


def check_new_password(password: str, name: str, address: str) -> None:
    """Raises BadUserInput for a password that is too short, common, or made of the person's name or address.

    There are no rules for kinds of characters (NIST SP 800-63B). Takes up to 0.3 s, so call it in a thread.
    """
    if len(normalize_password(password)) < MIN_CHARS:
        raise BadUserInput("password", ALLOWED, f"The password needs {MIN_CHARS} characters or more.")
    own_words = _words(name) | _words(address)
    if _length_without(password, own_words) < MIN_OTHER_CHARS:
        raise BadUserInput("password", ALLOWED, "The password consists of your name or your address. Choose another.")
    if _guesses(_estimated(password), own_words) < MIN_GUESSES:
        raise BadUserInput("password", ALLOWED, "This password is easy to guess. Choose another.")


def _words(text: str) -> set[str]:
    """Returns the words of a name or an address in lower case, without those of one or two letters."""
    return {word for word in re.split(r"[\W_]+", _folded(text)) if len(word) > 2}


def _folded(text: str) -> str:
    return unicodedata.normalize("NFKC", text).casefold()


def _length_without(password: str, words: set[str]) -> int:
    rest = _folded(password)
    for word in sorted(words, key=len, reverse=True):
        rest = rest.replace(word, "")
    return len(re.sub(r"[\W_]+", "", rest)) if rest != _folded(password) else len(rest)


def _estimated(password: str) -> str:
    """Returns the beginning of a password whose estimate takes a bounded time."""
    beginning = password[:MAX_ESTIMATED_CHARS]
    is_leetspeak = len(LEETSPEAK.intersection(beginning)) > MAX_LEETSPEAK_KINDS
    return beginning[:MAX_ESTIMATED_LEETSPEAK] if is_leetspeak else beginning


def _guesses(password: str, own_words: set[str]) -> float:
    # Imported here: its word lists take 30 ms and some megabytes.
    from zxcvbn import zxcvbn

    return float(zxcvbn(password, user_inputs=sorted(own_words))["guesses"])


class PasswordHashes:
    """Checks new passwords, computes hashes and compares them, a few at once."""

    def __init__(self, max_running: int = MAX_RUNNING, max_waiting: int = MAX_WAITING) -> None:
        # OWASP's first choice of parameters. A hash names its own, so that they may change.
        self._hasher = PasswordHasher(time_cost=1, memory_cost=47_104, parallelism=1)
        self._sign_ins = _BoundedThreads(max_running, max_waiting, "sign in")
        self._known_sign_ins = _BoundedThreads(MAX_RUNNING_OF_KNOWN, max_waiting, "sign in")
        self._choices = _BoundedThreads(MAX_RUNNING_CHOICES, MAX_WAITING_CHOICES, "choose a password")

    async def hash_new(self, password: str, name: str, address: str) -> str:
        """Returns the hash of a new password, which is checked first. Raises: BadUserInput, RateLimited."""

        def work() -> str:
            check_new_password(password, name, address)
            return self._hasher.hash(normalize_password(password))

        return await self._choices.run(work)

    async def verify(self, stored: str | None, password: str, *, is_known_browser: bool = False) -> bool:
        """Returns whether the password has the hash `stored`, which is None for an account without a password.

        Returns False for None, after the same time, so that clients can't tell which accounts exist. Raises:
        RateLimited, BadUserInput.
        """
        normalized = normalize_password(password)
        threads = self._known_sign_ins if is_known_browser else self._sign_ins
        return await threads.run(lambda: self._matches(stored, normalized))

    async def verify_current(self, stored: str | None, password: str) -> bool:
        """Returns whether the password of a person who changes it has the hash `stored`.

        Waits for changes of passwords only, and not for sign-ins. Raises: RateLimited, BadUserInput.
        """
        normalized = normalize_password(password)
        return await self._choices.run(lambda: self._matches(stored, normalized))

    def is_outdated(self, stored: str) -> bool:
        """Returns whether the hash has other parameters than new hashes."""
        return self._hasher.check_needs_rehash(stored)

    async def rehash(self, password: str) -> str:
        """Returns a new hash of a password that was right. Raises: RateLimited."""
        normalized = normalize_password(password)
        return await self._known_sign_ins.run(lambda: self._hasher.hash(normalized))

    def _matches(self, stored: str | None, password: str) -> bool:
        try:
            self._hasher.verify(stored or UNKNOWN_HASH, password)
        except (Argon2Error, InvalidHashError):
            return False
        return stored is not None


class _BoundedThreads:
    """Runs work in a few threads at once. Further work waits, and is refused when too much waits."""

    def __init__(self, max_running: int, max_waiting: int, action: str) -> None:
        self._slots = asyncio.Semaphore(max_running)
        self._unfinished = 0
        self._max_unfinished = max_running + max_waiting
        self._action = action

    async def run(self, work: Callable[[], Result]) -> Result:
        """Returns the result of the work. Raises: RateLimited."""
        if self._unfinished >= self._max_unfinished:
            raise RateLimited(f"Too many people {self._action} at once. Try again later.", RETRY_AFTER_MS)
        self._unfinished += 1
        # A task of its own: if the caller is cancelled, the thread computes on and keeps its slot.
        return await asyncio.shield(asyncio.create_task(self._in_slot(work)))

    async def _in_slot(self, work: Callable[[], Result]) -> Result:
        try:
            async with self._slots:
                return await asyncio.to_thread(work)
        finally:
            self._unfinished -= 1
