"""A program whose forked children send what is due, once. Tests kill a child while it sends.

python -m tests.jobs.notifications.killed_worker MONGODB_URI REDIS_URL DATABASE SMTP_URL VAPID_KEY CERTIFICATE

For each line on stdin, a child sends digests and pushes. The program prints the child's process id, and then "killed"
or the exit status. Importing the product takes longer than a child's work, so the parent imports it once.
"""

import asyncio
import os
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
    async with open_stores(mongodb_uri, redis_url, database, address_keys=ADDRESS_KEYS, is_prepared=True) as stores:
        jobs = job_context(stores, egress, mailer=mailer, web_push=web_push)
        await asyncio.gather(send_digests(jobs), send_pushes(jobs))
    await egress.aclose()


def run_child(arguments: list[str]) -> str:
    """Forks a child, prints its process id, and waits for it. Returns "killed" or the exit status."""
    pid = os.fork()
    if pid == 0:
        asyncio.run(send(arguments[:3], *arguments[3:]))
        os._exit(0)
    print(pid, flush=True)
    _, status = os.waitpid(pid, 0)
    return "killed" if os.WIFSIGNALED(status) else str(os.WEXITSTATUS(status))


if __name__ == "__main__":
    for _ in sys.stdin:
        print(run_child(sys.argv[1:]), flush=True)
