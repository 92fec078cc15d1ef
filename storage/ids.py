"""Ids of our own making: opaque, URL-safe, sortable by creation to the millisecond."""

import secrets
import time

_ALPHABET = "0123456789abcdefghjkmnpqrstvwxyz"


def new_id() -> str:
    """26 characters: 48 bits of milliseconds, 80 random bits (a ULID in lower case)."""
    value = (time.time_ns() // 1_000_000) << 80 | secrets.randbits(80)
    return "".join(_ALPHABET[value >> shift & 31] for shift in range(125, -1, -5))
