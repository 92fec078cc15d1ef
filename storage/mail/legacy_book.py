"""The legacy book: the bounce book that this product replaces. During a migration it answers a share of the lookups."""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from zlib import crc32

from storage.mail.addresses import normalize


class LegacyBookError(Exception):
    """The legacy book did not answer, or its answer is malformed."""


@dataclass(frozen=True, slots=True)
class LegacyBook:
    """The legacy book, which answers for a share of the addresses."""

    share: int
    """Percentage of the addresses, 0 to 100."""

    look_up: Callable[[Sequence[str]], Awaitable[Mapping[str, bool]]]
    """Returns whether each of the addresses is blocked. Raises: LegacyBookError."""


def is_answered_by_legacy(written: str, share: int) -> bool:
    """Returns whether an address belongs to the share of the legacy book.

    Depends on the address and the share only. A larger share contains all addresses of a smaller share.
    """
    address = normalize(written)
    return address is not None and crc32(address.text.encode()) % 100 < share
