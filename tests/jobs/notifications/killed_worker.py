"""A worker process that sends what is due, once, after it has read a line. Tests kill it while it sends.

python -m tests.jobs.notifications.killed_worker MONGODB_URI REDIS_URL DATABASE SMTP_URL VAPID_KEY CERTIFICATE
"""

import asyncio
import ssl
import sys
from ipaddress import ip_network
from pathlib import Path

from jobs.notifications.digests import send_digests
from jobs.notifications.push import send_pushes
from jobs.providers.egress import Egress
from jobs.providers.mailer import Mailer
from jobs.providers.web_push import WebPush
from storage.secrets.vapid_keys import vapid_key
from storage.stores import open_stores
from tests.jobs.contexts import job_context
from tests.keys import ADDRESS_KEYS


async def send(servers: list[str], smtp_url: str, key: str, certificate: str) -> None:
    """Sends digests and pushes."""
    egress = Egress((ip_network("127.0.0.0/8"),), ssl_context=ssl.create_default_context(cafile=certificate))
    web_push = WebPush(egress.transport, vapid_key(key), "mailto:operator@example.org")
    mailer = Mailer(smtp_url, "Noroshi <noroshi@example.org>", Path())
    mongodb_uri, redis_url, database = servers
    async with open_stores(mongodb_uri, redis_url, database, address_keys=ADDRESS_KEYS) as stores:
        jobs = job_context(stores, egress, mailer=mailer, web_push=web_push)
        print("ready", flush=True)
        await asyncio.to_thread(sys.stdin.readline)
        await asyncio.gather(send_digests(jobs), send_pushes(jobs))
        print("done", flush=True)
    await egress.aclose()


if __name__ == "__main__":
    asyncio.run(send(sys.argv[1:4], *sys.argv[4:]))
