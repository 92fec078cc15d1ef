"""What each network allows and how it answers, as data, and the check of a post against it. Pure; no I/O.

Sources: the networks' documentation as of 2026-11 (docs/publishing.md names the pages).
"""

import re
import unicodedata
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from enum import Enum

DAY_S = 86_400.0


class Network(Enum):
    """Where an account is. WEBHOOK is a URL of the user's own, SANDBOX the twin inside the product."""

    MASTODON = "MASTODON"
    INSTAGRAM = "INSTAGRAM"
    BLUESKY = "BLUESKY"
    X = "X"
    WEBHOOK = "WEBHOOK"
    SANDBOX = "SANDBOX"


class MediaKind(Enum):
    """What a medium is."""

    IMAGE = "IMAGE"
    VIDEO = "VIDEO"
    REEL = "REEL"


class Certainty(Enum):
    """How it can be found out what became of a call without an answer."""

    IDEMPOTENT = "the same key is sent again"
    QUERYABLE = "the network is asked"
    OPAQUE = "a person looks"


IMAGE, VIDEO, REEL = MediaKind.IMAGE, MediaKind.VIDEO, MediaKind.REEL
_URL = re.compile(r"https?://\S+", re.IGNORECASE)
_REMOTE_MENTION = re.compile(r"(@\w+)@[\w.-]+\w", re.ASCII)


def graphemes(text: str) -> Iterator[str]:
    """User-perceived characters, closely enough for a limit: marks, joiners, modifiers and flags are kept together."""
    cluster = ""
    for character in text:
        if cluster and _extends(cluster, character):
            cluster += character
        else:
            if cluster:
                yield cluster
            cluster = character
    if cluster:
        yield cluster


def _extends(cluster: str, character: str) -> bool:
    if unicodedata.category(character) in ("Mn", "Me", "Mc") or character == "\u200d" or cluster[-1] == "\u200d":
        return True
    if "\U0001f3fb" <= character <= "\U0001f3ff" or "\U000e0020" <= character <= "\U000e007f":
        return True
    flag = "\U0001f1e6" <= character <= "\U0001f1ff" and "\U0001f1e6" <= cluster <= "\U0001f1ff"
    return (flag and len(cluster) == 1) or cluster + character == "\r\n"


def _characters(text: str) -> int:
    return len(text)


def _graphemes(text: str) -> int:
    return sum(1 for _ in graphemes(text))


def _mastodon_length(text: str) -> int:
    """A link counts 23, a remote mention without its server."""
    return _graphemes(_REMOTE_MENTION.sub(r"\1", _URL.sub("x" * 23, text)))


def _x_length(text: str) -> int:
    """A link counts 23, and two what is neither Latin nor punctuation."""
    return sum(_x_weight(each) for each in graphemes(_URL.sub("x" * 23, text)))


def _x_weight(cluster: str) -> int:
    code = ord(cluster[0])
    light = code <= 4351 or 8192 <= code <= 8205 or 8208 <= code <= 8223 or 8242 <= code <= 8247
    return len(cluster) if light and "\ufe0f" not in cluster else 2


@dataclass(frozen=True, slots=True)
class PostLimits:
    """What a target takes. `combinations` are media that may stand together: kinds, and how many of each at most."""

    text_length: int
    combinations: Sequence[dict[MediaKind, int]]
    most_media: int = 0
    media_needed: bool = False
    length: Callable[[str], int] = _characters
    unit: str = "characters"
    text_bytes: int | None = None


@dataclass(frozen=True, slots=True)
class Behaviour:
    """How a network is dealt with.

    `retention_s`: how long it remembers a key, or can be asked; None for ever. `upload_lead_s`: how long before the due
    time media are uploaded; None where they go along with the post; `video_lead_s` where videos, which are processed,
    take longer. `own_address` is where it is unless an account says otherwise.
    """

    certainty: Certainty
    retention_s: float | None = None
    upload_lead_s: float | None = None
    video_lead_s: float | None = None
    own_address: str | None = None
    settle_s: float = 0.0
    """How long after a lost answer it may be asked."""


BEHAVIOURS = {
    Network.MASTODON: Behaviour(Certainty.IDEMPOTENT, retention_s=3600, upload_lead_s=600),
    Network.INSTAGRAM: Behaviour(
        Certainty.QUERYABLE,
        # Containers expire after a day, and say so when they are asked.
        retention_s=26 * 3600,
        upload_lead_s=600,
        own_address="https://graph.instagram.com",
        settle_s=5,
    ),
    # Unreferenced blobs are kept for minutes only.
    Network.BLUESKY: Behaviour(
        Certainty.IDEMPOTENT, upload_lead_s=60, video_lead_s=240, own_address="https://bsky.social"
    ),
    Network.X: Behaviour(Certainty.OPAQUE, upload_lead_s=600, own_address="https://api.x.com"),
    Network.WEBHOOK: Behaviour(Certainty.IDEMPOTENT, retention_s=DAY_S),
    Network.SANDBOX: Behaviour(Certainty.IDEMPOTENT, retention_s=DAY_S),
}

POST_LIMITS = {
    Network.MASTODON: PostLimits(500, [{IMAGE: 4}, {VIDEO: 1}], 4, length=_mastodon_length),
    Network.INSTAGRAM: PostLimits(2200, [{IMAGE: 1}, {REEL: 1}, {IMAGE: 10, VIDEO: 10}], 10, media_needed=True),
    Network.BLUESKY: PostLimits(300, [{IMAGE: 4}, {VIDEO: 1}], 4, length=_graphemes, unit="graphemes", text_bytes=3000),
    Network.X: PostLimits(280, [{IMAGE: 4}, {VIDEO: 1}], 4, length=_x_length, unit="weighted characters"),
    Network.WEBHOOK: PostLimits(10_000, [{IMAGE: 10, VIDEO: 10, REEL: 10}], 10),
    Network.SANDBOX: PostLimits(10_000, [{IMAGE: 10, VIDEO: 10, REEL: 10}], 10),
}
TOPIC_LIMITS = PostLimits(4000, [])
HOME_FEED_LIMITS = PostLimits(4000, [{IMAGE: 10}], 10)


def limit_violation(allowance: PostLimits, text: str, media: Sequence[MediaKind]) -> tuple[str, str] | None:
    """Why the target does not take the post: which field is wrong and what was expected; None when it takes it."""
    length = allowance.length(text)
    if length > allowance.text_length:
        return "text", f"at most {allowance.text_length} {allowance.unit}; these are {length}"
    if allowance.text_bytes is not None and len(text.encode()) > allowance.text_bytes:
        return "text", f"at most {allowance.text_bytes} bytes"
    if not media:
        return ("media", "at least one image or reel") if allowance.media_needed else None
    if len(media) > allowance.most_media or not any(_holds(each, media) for each in allowance.combinations):
        return "media", _expected_media(allowance)
    return None


def _holds(combination: dict[MediaKind, int], media: Sequence[MediaKind]) -> bool:
    # Several kinds stand together in a carousel, which a single medium is not.
    if len(combination) > 1 and len(media) == 1 and {IMAGE, VIDEO} == combination.keys():
        return False
    return all(count <= combination.get(kind, 0) for kind, count in Counter(media).items())


def _expected_media(allowance: PostLimits) -> str:
    choices = [
        " and ".join(f"{count} {kind.value}" for kind, count in combination.items())
        for combination in allowance.combinations
    ]
    return f"at most {allowance.most_media}: {', or '.join(choices)}" if choices else "none: it takes text only"
