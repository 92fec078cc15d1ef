"""Twins of the external services. They lose a few of their answers after they have acted.

They run in the process of the laboratory and listen at its address in the network of the hosts.
"""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass

from tests.jobs.providers.telephony.twin import TelephonyTwin, telephony_twin
from tests.lab.hosts import CLIENT_ADDRESS
from tests.twins.mastodon import MastodonTwin
from tests.twins.twin import NetworkTwin, running_twin
from tests.twins.webhook import WebhookTwin

LOST_SHARE = 0.02
MAX_CONCURRENT_CALLS = 6


@dataclass(frozen=True)
class OutsideServices:
    """The running twins. No fault cuts them off."""

    telephony: TelephonyTwin
    mastodon: NetworkTwin
    webhook: NetworkTwin


@asynccontextmanager
async def outside_services() -> AsyncIterator[OutsideServices]:
    """Runs the twins in this process."""
    loss = {"lose_answers": LOST_SHARE, "lose_reports": LOST_SHARE}
    async with (
        telephony_twin(MAX_CONCURRENT_CALLS, host=CLIENT_ADDRESS, talk_s=(0.3, 1.5), **loss) as telephony,
        running_twin(MastodonTwin(LOST_SHARE, seed=1), host=CLIENT_ADDRESS) as mastodon,
        running_twin(WebhookTwin(LOST_SHARE, seed=2), host=CLIENT_ADDRESS) as webhook,
    ):
        yield OutsideServices(telephony, mastodon, webhook)
