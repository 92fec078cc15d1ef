"""The catalogue of stamps."""

from storage.chat.stamps import STAMPS, Stamp


async def stamps() -> list[Stamp]:
    """Returns all stamps."""
    return list(STAMPS)
