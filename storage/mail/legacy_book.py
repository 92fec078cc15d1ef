"""Leaving an older book: which addresses it still answers for, and where the two books disagree."""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from zlib import crc32

from storage.mail.addresses import normalize


class LegacyBookError(Exception):
    """The older book did not answer, or not in a way that can be read."""


@dataclass(frozen=True, slots=True)
class LegacyBook:
    """The older book: for which share of the addresses it answers (0 to 100), and how it is asked.

    `ask` tells of each address whether it is blocked. Raises: LegacyBookError.
    """

    share: int
    ask: Callable[[Sequence[str]], Awaitable[Mapping[str, bool]]]


def is_answered_by_legacy(written: str, share: int) -> bool:
    """Whether an address is among the share. The same for one address always; a greater share has all of a smaller."""
    address = normalize(written)
    return address is not None and crc32(address.text.encode()) % 100 < share
