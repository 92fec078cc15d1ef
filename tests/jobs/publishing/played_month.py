"""A month of a team's publishing, played in seconds: stored times move to the next instant at which work is due."""

import asyncio
from bisect import bisect_right
from collections import Counter
from collections.abc import Awaitable, Callable, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from datetime import UTC, datetime, time, timedelta
from zoneinfo import ZoneInfo

from jobs.context import JobContext
from jobs.publishing.author_mails import send_author_mails
from jobs.publishing.publisher import PostPublisher
from jobs.publishing.renewals import renew_credentials
from jobs.publishing.sweepers import fail_disconnected, publish_due, resume_accounts, upload_media
from jobs.publishing.verifications import verify_credentials
from jobs.publishing.warnings import warn_of_ends
from resolvers.publishing.times import LocalDateTime, local_due_moment
from storage.mongo import Document
from storage.publishing.credentials.lifetimes import UNKNOWN_LIFETIME, CredentialLifetime
from storage.publishing.records import ConnectedAccount, Publication, PublicationState, Target, VerifiedAccount
from tests.storage.publishing.scenario import PublishingScenario, pass_account_time, pass_time
from tests.twins.twin import NetworkTwin, running_twin
from tests.waiting import poll_until_true

DAYS = 30
LATENESS_S = 24 * 3600
SPRING, AUTUMN = ZoneInfo("Europe/Berlin"), ZoneInfo("Australia/Sydney")
"""Clocks go forward in Berlin on the last Sunday of March, and back in Sydney a week later."""

POSTING_TIME = time(9)
MAX_STEPS = 2000
SWEEPS = (
    renew_credentials,
    verify_credentials,
    warn_of_ends,
    resume_accounts,
    fail_disconnected,
    upload_media,
    publish_due,
)

Act = Callable[[], Awaitable[object]]


def first_day(now: datetime) -> datetime:
    """Returns the midnight in UTC with which the next month begins that has both changes of clocks."""
    day = datetime.combine(now.date(), time(12), UTC) + timedelta(days=18)
    while day.astimezone(SPRING).utcoffset() <= (day - timedelta(days=1)).astimezone(SPRING).utcoffset():  # type: ignore[operator]
        day += timedelta(days=1)
    return datetime.combine(day.date(), time(0), UTC) - timedelta(days=17)


def posting_moments(begin: datetime) -> list[tuple[datetime, ZoneInfo]]:
    """Returns each moment of the month at which it is nine o'clock in one of the zones."""
    days = [begin.date() + timedelta(days=number) for number in range(1, DAYS)]
    return [
        (local_due_moment(LocalDateTime(datetime.combine(day, POSTING_TIME)), zone.key), zone)
        for day in days
        for zone in (SPRING, AUTUMN)
    ]


@dataclass
class PlayedPublication:
    """The outcome of a publication. Times are those of the played month."""

    publication: Publication
    due_at: datetime
    published_at: datetime | None
    was_held: bool
    copies: int
    """How many times the network shows it."""


@dataclass
class PlayedMonth:
    """The month, with the workers that publish in it. `begin` is its first instant."""

    scenario: PublishingScenario
    workers: Sequence[JobContext]
    publishers: Sequence[PostPublisher]
    begin: datetime
    due_by_post: dict[str, datetime] = field(default_factory=dict)
    mails: int = 0
    _acts: list[tuple[datetime, Act]] = field(default_factory=list)
    _passes: list[tuple[datetime, float]] = field(default_factory=list)
    """By the database's clock: each instant at which time passed, and the seconds that had passed by then."""

    def at(self, days: float, act: Act) -> None:
        """Plans an act `days` days after the beginning."""
        self._acts.append((self.begin + timedelta(days=days), act))

    def played(self, real: datetime) -> datetime:
        """Returns the played time of an instant by the database's clock."""
        number = bisect_right(self._passes, real, key=lambda each: each[0])
        return real + timedelta(seconds=self._passes[number - 1][1] if number else 0.0)

    async def schedule(self, due_at: datetime, zone: ZoneInfo, *targets: Target, **more: object) -> None:
        """Schedules a post with a text of its own."""
        text = f"Post {len(self.due_by_post)}"
        new = await self.scenario.new_post(
            *targets, due_at=due_at, time_zone=zone.key, text=text, max_lateness_s=LATENESS_S, **more
        )
        post = await self.scenario.stores.scheduled_posts.schedule(new, None)
        self.due_by_post[post.id] = due_at

    async def replace(
        self, account: ConnectedAccount, secret: str, lifetime: CredentialLifetime = UNKNOWN_LIFETIME
    ) -> None:
        """Connects an account again, as a person does after a message about it."""
        stores = self.scenario.stores
        stored = await stores.accounts.get(account.organization_id, account.id)
        owner = VerifiedAccount(stored.network_id, stored.handle)
        replaced = await stores.accounts.replace_credentials(stored, secret, owner, None, lifetime=lifetime)
        await stores.scheduled_posts.resume_account(replaced)

    async def play(self) -> int:
        """Plays the month. Returns the number of steps."""
        await self._pass((self.begin - await self.scenario.now()).total_seconds(), with_accounts=False)
        self._acts.sort(key=lambda each: each[0])
        for step in range(MAX_STEPS):
            await self._work()
            if not await self._move_on():
                return step
        raise AssertionError(f"work is left after {MAX_STEPS} steps")

    async def _work(self) -> None:
        """Runs all workers at the same time, as their sweepers do."""
        for sweep in SWEEPS:
            await asyncio.gather(*map(sweep, self.workers))
        for publisher in self.publishers:
            await publisher.uploads.wait_until_idle()
            await publisher.wait_until_idle()
        self.mails += sum(await asyncio.gather(*map(send_author_mails, self.workers)))

    async def _move_on(self) -> bool:
        """Lets the time pass until there is work, and acts if an act comes first. Returns False at the end."""
        now, due = await self.scenario.now(), await self._next_due()
        planned = self._acts[0][0] - timedelta(seconds=self._passed_s) if self._acts else None
        if planned is not None and (due is None or planned <= max(due, now)):
            await self._pass((planned - now).total_seconds())
            await self._acts.pop(0)[1]()
            return True
        if due is None or self.played(due) > self.begin + timedelta(days=DAYS + 2):
            return False
        await self._pass((due - now).total_seconds())
        return True

    @property
    def _passed_s(self) -> float:
        return self._passes[-1][1]

    async def _pass(self, seconds: float, *, with_accounts: bool = True) -> None:
        if seconds <= 0:
            return
        stores, organization_id = self.scenario.stores, self.scenario.organization_id
        await pass_time(stores, organization_id, seconds)
        if with_accounts:
            await pass_account_time(stores, organization_id, seconds)
        passed_s = self._passed_s if self._passes else 0.0
        self._passes.append((await self.scenario.now(), passed_s + seconds))

    async def _next_due(self) -> datetime | None:
        """Returns when a worker has something to do next, or None."""
        wake_at = {"$cond": [{"$eq": ["$state", PublicationState.SCHEDULED.value]}, "$due", "$wake_at"]}
        # $min ignores missing values. Finished publications keep `due`, so they are left out.
        of_publications = await self._earliest("publications", {"wake_at": {"$exists": True}}, wake_at, "$upload_at")
        of_accounts = await self._earliest("accounts", {}, "$renew_at", "$verify_at", "$warn_at")
        return min((each for each in (of_publications, of_accounts) if each is not None), default=None)

    async def _earliest(self, collection: str, query: Document, *times: object) -> datetime | None:
        pipeline: list[Document] = [
            {"$match": {"org": self.scenario.organization_id, **query}},
            {"$group": {"_id": None, "at": {"$min": {"$min": list(times)}}}},
        ]
        rows = await self.scenario.stores.mongo.aggregate(collection, pipeline)
        return rows[0]["at"] if rows else None

    async def outcomes(self, copies: Counter[str]) -> list[PlayedPublication]:
        """Returns what became of each publication. `copies`: how often each target shows each post, by `copy_key`."""
        outcomes = []
        for post_id, due_at in self.due_by_post.items():
            post = await self.scenario.stores.scheduled_posts.get(self.scenario.organization_id, post_id)
            for each in await self.scenario.publications(post):
                at = None if each.published_at is None else self.played(each.published_at)
                was_held = any(attempt.outcome == "NEEDS_ATTENTION" for attempt in each.attempts)
                key = copy_key(each.target, post.text)
                outcomes.append(PlayedPublication(each, due_at, at, was_held, copies[key]))
        return outcomes

    async def notification_counts(self) -> Counter[tuple[str, str, str]]:
        """Returns how many notifications there are in the end, by person, kind, and publication or account."""
        assert await poll_until_true(self._is_relayed)
        found = await self.scenario.stores.mongo.find("notifications", {"_id.o": self.scenario.organization_id})
        return Counter((each["_id"]["u"], each["kind"], each["publication"] or each["account"]) for each in found)

    async def _is_relayed(self) -> bool:
        of_organization = {"stream": {"$regex": f":{self.scenario.organization_id}"}}
        return await self.scenario.stores.mongo["outbox"].count_documents(of_organization) == 0


def copy_key(target: Target, text: str) -> str:
    """Returns the key of a post at one target."""
    return f"{target}: {text}"


@dataclass
class StoppableTwin:
    """A network that goes down and comes back at the same address."""

    twin: NetworkTwin
    _running: AsyncExitStack = field(default_factory=AsyncExitStack)

    async def start(self) -> None:
        """Starts the server, at its earlier port if it had one."""
        port = int(self.twin.url.rpartition(":")[2]) if self.twin.url else 0
        await self._running.enter_async_context(running_twin(self.twin, port))

    async def stop(self) -> None:
        """Stops the server. Connections are refused from then on."""
        await self._running.aclose()
