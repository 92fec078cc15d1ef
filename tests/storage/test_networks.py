"""What each network takes: lengths as it counts them, and which media may stand together."""

from collections.abc import Sequence

import pytest

from storage.networks import (
    ALLOWANCES,
    BEHAVIOURS,
    HOME_ALLOWANCE,
    TOPIC_ALLOWANCE,
    MediaKind,
    Network,
    graphemes,
    misfit,
)

I, V, R = MediaKind.IMAGE, MediaKind.VIDEO, MediaKind.REEL


@pytest.mark.parametrize(
    ("text", "count"),
    [
        ("", 0),
        ("abc", 3),
        ("狼煙", 2),
        ("e\u0301", 1),
        ("👩‍👧‍👦", 1),
        ("👍🏽", 1),
        ("🇯🇵🇩🇪", 2),
        ("\r\n", 1),
        ("☺\ufe0f", 1),
    ],
)
def test_characters_are_counted_as_people_see_them(text: str, count: int) -> None:
    assert len(list(graphemes(text))) == count
    assert "".join(graphemes(text)) == text


@pytest.mark.parametrize(
    ("network", "fits"),
    [
        (Network.MASTODON, "x" * 500),
        (Network.MASTODON, "x" * 476 + " https://example.org/" + "y" * 300),
        (Network.MASTODON, "x" * 495 + " @ann@" + "s" * 50 + ".example"),
        (Network.BLUESKY, "👩‍👧‍👦" * 120),
        (Network.BLUESKY, "狼" * 300),
        (Network.X, "x" * 280),
        (Network.X, "狼" * 140),
        (Network.X, "👩‍👧‍👦" * 140),
        (Network.X, "x" * 256 + " https://example.org/" + "y" * 300),
        (Network.WEBHOOK, "x" * 10_000),
        (Network.SANDBOX, "x" * 10_000),
    ],
)
def test_a_text_is_as_long_as_the_network_says(network: Network, fits: str) -> None:
    assert misfit(ALLOWANCES[network], fits, []) is None
    more = misfit(ALLOWANCES[network], fits + "x", []) or misfit(ALLOWANCES[network], fits + "x" * 3000, [])
    assert more is not None
    assert more[0] == "text"


def test_bytes_count_where_the_network_counts_them() -> None:
    family = "👩‍👧‍👦"
    assert misfit(ALLOWANCES[Network.BLUESKY], family * 170, []) == ("text", "at most 3000 bytes")


@pytest.mark.parametrize(
    ("network", "media", "fits"),
    [
        (Network.MASTODON, [], True),
        (Network.MASTODON, [I] * 4, True),
        (Network.MASTODON, [I] * 5, False),
        (Network.MASTODON, [V], True),
        (Network.MASTODON, [V, V], False),
        (Network.MASTODON, [I, V], False),
        (Network.MASTODON, [R], False),
        (Network.INSTAGRAM, [], False),
        (Network.INSTAGRAM, [I], True),
        (Network.INSTAGRAM, [R], True),
        (Network.INSTAGRAM, [R, R], False),
        (Network.INSTAGRAM, [V], False),
        (Network.INSTAGRAM, [I, V] * 5, True),
        (Network.INSTAGRAM, [I] * 11, False),
        (Network.INSTAGRAM, [I, R], False),
        (Network.BLUESKY, [I] * 4, True),
        (Network.BLUESKY, [V], False),
        (Network.X, [V], True),
        (Network.X, [I, V], False),
        (Network.WEBHOOK, [I, V, R], True),
        (Network.WEBHOOK, [V], True),
        (Network.WEBHOOK, [I] * 11, False),
        (Network.SANDBOX, [R], True),
    ],
)
def test_media_stand_together_as_the_network_says(network: Network, media: Sequence[MediaKind], fits: bool) -> None:
    wrong = misfit(ALLOWANCES[network], "hello", media)
    assert wrong is None if fits else wrong is not None and wrong[0] == "media"


def test_inside_topics_take_text_and_feeds_take_images() -> None:
    assert misfit(TOPIC_ALLOWANCE, "x" * 4000, []) is None
    assert misfit(TOPIC_ALLOWANCE, "hello", [I]) == ("media", "none: it takes text only")
    assert misfit(HOME_ALLOWANCE, "hello", [I] * 10) is None
    assert misfit(HOME_ALLOWANCE, "hello", [V]) is not None


def test_every_network_is_described() -> None:
    assert ALLOWANCES.keys() == BEHAVIOURS.keys() == set(Network)
