"""Limits of targets and of maxLatenessS."""

import pytest

from resolvers.publishing.arguments import MAX_LATENESS_S, check_targets, checked_max_lateness_s
from storage.errors import BadUserInput
from storage.publishing.networks import Network
from storage.publishing.records import AccountTarget, HomeFeedTarget, Target, TopicTarget

TOPIC, HOME, X = TopicTarget("t", "c"), HomeFeedTarget("ann"), AccountTarget("a", Network.X)


@pytest.mark.parametrize(
    ("targets", "text", "target_name"),
    [
        ([TOPIC], "x" * 4001, "a topic"),
        ([TOPIC, X], "x" * 281, "X"),
        ([HOME], "x" * 4001, "the home feed"),
        ([], "x", "toHomeFeed"),
    ],
)
def test_refusal_names_target(targets: list[Target], text: str, target_name: str) -> None:
    with pytest.raises(BadUserInput, match=target_name):
        check_targets(targets, text, [])
    if targets:
        check_targets(targets, "hello", [])


def test_max_lateness_out_of_range_is_refused() -> None:
    assert (checked_max_lateness_s(1), checked_max_lateness_s(MAX_LATENESS_S)) == (1, MAX_LATENESS_S)
    for seconds in (0, -1, MAX_LATENESS_S + 1):
        with pytest.raises(BadUserInput):
            checked_max_lateness_s(seconds)
