"""Public pages of accounts at social networks, on which a person can look for a post."""

from storage.publishing.networks import Network
from storage.publishing.records import ConnectedAccount


def profile_url(account: ConnectedAccount) -> str | None:
    """Returns the address of the account's public page; None if the network has none, or its handle is not known."""
    if account.handle is None:
        return None
    name = account.handle.removeprefix("@")
    match account.network:
        case Network.MASTODON:
            # The handle names the server, too: @harbour@mastodon.example.
            return None if account.base_url is None else f"{account.base_url.rstrip('/')}/@{name.partition('@')[0]}"
        case Network.X:
            return f"https://x.com/{name}"
        case Network.INSTAGRAM:
            return f"https://www.instagram.com/{name}/"
        case Network.BLUESKY:
            return f"https://bsky.app/profile/{name}"
        case _:
            return None
