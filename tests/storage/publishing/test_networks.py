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

RANGE_LIMITS = {"\U0001f3fa": 2, "\U0001f3fb": 1, "\U0001f3ff": 1, "\U0001f400": 2}
"""How many graphemes a thumb and the character make. Tested: the first and last skin tone, and their neighbours."""

TAG_LIMITS = {"\U000e001f": 2, "\U000e0020": 1, "\U000e007f": 1, "\U000e0080": 2}
FLAG_LIMITS = {"🇦🇿": 1, "🇿🇦": 1, "🇦x": 2, "x🇦": 2, "\U0001f1e5🇦": 2, "🇦\U0001f1e5": 2}
FLAG_LIMITS |= {"🇦\U0001f200": 2, "\U0001f200🇦": 2}
GRAPHEME_COUNTS |= {f"👍{character}": count for character, count in (RANGE_LIMITS | TAG_LIMITS).items()} | FLAG_LIMITS


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


SINGLE_WEIGHTS = (range(4352), range(8192, 8206), range(8208, 8224), range(8242, 8248))
"""Ranges of the codes of characters that X counts once."""


@pytest.mark.parametrize("codes", SINGLE_WEIGHTS)
def test_x_counts_characters_of_some_ranges_once(codes: range) -> None:
    length = POST_LIMITS[Network.X].count_units
    assert (length(chr(codes[0])), length(chr(codes[-1])), length(chr(codes[-1] + 1))) == (1, 1, 2)
    assert codes[0] == 0 or length(chr(codes[0] - 1)) == 2
    assert length("#\ufe0f\u20e3") == 2


@pytest.mark.parametrize(
    ("network", "expected"),
    [
        (Network.MASTODON, "at most 500 characters, not 501"),
        (Network.BLUESKY, "at most 300 graphemes, not 301"),
        (Network.X, "at most 280 weighted characters, not 281"),
    ],
)
def test_text_over_limit_is_refused_with_its_length(network: Network, expected: str) -> None:
    limits = POST_LIMITS[network]
    assert limit_violation(limits, "x" * (limits.max_text_length + 1), []) == ("text", expected)


def test_text_bytes_are_limited_on_bluesky() -> None:
    longest = FAMILY * 166 + "x" * 12
    assert (len(longest.encode()), limit_violation(POST_LIMITS[Network.BLUESKY], longest, [])) == (3000, None)
    assert limit_violation(POST_LIMITS[Network.BLUESKY], longest + "x", []) == ("text", "at most 3000 bytes")
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
        (Network.WEBHOOK, [IMG, VID] * 6, False),
        (Network.SANDBOX, [REEL], True),
    ],
)
def test_media_combinations_are_limited_per_network(
    network: Network, media: Sequence[MediaKind], is_allowed: bool
) -> None:
    violation = limit_violation(POST_LIMITS[network], "hello", media)
    assert violation is None if is_allowed else violation is not None and violation[0] == "media"


def test_media_are_refused_with_allowed_combinations() -> None:
    expected = "at most 10 media: up to 1 IMAGE, or up to 1 REEL, or IMAGE and VIDEO together"
    assert limit_violation(POST_LIMITS[Network.INSTAGRAM], "hello", [REEL] * 2) == ("media", expected)


def test_topics_take_text_and_home_feeds_take_images() -> None:
    assert limit_violation(TOPIC_LIMITS, "x" * 4000, []) is None
    assert limit_violation(TOPIC_LIMITS, "hello", [IMG]) == ("media", "no media: only text is accepted")
    assert limit_violation(HOME_FEED_LIMITS, "hello", [IMG] * 10) is None
    assert limit_violation(HOME_FEED_LIMITS, "hello", [VID]) is not None


def test_every_network_has_limits_and_behaviour() -> None:
    assert POST_LIMITS.keys() == BEHAVIOURS.keys() == set(Network)


@pytest.mark.parametrize(
    ("network", "retention_h", "upload_lead_s", "video_lead_s", "query_delay_s", "own_address"),
    [
        (Network.MASTODON, 1, 600, None, 0, None),
        (Network.INSTAGRAM, 26, 600, None, 5, "https://graph.instagram.com"),
        (Network.BLUESKY, None, 60, 240, 0, "https://bsky.social"),
        (Network.X, None, 600, None, 0, "https://api.x.com"),
        (Network.WEBHOOK, 24, None, None, 0, None),
        (Network.SANDBOX, 24, None, None, 0, None),
    ],
)
def test_networks_have_their_documented_times(
    network: Network,
    retention_h: int | None,
    upload_lead_s: float | None,
    video_lead_s: float | None,
    query_delay_s: float,
    own_address: str | None,
) -> None:
    found, retention_s = BEHAVIOURS[network], retention_h and 3600 * retention_h
    assert (found.retention_s, found.upload_lead_s, found.video_lead_s) == (retention_s, upload_lead_s, video_lead_s)
    assert (found.query_delay_s, found.own_address) == (query_delay_s, own_address)
