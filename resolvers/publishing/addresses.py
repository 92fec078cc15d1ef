"""Addresses that clients give. Only their shape is checked here; where they lead, the address guard looks at."""

from urllib.parse import urlsplit

from storage.errors import BadUserInput

MAX_CHARS = 2048


def web_address(field: str, url: str) -> str:
    """An http or https address. Raises: BadUserInput."""
    try:
        parts = urlsplit(url)
        fits = parts.scheme in ("http", "https") and bool(parts.hostname) and not parts.username and parts.port != 0
    except ValueError:
        fits = False
    if not fits or len(url) > MAX_CHARS or not url.isprintable() or " " in url:
        raise BadUserInput(field, f"an http or https address of at most {MAX_CHARS} characters")
    return url
