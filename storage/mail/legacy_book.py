"""The legacy book: the bounce book that this product replaces. It answers a share of the lookups during a migration."""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from zlib import crc32

from storage.mail.addresses import normalize


class LegacyBookError(Exception):
    """The legacy book did not answer, or its answer is malformed."""


@dataclass(frozen=True, slots=True)
class LegacyBook:
    """The legacy book, which answers for `share` percent of the addresses.

    `ask` returns whether each address is blocked. Raises: LegacyBookError.
    """

    share: int
    ask: Callable[[Sequence[str]], Awaitable[Mapping[str, bool]]]


def is_answered_by_legacy(written: str, share: int) -> bool:
    """Returns whether an address belongs to the share. Stable per address; a larger share contains a smaller one."""
    address = normalize(written)
    return address is not None and crc32(address.text.encode()) % 100 < share
