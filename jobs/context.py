"""The dependencies that jobs and sweepers receive."""

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple, Protocol

from jobs.pictures.decoder import PictureDecoder
from jobs.providers.egress import Egress
from jobs.providers.event_webhooks import WebhookSender
from jobs.providers.mailer import Mailer
from jobs.providers.social.oauth.authorization import CredentialRenewer
from jobs.providers.social.verification import AccountVerifier
from jobs.providers.telephony import Telephony
from jobs.providers.web_push import WebPush
from storage.identity.records import User
from storage.publishing.networks import Network
from storage.stores import Stores
from storage.streams.hub import HydratedEvent
from storage.streams.log import Stream

MAX_FILE_CHECKS = 2
"""Number of files that a worker checks at a time."""

MAX_IMAGE_FETCHES = 2
"""Number of images of link previews that a worker holds in memory at a time."""


class DuePostPublisher(Protocol):
    """The publisher of due posts in a worker process, implemented by `jobs.publishing.publisher.PostPublisher`.

    A protocol, because the modules of `jobs.publishing` import this module and not the other way round.
    """

    async def sweep(self) -> int:
        """Claims publications that are due within 5 s, and starts to publish them. Returns how many it claimed."""
        ...

    async def upload_media(self) -> int:
        """Starts uploads of media for publications that are due in the next minutes. Returns how many it started."""
        ...

    async def close(self) -> None:
        """Releases claimed publications that have not started, and waits at most 10 s for those that have."""
        ...


class EventPayloads(Protocol):
    """Writes events as the account of a webhook sees them, implemented by `server.webhook_payloads.WebhookPayloads`.

    A protocol, because the server executes the GraphQL schema, and jobs import neither.
    """

    async def render(
        self, account: User, stream: Stream, epoch: str, events: Sequence[HydratedEvent], job_ids: Sequence[str]
    ) -> list[bytes | None]:
        """Returns the body of each event's message. None: the account may not see the event, or it is of another job.

        `job_ids` are the jobs whose events are written; empty means all jobs.
        """
        ...


class WebhookTools(NamedTuple):
    """Sends events to webhooks and writes their bodies."""

    sender: WebhookSender
    payloads: EventPayloads


@dataclass(frozen=True, slots=True)
class JobContext:
    """One worker process's stores, address guard, providers and settings."""

    stores: Stores
    egress: Egress
    telephony: Telephony | None
    """None: no provider is chosen, and this worker neither starts nor polls calls."""

    publisher: DuePostPublisher
    mailer: Mailer
    bounce_alarm_percent: float
    """The daily bounce rate in percent above which an alarm is raised."""

    bounce_report_to: str | None
    """The mail address or webhook URL that receives bounce alarms and summaries. None: nobody receives them."""

    pictures: PictureDecoder = field(default_factory=PictureDecoder)
    """The decoder of pictures, which decodes one at a time."""

    file_checks: asyncio.Semaphore = field(default_factory=lambda: asyncio.Semaphore(MAX_FILE_CHECKS))
    """Limits the checks of files at a time, each of which may hold a whole picture in memory."""

    image_fetches: asyncio.Semaphore = field(default_factory=lambda: asyncio.Semaphore(MAX_IMAGE_FETCHES))
    """Limits the images of link previews that are fetched and decoded at a time."""

    web_push: WebPush | None = None
    """Sends pushes to browsers. None: no VAPID key is set, and nothing is pushed."""

    push_delay_s: float = 60.0
    """How long a notification waits until it is pushed to people who have not read it."""

    digest_delay_s: float = 900.0
    """How long a notification waits unread until it is mailed in a digest."""

    webhooks: WebhookTools | None = None
    """The sender of webhooks. None: they are left to other workers."""

    webhook_retry_s: float = 259_200.0
    """How long failed requests of a webhook are repeated before it is disabled."""

    credential_renewers: Mapping[Network, CredentialRenewer] = field(default_factory=dict)
    """Renews credentials, by network. Those of other networks are left to other workers."""

    account_verifier: AccountVerifier | None = None
    """Asks networks whose credentials are. None: verifications are left to other workers."""

    base_url: str = "http://127.0.0.1:8000"
    """The address at which people reach the server, without a slash at the end; for links in mails."""
