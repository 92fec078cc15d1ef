"""Limits of each network: text length as the network counts it, and allowed combinations of media."""

from collections.abc import Sequence

import pytest

from storage.publishing.networks import (
    BEHAVIOURS,
    HOME_FEED_LIMITS,
    POST_LIMITS,
    TOPIC_LIMITS,
    MediaKind,
    Network,
    graphemes,
    limit_violation,
)

IMG, VID, REEL = MediaKind.IMAGE, MediaKind.VIDEO, MediaKind.REEL


FAMILY = "👩\u200d👧\u200d👦"
GRAPHEME_COUNTS = {"": 0, "abc": 3, "狼煙": 2, "e\u0301": 1, "\r\n": 1, "☺\ufe0f": 1, FAMILY: 1, "👍🏽": 1, "🇯🇵🇩🇪": 2}


@pytest.mark.parametrize(("text", "count"), GRAPHEME_COUNTS.items())
def test_graphemes_are_user_perceived_characters(text: str, count: int) -> None:
    assert len(list(graphemes(text))) == count
    assert "".join(graphemes(text)) == text


@pytest.mark.parametrize(
    ("network", "longest"),
    [
        (Network.MASTODON, "x" * 500),
        (Network.MASTODON, "x" * 476 + " https://example.org/" + "y" * 300),
        (Network.MASTODON, "x" * 495 + " @ann@" + "s" * 50 + ".example"),
        (Network.BLUESKY, "e\u0301" * 300),
        (Network.BLUESKY, "狼" * 300),
        (Network.X, "x" * 280),
        (Network.X, "狼" * 140),
        (Network.X, FAMILY * 140),
        (Network.X, "x" * 256 + " https://example.org/" + "y" * 300),
        (Network.WEBHOOK, "x" * 10_000),
        (Network.SANDBOX, "x" * 10_000),
    ],
)
def test_text_length_is_limited_per_network(network: Network, longest: str) -> None:
    assert limit_violation(POST_LIMITS[network], longest, []) is None
    violation = limit_violation(POST_LIMITS[network], "x" + longest, [])
    assert violation is not None
    assert violation[0] == "text"


def test_text_bytes_are_limited_on_bluesky() -> None:
    assert limit_violation(POST_LIMITS[Network.BLUESKY], FAMILY * 170, []) == ("text", "at most 3000 bytes")


@pytest.mark.parametrize(
    ("network", "media", "is_allowed"),
    [
        (Network.MASTODON, [], True),
        (Network.MASTODON, [IMG] * 4, True),
        (Network.MASTODON, [IMG] * 5, False),
        (Network.MASTODON, [VID], True),
        (Network.MASTODON, [VID, VID], False),
        (Network.MASTODON, [IMG, VID], False),
        (Network.MASTODON, [REEL], False),
        (Network.INSTAGRAM, [], False),
        (Network.INSTAGRAM, [IMG], True),
        (Network.INSTAGRAM, [REEL], True),
        (Network.INSTAGRAM, [REEL, REEL], False),
        (Network.INSTAGRAM, [VID], False),
        (Network.INSTAGRAM, [IMG, VID] * 5, True),
        (Network.INSTAGRAM, [IMG] * 11, False),
        (Network.INSTAGRAM, [IMG, REEL], False),
        (Network.BLUESKY, [IMG] * 4, True),
        (Network.BLUESKY, [VID], True),
        (Network.BLUESKY, [VID, VID], False),
        (Network.BLUESKY, [IMG, VID], False),
        (Network.X, [VID], True),
        (Network.X, [IMG, VID], False),
        (Network.WEBHOOK, [IMG, VID, REEL], True),
        (Network.WEBHOOK, [VID], True),
        (Network.WEBHOOK, [IMG] * 11, False),
        (Network.SANDBOX, [REEL], True),
    ],
)
def test_media_combinations_are_limited_per_network(
    network: Network, media: Sequence[MediaKind], is_allowed: bool
) -> None:
    violation = limit_violation(POST_LIMITS[network], "hello", media)
    assert violation is None if is_allowed else violation is not None and violation[0] == "media"


def test_topics_take_text_and_home_feeds_take_images() -> None:
    assert limit_violation(TOPIC_LIMITS, "x" * 4000, []) is None
    assert limit_violation(TOPIC_LIMITS, "hello", [IMG]) == ("media", "no media: only text is accepted")
    assert limit_violation(HOME_FEED_LIMITS, "hello", [IMG] * 10) is None
    assert limit_violation(HOME_FEED_LIMITS, "hello", [VID]) is not None


def test_every_network_has_limits_and_behaviour() -> None:
    assert POST_LIMITS.keys() == BEHAVIOURS.keys() == set(Network)
