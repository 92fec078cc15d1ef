"""The scenario of call tests: an organization, the telephony twin, and the product's client of the twin."""

import asyncio
import secrets
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

from jobs.context import JobContext
from jobs.providers.telephony import Telephony
from jobs.providers.telephony.webhook import WebhookTelephony
from storage.calls.job_changes import NewCallJob
from storage.calls.records import CallJob, CallOutcome, CallReportKind
from storage.stores import Stores
from tests.jobs.contexts import job_context
from tests.jobs.providers.telephony.twin import SECRET, TelephonyTwin, telephony_twin
from tests.storage.calls.in_memory_jobs import new_job


@dataclass
class CallCentre:
    """An organization with limits, whose calls go to the telephony twin."""

    stores: Stores
    twin: TelephonyTwin
    telephony: Telephony
    org: str

    @property
    def jobs(self) -> JobContext:
        return job_context(self.stores, telephony=self.telephony)

    async def launch(self, numbers: int, first: int = 0, **fields: Any) -> CallJob:
        """Launches a job with `numbers` consecutive phone numbers, from number `first` on."""
        rows = (f"+8190{10_000_000 + n},n{n}\n" for n in range(first, first + numbers))
        csv = "phone_number,name\n" + "".join(rows)
        new: NewCallJob = new_job(organization_id=self.org, **fields)
        return await self.stores.call_jobs.launch(new, csv, None)

    async def limit(self, concurrent: int, per_second: float) -> None:
        """Sets the limits. The twin allows the old number of calls until the surplus calls have ended."""
        self.twin.max_allowed = max(self.twin.max_allowed, concurrent)
        await self.stores.call_jobs.set_limits(self.org, concurrent, per_second)
        while len(await self.slots()) > concurrent:
            await asyncio.sleep(0.02)
        self.twin.max_allowed = concurrent

    async def job(self, job: CallJob) -> CallJob:
        """Returns the job as it is now."""
        return await self.stores.call_jobs.get(self.org, job.id)

    async def states(self, job: CallJob) -> dict[str, str]:
        """Returns the state of each number."""
        tasks = await self.stores.call_jobs.tasks(await self.job(job), None, 0, 999)
        return {task.phone_number: task.state.value for task in tasks}

    async def slots(self) -> list[str]:
        limits = await self.stores.mongo["call_limits"].find_one({"_id": self.org})
        return [] if limits is None else list(limits["slots"])

    async def report(self, call_id: str, sequence: int, kind: str, outcome: str | None) -> None:
        parsed = None if outcome is None else CallOutcome(outcome)
        await self.stores.calls.report(call_id, sequence, CallReportKind(kind), parsed)

    async def make_calls_overdue(self) -> None:
        """Makes every open call due for polling."""
        open_calls = {"org": self.org, "poll_at": {"$exists": True}}
        await self.stores.mongo["call_tasks"].update_many(open_calls, [{"$set": {"poll_at": "$$NOW"}}])


@asynccontextmanager
async def call_centre(stores: Stores, max_active_calls: int, **twin_options: Any) -> AsyncIterator[CallCentre]:
    """Yields a call centre of a new organization. The twin accepts at most `max_active_calls` at once."""
    async with telephony_twin(max_active_calls, **twin_options) as service:
        telephony = WebhookTelephony(service.url, SECRET, "http://127.0.0.1:1/callbacks/telephony")
        centre = CallCentre(stores, service, telephony, f"org {secrets.token_hex(3)}")
        service.report = service.report or centre.report
        try:
            yield centre
        finally:
            await telephony.aclose()
