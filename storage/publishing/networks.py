"""The limits and the behaviour of each network, as data, and the check of a post against the limits. Pure; no I/O.

Sources: the networks' documentation as of 2026-11; docs/publishing.md names the pages.
"""

import re
import unicodedata
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from enum import Enum

DAY_S = 86_400.0


class Network(Enum):
    """The network of an account. WEBHOOK is a URL of the organization, SANDBOX a built-in network for trials."""

    MASTODON = "MASTODON"
    INSTAGRAM = "INSTAGRAM"
    BLUESKY = "BLUESKY"
    X = "X"
    WEBHOOK = "WEBHOOK"
    SANDBOX = "SANDBOX"


class MediaKind(Enum):
    """Kind of a medium."""

    IMAGE = "IMAGE"
    VIDEO = "VIDEO"
    REEL = "REEL"


class ReconciliationMethod(Enum):
    """How the outcome of a call is found after a lost response."""

    REPEAT = "repeat the call with the same key"
    QUERY = "query the network"
    MANUAL = "a person looks at the account"


IMAGE, VIDEO, REEL = MediaKind.IMAGE, MediaKind.VIDEO, MediaKind.REEL
_URL = re.compile(r"https?://\S+", re.IGNORECASE)
_REMOTE_MENTION = re.compile(r"(@\w+)@[\w.-]+\w", re.ASCII)


def graphemes(text: str) -> Iterator[str]:
    """Yields the grapheme clusters of a text. Handles marks, joiners and flags, which is exact enough for a limit."""
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
    """Returns whether the character continues the grapheme cluster."""
    if unicodedata.category(character) in ("Mn", "Me", "Mc") or character == "\u200d" or cluster[-1] == "\u200d":
        return True
    if "\U0001f3fb" <= character <= "\U0001f3ff" or "\U000e0020" <= character <= "\U000e007f":
        return True
    is_flag = "\U0001f1e6" <= character <= "\U0001f1ff" and "\U0001f1e6" <= cluster <= "\U0001f1ff"
    return (is_flag and len(cluster) == 1) or cluster + character == "\r\n"


def _characters(text: str) -> int:
    return len(text)


def _graphemes(text: str) -> int:
    return sum(1 for _ in graphemes(text))


def _mastodon_length(text: str) -> int:
    """Returns the length as Mastodon counts it: a link counts 23, and a remote mention counts without its server."""
    return _graphemes(_REMOTE_MENTION.sub(r"\1", _URL.sub("x" * 23, text)))


def _x_length(text: str) -> int:
    """Returns the length as X counts it: a link counts 23; emoji, and characters from U+1100 on, count 2.

    Of the characters from U+1100 on, spaces and common punctuation count 1.
    """
    return sum(_x_weight(each) for each in graphemes(_URL.sub("x" * 23, text)))


def _x_weight(cluster: str) -> int:
    code = ord(cluster[0])
    is_single_weight = code <= 4351 or 8192 <= code <= 8205 or 8208 <= code <= 8223 or 8242 <= code <= 8247
    return len(cluster) if is_single_weight and "\ufe0f" not in cluster else 2


@dataclass(frozen=True, slots=True)
class PostLimits:
    """Limits of a target. A post's media must fit one of the `combinations`, which have a maximum count for each kind.

    `max_media` limits the number of all media.
    """

    max_text_length: int
    combinations: Sequence[dict[MediaKind, int]]
    max_media: int = 0
    needs_media: bool = False
    count_units: Callable[[str], int] = _characters
    unit: str = "characters"
    max_text_bytes: int | None = None


@dataclass(frozen=True, slots=True)
class NetworkBehaviour:
    """The behaviour of a network: reconciliation, retention of keys, uploads, address."""

    reconciliation_method: ReconciliationMethod
    retention_s: float | None = None
    """For how many seconds after the first call the outcome can be found; None: without a limit.

    REPEAT: the network remembers the key. QUERY: it answers queries about the call. MANUAL: None, and not used.
    """

    upload_lead_s: float | None = None
    """How many seconds before the due moment the upload of media begins; None: nothing is uploaded before the post."""

    video_lead_s: float | None = None
    """Replaces `upload_lead_s` for posts with a video or a reel, if processing takes longer; None: `upload_lead_s`."""

    own_address: str | None = None
    """The network's address; None: each account has its own."""

    query_delay_s: float = 0.0
    """How many seconds after a lost response the outcome can first be queried."""

    renewal_lead_s: float = 0.0
    """How many seconds before the end of an account's credentials a worker renews them."""

    first_renewal_s: float | None = None
    """After how many seconds a worker renews credentials whose end is not known; None: they cannot be renewed."""

    verifies_credentials: bool = False
    """Whether the network can be asked whose credentials are."""


BEHAVIOURS = {
    Network.MASTODON: NetworkBehaviour(
        ReconciliationMethod.REPEAT, retention_s=3600, upload_lead_s=600, verifies_credentials=True
    ),
    Network.INSTAGRAM: NetworkBehaviour(
        ReconciliationMethod.QUERY,
        # Containers expire after 24 h. Queries continue for 2 h, since the status EXPIRED shows that the post was not
        # published.
        retention_s=26 * 3600,
        upload_lead_s=600,
        own_address="https://graph.instagram.com",
        query_delay_s=5,
        renewal_lead_s=10 * DAY_S,
        # Tokens can be renewed when they are 24 h old.
        first_renewal_s=25 * 3600,
        verifies_credentials=True,
    ),
    # Unreferenced blobs are kept for minutes only.
    Network.BLUESKY: NetworkBehaviour(
        ReconciliationMethod.REPEAT,
        upload_lead_s=60,
        video_lead_s=240,
        own_address="https://bsky.social",
        verifies_credentials=True,
    ),
    Network.X: NetworkBehaviour(
        ReconciliationMethod.MANUAL,
        upload_lead_s=600,
        own_address="https://api.x.com",
        renewal_lead_s=900,
        verifies_credentials=True,
    ),
    Network.WEBHOOK: NetworkBehaviour(ReconciliationMethod.REPEAT, retention_s=DAY_S),
    Network.SANDBOX: NetworkBehaviour(ReconciliationMethod.REPEAT, retention_s=DAY_S),
}

POST_LIMITS = {
    Network.MASTODON: PostLimits(500, [{IMAGE: 4}, {VIDEO: 1}], 4, count_units=_mastodon_length),
    Network.INSTAGRAM: PostLimits(2200, [{IMAGE: 1}, {REEL: 1}, {IMAGE: 10, VIDEO: 10}], 10, needs_media=True),
    Network.BLUESKY: PostLimits(
        300, [{IMAGE: 4}, {VIDEO: 1}], 4, count_units=_graphemes, unit="graphemes", max_text_bytes=3000
    ),
    Network.X: PostLimits(280, [{IMAGE: 4}, {VIDEO: 1}], 4, count_units=_x_length, unit="weighted characters"),
    Network.WEBHOOK: PostLimits(10_000, [{IMAGE: 10, VIDEO: 10, REEL: 10}], 10),
    Network.SANDBOX: PostLimits(10_000, [{IMAGE: 10, VIDEO: 10, REEL: 10}], 10),
}
TOPIC_LIMITS = PostLimits(4000, [])
HOME_FEED_LIMITS = PostLimits(4000, [{IMAGE: 10}], 10)


def limit_violation(limits: PostLimits, text: str, media: Sequence[MediaKind]) -> tuple[str, str] | None:
    """Returns the field that exceeds a limit and what was expected; None if the post is within all limits."""
    length = limits.count_units(text)
    if length > limits.max_text_length:
        return "text", f"at most {limits.max_text_length} {limits.unit}, not {length}"
    if limits.max_text_bytes is not None and len(text.encode()) > limits.max_text_bytes:
        return "text", f"at most {limits.max_text_bytes} bytes"
    if not media:
        return ("media", "at least one image or reel") if limits.needs_media else None
    if len(media) > limits.max_media or not any(_allows(each, media) for each in limits.combinations):
        return "media", _expected_media(limits)
    return None


def _allows(combination: dict[MediaKind, int], media: Sequence[MediaKind]) -> bool:
    # A carousel mixes kinds and needs at least two media.
    is_single_in_carousel = len(media) == 1 and {IMAGE, VIDEO} == combination.keys()
    fits = all(count <= combination.get(kind, 0) for kind, count in Counter(media).items())
    return fits and not is_single_in_carousel


def _expected_media(limits: PostLimits) -> str:
    choices = ", or ".join(_choice(each) for each in limits.combinations)
    return f"at most {limits.max_media} media: {choices}" if choices else "no media: only text is accepted"


def _choice(combination: dict[MediaKind, int]) -> str:
    if len(combination) > 1:
        return f"{' and '.join(kind.value for kind in combination)} together"
    return ", ".join(f"up to {count} {kind.value}" for kind, count in combination.items())
