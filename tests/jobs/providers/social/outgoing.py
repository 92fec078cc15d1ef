"""Posts, media and accounts that provider tests publish."""

from datetime import UTC, datetime

from jobs.providers.social.network import OutgoingPost, PostAuthor, PublishingAccount
from storage.publishing.networks import MediaKind
from storage.publishing.records import ScheduledMedia
from tests.twins.twin import NetworkTwin

DUE_AT = datetime(2026, 11, 21, 12, 0, 0, 500_000, tzinfo=UTC)


def outgoing(text: str = "hello", *media: ScheduledMedia) -> OutgoingPost:
    """Returns a post by Ann."""
    return OutgoingPost("pub1", text, media, DUE_AT, PostAuthor("ann", "ann", "Ann"))


def medium(url: str, kind: MediaKind = MediaKind.IMAGE, alt: str = "A hill") -> ScheduledMedia:
    """Returns a medium. By default it is an image."""
    return ScheduledMedia(url, alt, kind)


def account(twin: NetworkTwin, secret: str | None = None) -> PublishingAccount:
    """Returns an account at the twin."""
    return PublishingAccount("acc1", twin.url, secret or twin.token)
