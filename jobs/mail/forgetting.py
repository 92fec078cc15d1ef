"""Removes readable addresses of organizations whose policy no longer keeps them."""

from jobs.context import JobContext


async def forget_addresses(jobs: JobContext) -> int:
    """Removes their encrypted texts. Returns how many."""
    return await jobs.stores.address_book.readable.forget()
