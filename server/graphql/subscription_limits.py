"""Limits how many executions each event needs because of one viewer's subscriptions (docs/limits.md)."""

from collections import Counter
from collections.abc import Hashable, Iterator
from contextlib import contextmanager

import prometheus_client

from server.graphql.subscription_start import SharedSubscription, ViewerSubscription
from storage.errors import RateLimited

MAX_SHARED = 20
"""Maximum number of different subscriptions of a viewer to one stream. Those with the same operation and variables
count once."""

MAX_OWN = 100
"""Maximum number of a viewer's subscriptions to events that only the viewer gets, each of which has its own executions,
and to streams that are open to everybody."""

OWN = "subscriptions to your own events and to lists"

REFUSALS = prometheus_client.Counter(
    "noroshi_subscription_refusals", "Subscriptions refused because the viewer has too many different ones."
)


class SubscriptionLimits:
    """Counts the open subscriptions of each viewer in this process."""

    def __init__(self) -> None:
        self._open: dict[Hashable, Counter[Hashable]] = {}

    @contextmanager
    def open(self, subscription: SharedSubscription | ViewerSubscription) -> Iterator[None]:
        """Counts the subscription while the block runs. Raises: RateLimited."""
        group, key, limit, description = _classify(subscription)
        # Not needed any more. The executor that it refers to can be freed during the block.
        del subscription
        counts = self._open.setdefault(group, Counter())
        if key not in counts and len(counts) >= limit:
            REFUSALS.inc()
            raise RateLimited(f"You have {limit} {description}, which is the maximum. End one of them first.", 1000)
        counts[key] += 1
        try:
            yield
        finally:
            self._close(group, key)

    def _close(self, group: Hashable, key: Hashable) -> None:
        counts = self._open[group]
        counts[key] -= 1
        if not counts[key]:
            del counts[key]
        if not counts:
            del self._open[group]


def _classify(subscription: SharedSubscription | ViewerSubscription) -> tuple[Hashable, Hashable, int, str]:
    """Returns the group, the key, the maximum number of keys in the group, and a description for errors.

    Equal subscriptions of a group have the same key.
    """
    viewer = subscription.source.viewer.organization_id, subscription.source.viewer.id
    if isinstance(subscription, ViewerSubscription):
        return viewer, object(), MAX_OWN, OWN
    if subscription.source.is_open:
        return viewer, subscription.key, MAX_OWN, OWN
    group = viewer, subscription.source.stream
    return group, subscription.key, MAX_SHARED, "different subscriptions to one stream"
