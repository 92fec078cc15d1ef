"""Sends digests, pushes and summaries in a process that tests kill."""

import asyncio
import ssl
from collections.abc import Sequence
from ipaddress import ip_network
from pathlib import Path

from jobs.notifications.digests import send_digests
from jobs.notifications.publication_summaries import send_publication_summaries
from jobs.notifications.push import send_pushes
from jobs.providers.egress import Egress
from jobs.providers.mailer import Mailer
from jobs.providers.web_push import WebPush
from storage.secrets.vapid_keys import vapid_key
from storage.stores import open_stores
from tests.jobs.contexts import job_context
from tests.keys import ADDRESS_KEYS


def send(servers: Sequence[str], smtp_url: str, key: str, certificate: str) -> None:
    """Sends the digests, pushes and summaries that are due, once."""
    asyncio.run(_send(servers, smtp_url, key, certificate))


async def _send(servers: Sequence[str], smtp_url: str, key: str, certificate: str) -> None:
    egress = Egress((ip_network("127.0.0.0/8"),), ssl_context=ssl.create_default_context(cafile=certificate))
    web_push = WebPush(egress.transport, vapid_key(key), "mailto:operator@example.org")
    mailer = Mailer(smtp_url, "Noroshi <noroshi@example.org>", Path())
    mongodb_uri, redis_url, database = servers
    async with open_stores(mongodb_uri, redis_url, database, address_keys=ADDRESS_KEYS, is_prepared=True) as stores:
        jobs = job_context(stores, egress, mailer=mailer, web_push=web_push)
        await asyncio.gather(send_digests(jobs), send_pushes(jobs), send_publication_summaries(jobs))
    await egress.aclose()
