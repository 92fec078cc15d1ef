"""Calls: jobs against the telephony twin, with numbers on the do-not-call list and windows that are closed."""

import asyncio
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

from tests.jobs.providers.telephony.twin import TelephonyTwin
from tests.lab.history import FINAL, select
from tests.lab.session import RETRY_S, Laboratory, WorkloadSession

AREA = "calls"
CONCURRENT, PER_SECOND = 6, 5
NUMBERS_PER_JOB = 8
FINISH_DEADLINE_S = 600.0
LIMITS = "mutation ($input: CallLimitsInput!) { setCallLimits(input: $input) { concurrentCalls } }"
LAUNCH = "mutation ($input: LaunchCallJobInput!) { launchCallJob(input: $input) { id } }"
ADD_DO_NOT_CALL = "mutation ($numbers: [String!]!) { addDoNotCall(phoneNumbers: $numbers) }"
JOB = "query ($id: ID!) { callJob(id: $id) { state tasks(limit: 100) { phoneNumber state outcome attempts } } }"
JOBS = '{ callJobs(latest: "now", limit: 999) { items { id name } } }'
ACTIVE = "{ callLimits { activeCalls } }"
FINAL_STATES = {"COMPLETED", "CANCELLED", "REJECTED"}


@dataclass
class CallsWorkload:
    """An operator who launches jobs. Each number belongs to one job."""

    laboratory: Laboratory
    telephony: TelephonyTwin

    async def prepare(self) -> None:
        """Sets the limits."""
        admin = self.laboratory.session("admin", AREA, "ADMIN")
        limits = {"concurrentCalls": CONCURRENT, "callsPerSecond": PER_SECOND}
        await admin.run_until_ok("setCallLimits", limits, LIMITS, input=limits)

    async def run(self) -> None:
        """Launches jobs until the run ends."""
        session, number = self._session(), 0
        while not self.laboratory.ended.is_set():
            number += 1
            await self._launch(session, number)
            await self.laboratory.pause(session.rng.uniform(5, 15))

    async def finish(self) -> None:
        """Waits until every job with an open window is completed, and records the twin's calls."""
        session, begin = self._session(), self.laboratory.history.now()
        jobs = await self._open_jobs(session)
        waiting = dict(jobs)
        while waiting and self.laboratory.history.now() < begin + FINISH_DEADLINE_S:
            for id_ in list(waiting):
                job = await session.run_until_ok("callJob", {"job": waiting[id_]}, JOB, _job, id=id_)
                if job["state"] in FINAL_STATES:
                    del waiting[id_]
            await asyncio.sleep(RETRY_S)
        final = session.as_final()
        for id_, name in jobs.items():
            await final.run_until_ok("callJob", {"job": name}, JOB, _job, id=id_)
        await final.run_until_ok("activeCalls", {}, ACTIVE, lambda limits: limits["activeCalls"])
        calls = [[call.number, call.begun_at, call.ended_at] for call in self.telephony.calls.values()]
        self.laboratory.history.record(FINAL, AREA, "calls", {}, self.laboratory.history.now(), "ok", calls)

    def _session(self) -> WorkloadSession:
        return self.laboratory.session("operator", AREA, "OPERATOR")

    async def _open_jobs(self, session: WorkloadSession) -> dict[str, str]:
        """Returns the names of jobs with an open window by id, also of those whose launch was not acknowledged."""
        launches = select(self.laboratory.history.operations, "launch", outcome=None)
        names = {operation["arguments"]["job"] for operation in launches if operation["arguments"]["open"]}
        jobs = await session.run_until_ok("callJobs", {}, JOBS, lambda page: page["items"])
        return {job["id"]: job["name"] for job in jobs if job["name"] in names}

    async def _launch(self, session: WorkloadSession, job: int) -> None:
        numbers = [f"+8190{10_000_000 + 100 * job + n}" for n in range(NUMBERS_PER_JOB)]
        blocked = numbers[:2] if job % 2 else []
        if blocked:
            await session.run_until_ok("addDoNotCall", {"numbers": blocked}, ADD_DO_NOT_CALL, numbers=blocked)
        is_open = job % 4 != 3
        arguments = {"job": f"job-{job}", "numbers": numbers, "blocked": blocked, "open": is_open}
        launch = {
            "name": f"job-{job}",
            "scenario": "Hello",
            "csv": "phone_number\n" + "\n".join(numbers),
            "idempotencyKey": f"job-{job}",
            "window": None if is_open else _closed_window(),
        }
        for _ in range(session.rng.choice((1, 5))):
            outcome, _ = await session.run("launch", arguments, LAUNCH, lambda launched: launched["id"], input=launch)
            if outcome == "ok":
                return
            await self.laboratory.pause(session.rng.uniform(0.1, 1.0))


def _closed_window() -> dict[str, Any]:
    """Returns a window that opens in six hours for one hour."""
    opens = datetime.now(UTC) + timedelta(hours=6)
    return {
        "start": f"{opens:%H:%M}",
        "end": f"{opens + timedelta(hours=1):%H:%M}",
        "timeZone": "UTC",
    }


def _job(job: dict[str, Any]) -> dict[str, Any]:
    tasks = [[task["phoneNumber"], task["state"], task["outcome"], task["attempts"]] for task in job["tasks"]]
    return {"state": job["state"], "tasks": tasks}
