"""The stamps that ship with the product."""

from storage.chat.stamps import STAMPS, Stamp


async def stamps() -> list[Stamp]:
    """All stamps."""
    return list(STAMPS)
