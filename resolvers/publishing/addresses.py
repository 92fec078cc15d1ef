"""Web addresses from clients. Only their form is checked here; the address guard checks the host."""

from urllib.parse import urlsplit

from storage.errors import BadUserInput

MAX_CHARS = 2048


def checked_web_address(field: str, url: str) -> str:
    """Returns the address if it is a valid http or https address. Raises: BadUserInput."""
    try:
        parts = urlsplit(url)
        is_valid = parts.scheme in ("http", "https") and bool(parts.hostname) and not parts.username and parts.port != 0
    except ValueError:
        is_valid = False
    if not is_valid or len(url) > MAX_CHARS or not url.isprintable() or " " in url:
        raise BadUserInput(
            field, f"an http or https address of at most {MAX_CHARS} characters, without user name or spaces"
        )
    return url
