"""Web addresses from clients. Only the form is checked here; the egress guard checks where an address leads."""

from urllib.parse import urlsplit

from storage.errors import BadUserInput

MAX_CHARS = 2048


def web_address(field: str, url: str) -> str:
    """Returns the address if it is an http or https one. Raises: BadUserInput."""
    try:
        parts = urlsplit(url)
        fits = parts.scheme in ("http", "https") and bool(parts.hostname) and not parts.username and parts.port != 0
    except ValueError:
        fits = False
    if not fits or len(url) > MAX_CHARS or not url.isprintable() or " " in url:
        raise BadUserInput(
            field, f"an http or https address of at most {MAX_CHARS} characters, without user name or spaces"
        )
    return url
