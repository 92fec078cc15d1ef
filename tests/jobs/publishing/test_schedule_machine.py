"""Random sequences of edits, cancels, sweeps, crashes, faults, refused tokens and passing time, against a model.

No post is published twice or before it is due, and no cancelled post is published.
"""

import asyncio
import math
from collections import Counter
from collections.abc import Coroutine
from dataclasses import dataclass, replace
from datetime import timedelta
from ipaddress import ip_network
from typing import Any, ClassVar, TypeVar

import pytest
from arq.connections import ArqRedis
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import Bundle, RuleBasedStateMachine, rule
from hypothesis.stateful import run_state_machine_as_test as run_machine
from redis.asyncio import ConnectionPool

from jobs.providers.egress import Egress
from jobs.publishing.publisher import PostPublisher
from storage.errors import Conflict
from storage.mongo import Driver
from storage.publishing.editing import ScheduledPostEdit
from storage.publishing.networks import Network
from storage.publishing.records import Publication, PublicationState, Target
from storage.publishing.transitions import OPEN_STATES
from storage.redis.queue import JobQueue, serialize
from storage.stores import Stores, open_stores
from tests.databases import CREDENTIAL_KEYS
from tests.jobs.publishing.runs import SECRETS, quick_networks
from tests.storage.publishing.scenario import IMAGE, PublishingScenario, account_target, create_publishing_scenario
from tests.twins.instagram import InstagramTwin
from tests.twins.twin import NetworkFault, NetworkTwin, running_twin
from tests.twins.webhook import WebhookTwin
from tests.twins.x import XTwin

Result = TypeVar("Result")

TARGETS = ["topic", "home", "hook", "x", "instagram"]
FAULTS = st.sampled_from(
    [NetworkFault.FAIL_BEFORE, NetworkFault.FAIL_AFTER, NetworkFault.CUT_AFTER, NetworkFault.LATE, NetworkFault.BUSY]
)
DUE_S = -0.5
"""A post is due if the model's `due_in_s` is less than this."""


@dataclass(frozen=True)
class StoresOnLoop:
    """Stores, and the event loop that they run on."""

    runner: asyncio.Runner
    stores: Stores


@dataclass
class PostModel:
    """The model of a post. Its text is unique, so that ledgers identify it."""

    post_id: str
    text: str
    due_in_s: float
    is_cancelled: bool = False


@dataclass
class ClaimedPublication:
    """A publication that a slow worker has claimed. `due_in_s` is the due moment at the time of the claim."""

    publication: Publication
    due_in_s: float


class ScheduleMachine(RuleBasedStateMachine):
    """Runs rules against real stores and twins. Time passes by moving stored times back."""

    process: ClassVar[StoresOnLoop]
    posts = Bundle("posts")

    def __init__(self) -> None:
        super().__init__()
        self.number = 0
        self.models: dict[int, PostModel] = {}
        self.claimed_publications: list[ClaimedPublication] = []
        self.run(self.set_up())

    def run(self, work: Coroutine[Any, Any, Result]) -> Result:
        return self.process.runner.run(work)

    async def set_up(self) -> None:
        stores = self.process.stores
        await stores.mongo["publications"].delete_many({})
        self.scenario: PublishingScenario = await create_publishing_scenario(stores)
        self.egress = Egress((ip_network("127.0.0.0/8"),))
        self.publisher = PostPublisher(stores, quick_networks(stores, self.egress))
        instagram_twin = InstagramTwin()
        instagram_twin.quota = 1000
        self.twins: dict[str, NetworkTwin] = {"hook": WebhookTwin(), "x": XTwin(), "instagram": instagram_twin}
        self.running_twins = [running_twin(twin) for twin in self.twins.values()]
        for each in self.running_twins:
            await each.__aenter__()
        hook = await self.scenario.connect_account(
            Network.WEBHOOK, SECRETS[Network.WEBHOOK], f"{self.twins['hook'].url}/hook"
        )
        x = self.x = await self.scenario.connect_account(Network.X, "token", self.twins["x"].url)
        instagram = await self.scenario.connect_account(
            Network.INSTAGRAM, SECRETS[Network.INSTAGRAM], instagram_twin.url
        )
        self.targets: dict[str, Target] = {
            "topic": self.scenario.topic,
            "home": self.scenario.home,
            "hook": account_target(hook),
            "x": account_target(x),
            "instagram": account_target(instagram),
        }

    @rule(target=posts, target_name=st.sampled_from(TARGETS), due_in_s=st.sampled_from([-1.0, 3.0, 20.0, 120.0]))
    def create(self, target_name: str, due_in_s: float) -> int:
        self.number += 1
        text = f"post {self.number}"
        media = [IMAGE] if target_name == "instagram" else []
        post = self.run(self.scenario.schedule(self.targets[target_name], in_s=due_in_s, text=text, media=media))
        self.models[self.number] = PostModel(post.id, text, due_in_s)
        return self.number

    @rule(number=posts, due_in_s=st.sampled_from([None, 3.0, 60.0]))
    def edit(self, number: int, due_in_s: float | None) -> None:
        model = self.models[number]
        text = f"{model.text}'"
        self.run(self._edit(model, text, due_in_s))

    async def _edit(self, model: PostModel, text: str, due_in_s: float | None) -> None:
        due_at = None if due_in_s is None else await self.scenario.now() + timedelta(seconds=due_in_s)
        edit = ScheduledPostEdit(text=text, due_at=due_at)
        try:
            await self.scenario.stores.scheduled_posts.update(self.scenario.organization_id, model.post_id, edit)
        except Conflict:
            return
        model.text = text
        model.due_in_s = model.due_in_s if due_in_s is None else due_in_s

    @rule(number=posts)
    def cancel(self, number: int) -> None:
        model = self.models[number]
        try:
            self.run(self.scenario.stores.scheduled_posts.cancel(self.scenario.organization_id, model.post_id))
        except Conflict:
            return
        model.is_cancelled = True

    @rule(seconds=st.sampled_from([2.0, 6.0, 16.0, 60.0]))
    def pass_time(self, seconds: float) -> None:
        self.run(self.scenario.pass_time(seconds))
        for model in self.models.values():
            model.due_in_s -= seconds
        for each in self.claimed_publications:
            each.due_in_s -= seconds

    @rule()
    def claim(self) -> None:
        """Lets a slow worker claim the due publications. The worker continues in `publish_claimed`."""
        claimed = self.run(self.scenario.stores.claims.claim(100))
        self.claimed_publications += [ClaimedPublication(each, self.due_in_s(each)) for each in claimed]

    @rule(times=st.integers(1, 3))
    def publish_claimed(self, times: int) -> None:
        """Lets the slow worker continue `times` times. It may have lost its claims by then, for example to an edit."""
        claimed, self.claimed_publications = self.claimed_publications, []
        due = [each.publication for each in claimed for _ in range(times) if each.due_in_s < DUE_S]
        self.run(_gather(self.publish(each) for each in due))
        self.run(self._check_due_moments())

    async def publish(self, publication: Publication) -> None:
        """Publishes as the publisher does once the publication is due."""
        post = await self.scenario.stores.scheduled_posts.get(
            publication.organization_id, publication.scheduled_post_id
        )
        await self.publisher.publish(publication, post)

    def is_due(self, publication: Publication) -> bool:
        """Returns whether the publication is due. The publisher would wait in real time until it is."""
        return self.due_in_s(publication) < DUE_S

    def due_in_s(self, publication: Publication) -> float:
        """Returns when the publication is due, by the model; infinite for a publication of another organization."""
        models = (each for each in self.models.values() if each.post_id == publication.scheduled_post_id)
        return next((each.due_in_s for each in models), math.inf)

    @rule(steps=st.integers(1, 30))
    def crash(self, steps: int) -> None:
        """Lets a worker claim the due publications, and die while it publishes them."""
        for publication in self.run(self.scenario.stores.claims.claim(100)):
            if self.is_due(publication):
                self.run(self._crash(publication, steps))
        self.run(self._check_due_moments())

    async def _crash(self, publication: Publication, steps: int) -> None:
        stores = self.scenario.stores
        # An abandoned coroutine can hold the lock of its connection pool for ever, so the dying worker has its own.
        pool = ConnectionPool(**stores.redis.connection_pool.connection_kwargs)
        queue = JobQueue(ArqRedis(pool, job_serializer=serialize), stores.keys)
        publisher = PostPublisher(replace(stores, queue=queue), quick_networks(stores, self.egress))
        post = await stores.scheduled_posts.get(publication.organization_id, publication.scheduled_post_id)
        await _abandon(publisher.publish(publication, post), steps)
        await pool.disconnect()

    @rule(count=st.integers(1, 4))
    def sweep(self, count: int) -> None:
        self.run(self._sweep(count))

    async def _sweep(self, count: int) -> None:
        claims = [self.scenario.stores.claims.claim(100) for _ in range(count)]
        publications = [each for claimed in await asyncio.gather(*claims) for each in claimed]
        await _gather(self.publish(each) for each in publications if self.is_due(each))
        await self._check_due_moments()

    @rule(name=st.sampled_from(["hook", "x", "instagram"]), fault=FAULTS)
    def fail(self, name: str, fault: NetworkFault) -> None:
        """Makes the next call to the twin fail."""
        self.twins[name].faults.append(fault)

    @rule()
    def revoke(self) -> None:
        """Lets X refuse the stored token."""
        self.twins["x"].token = "new"

    @rule(is_refused=st.booleans())
    def replace_token(self, is_refused: bool) -> None:
        """Replaces the stored token by one that X accepts, or by another one."""
        self.run(self._replace_token("another" if is_refused else self.twins["x"].token))

    async def _replace_token(self, token: str) -> None:
        await self.scenario.replace_credentials(self.x, token)
        await self.scenario.stores.scheduled_posts.resume_account(self.x)

    def teardown(self) -> None:
        self.run(self._finish_all())

    async def _finish_all(self) -> None:
        for twin in self.twins.values():
            twin.faults.clear()
        await self._replace_token(self.twins["x"].token)
        # After many reconciliations of a publication, the pause before the next is half an hour.
        for seconds in [61] * 12 + [1801] * 3:
            if not await self._count_waiting():
                break
            await self.scenario.pass_time(seconds)
            await self.publisher.sweep()
            await self.publisher.wait_until_idle()
        for twin in self.twins.values():
            await twin.act_late()
        await self._check()
        await self.publisher.close()
        await self.egress.aclose()
        for each in self.running_twins:
            await each.__aexit__(None, None, None)

    async def _count_waiting(self) -> int:
        """Returns how many publications workers will look at again."""
        query = {"org": self.scenario.organization_id, "wake_at": {"$exists": True}}
        return await self.scenario.stores.mongo["publications"].count_documents(query)

    async def _published_texts(self) -> Counter[str]:
        """Returns the texts of all published posts, with the number of times each was published."""
        published_texts = Counter(post.text for twin in self.twins.values() for post in twin.ledger)
        published_texts.update(message["text"] for message in await self.scenario.messages())
        query = {"_id.o": self.scenario.organization_id}
        published_texts.update([post["text"] async for post in self.scenario.stores.mongo["posts"].find(query)])
        return published_texts

    async def _check_due_moments(self) -> None:
        published_texts = await self._published_texts()
        early = [each for each in self.models.values() if published_texts[each.text] and each.due_in_s >= 0]
        assert early == [], "A post was published before it was due."

    async def _check(self) -> None:
        published_texts = await self._published_texts()
        assert [text for text, count in published_texts.items() if count > 1] == [], "A post was published twice."
        for model in self.models.values():
            (publication,) = await self.scenario.stores.scheduled_posts.publications_of(model.post_id)
            is_x = publication.target == self.targets["x"]
            if model.is_cancelled:
                assert published_texts[model.text] == 0, "A cancelled post was published."
            if publication.state is PublicationState.PUBLISHED:
                assert published_texts[model.text] == 1, f"{model} is PUBLISHED, but was not published once."
            if publication.state in OPEN_STATES:
                is_unknown = publication.state is PublicationState.UNKNOWN
                assert (is_x, is_unknown) == (True, True), f"{publication} is still open."
            if publication.state is PublicationState.FAILED:
                assert published_texts[model.text] == 0, f"{publication} is FAILED, but was published."


async def _gather(work: Any) -> None:
    for outcome in await asyncio.gather(*work, return_exceptions=True):
        if isinstance(outcome, BaseException):
            raise outcome


async def _abandon(work: Coroutine[Any, Any, None], steps: int) -> None:
    """Runs the coroutine up to suspension number `steps`, and abandons it without running its clean-up."""
    value: Any = None
    error: BaseException | None = None
    for _ in range(steps):
        try:
            awaited = work.send(value) if error is None else work.throw(error)
        except StopIteration:
            return
        value, error = None, None
        if awaited is None:
            await asyncio.sleep(0)
            continue
        awaited._asyncio_future_blocking = False
        try:
            await asyncio.wait([awaited])
        except asyncio.CancelledError as cancelled:
            # The coroutine runs in this task, so its time limit cancels this task.
            error = cancelled
    ABANDONED.append(work)


ABANDONED: list[Coroutine[Any, Any, None]] = []
"""Keeps abandoned coroutines alive, because collecting one runs its clean-up."""


@pytest.fixture
def process(mongodb_uri: str, redis_url: str, shared_database: str, mongo_driver: Driver) -> Any:
    with asyncio.Runner() as runner:
        stores_context = open_stores(
            mongodb_uri, redis_url, shared_database, mongo_driver, credential_keys=CREDENTIAL_KEYS
        )
        yield StoresOnLoop(runner, runner.run(stores_context.__aenter__()))
        runner.run(stores_context.__aexit__(None, None, None))


def run_schedule_machine(process: StoresOnLoop, examples: int, steps: int) -> None:
    class Machine(ScheduleMachine):
        pass

    Machine.process = process
    health_checks = list(HealthCheck)
    run_machine(
        Machine,
        settings=settings(
            max_examples=examples,
            stateful_step_count=steps,
            deadline=None,
            suppress_health_check=health_checks,
            database=None,
        ),
    )


def test_random_operations_publish_once_and_respect_cancels(process: StoresOnLoop) -> None:
    run_schedule_machine(process, examples=12, steps=20)


@pytest.mark.soak
def test_many_random_operations_publish_once(process: StoresOnLoop) -> None:
    run_schedule_machine(process, examples=300, steps=40)
