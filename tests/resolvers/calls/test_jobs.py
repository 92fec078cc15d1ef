"""Call jobs through the API: lists, launching, reading, pausing, access rights and events."""

import asyncio
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from storage.calls.calls import NextCall, TimedStart
from storage.calls.records import TaskKey
from storage.identity.roles import Role
from storage.stores import Stores
from tests.resolvers.people import Person, SignIn

pytestmark = pytest.mark.anyio

JOB = """fragment job on CallJob {
  id timestamp name scenario state startAt estimatedEndAt rowErrorCount
  window { start end timeZone weekdays }
  progress { total queued active completed failed unknown skipped cancelled outcomes { outcome count } }
  rowErrors { row column message }
  tasks { id jobId row phoneNumber variables { name value } state outcome attempts callId error }
} """
LAUNCH = JOB + "mutation ($input: LaunchCallJobInput!) { done: launchCallJob(input: $input) { ...job } }"
CHECK = """query ($input: LaunchCallJobInput!) { done: checkCallList(input: $input) {
  rows rowErrorCount rowErrors(limit: 2) { row column } estimatedEndAt
} }"""
READ = JOB + "query ($id: ID!) { done: callJob(id: $id) { ...job } }"
PAGE = """query ($states: [CallJobState!], $oldest: Timestamp, $latest: Timestamp, $limit: Int! = 50) {
  done: callJobs(states: $states, oldest: $oldest, latest: $latest, limit: $limit) {
    items { id timestamp state } hasOlder hasNewer oldest newest
  }
}"""
PAUSE = "mutation ($id: ID!) { done: pauseCallJob(id: $id) { state progress { queued cancelled } } }"
LIMITS = (
    "mutation ($input: CallLimitsInput!) { done: setCallLimits(input: $input) { id concurrentCalls callsPerSecond } }"
)
REPORT = "mutation ($input: CallReportInput!) { done: reportCall(input: $input) { state outcome attempts } }"
JOB_EVENTS = """subscription ($job: ID) { jobEvents(jobId: $job) {
  kind: __typename
  ... on CallJobChanged { job { id state } }
  ... on CallTaskChanged { task { phoneNumber state } }
  ... on CallLimitsChanged { limits { concurrentCalls } }
} }"""
CSV = "phone_number,name\n+81 90-1234-5678,Aya\n+819012345679,Bo\n+819012345679,Bo again\n"


@pytest.fixture
async def ann(sign_in: SignIn) -> Person:
    return await sign_in("ann", roles=[Role.ADMIN, Role.SERVICE])


def call_list(csv: str = CSV, **more: Any) -> dict[str, Any]:
    return {"name": "Reminders", "scenario": "Hello", "csv": csv, **more}


async def start_call(stores: Stores, job: dict[str, Any], row: int = 2) -> str:
    number = next(task["phoneNumber"] for task in job["tasks"] if task["row"] == row)
    start = await stores.calls.start("acme", NextCall(TaskKey(job["id"], row), number), 1)
    assert isinstance(start, TimedStart)
    return start.call.id


async def test_launched_list_becomes_job_without_duplicates(ann: Person) -> None:
    job = await ann.do(LAUNCH, input=call_list())
    assert (job["state"], job["rowErrorCount"]) == ("RUNNING", 0)
    assert job["progress"]["total"] == job["progress"]["queued"] == 2
    assert [(task["row"], task["phoneNumber"]) for task in job["tasks"]] == [(2, "+819012345678"), (3, "+819012345679")]
    assert job["tasks"][0]["variables"] == [{"name": "name", "value": "Aya"}]
    assert job["estimatedEndAt"] is not None
    assert await ann.do(READ, id=job["id"]) | {"estimatedEndAt": 0} == job | {"estimatedEndAt": 0}


async def test_list_with_bad_rows_is_rejected_with_all_errors(ann: Person, stores: Stores) -> None:
    job = await ann.do(LAUNCH, input=call_list(CSV + "bad,x\n090-1234-5678,y\n"))
    assert (job["state"], job["rowErrorCount"], job["tasks"], job["progress"]["total"]) == ("REJECTED", 2, [], 0)
    assert [(error["row"], error["column"]) for error in job["rowErrors"]] == [(5, "phone_number"), (6, "phone_number")]
    assert job["estimatedEndAt"] is None
    assert await stores.calls.organizations_with_work() == []
    assert await stores.mongo["call_tasks"].count_documents({}) == 0


@pytest.mark.parametrize(
    "cell", ["+81 90 1234 5678 (mobile)", "+819012345678 Bob", "+81 9O 1234 5678", "+819012345678.00"]
)
async def test_cell_that_is_not_only_a_number_rejects_the_list(ann: Person, stores: Stores, cell: str) -> None:
    job = await ann.do(LAUNCH, input=call_list(f"phone_number;name\n+819012345678;Aya\n{cell};Bo\n"))
    assert (job["state"], [(error["row"], error["column"]) for error in job["rowErrors"]]) == (
        "REJECTED",
        [(3, "phone_number")],
    )
    assert await stores.mongo["call_tasks"].count_documents({}) == 0


async def test_national_numbers_are_called_in_their_region(ann: Person) -> None:
    csv = "phone_number\n090-1234-5678\n+12025550143\n"
    assert (await ann.do(CHECK, input=call_list(csv)))["rowErrorCount"] == 1
    assert (await ann.do(CHECK, input=call_list(csv, defaultRegion="JP")))["rowErrorCount"] == 0
    job = await ann.do(LAUNCH, input=call_list(csv, defaultRegion="JP"))
    assert [task["phoneNumber"] for task in job["tasks"]] == ["+819012345678", "+12025550143"]
    for region in ("jp", "Japan", "", "ZZ", "001"):
        for query in (CHECK, LAUNCH):
            error = await ann.fails(query, input=call_list(csv, defaultRegion=region))
            assert (error["code"], error["field"]) == ("BAD_USER_INPUT", "defaultRegion")


async def test_job_with_start_is_scheduled_and_estimated(ann: Person) -> None:
    start_at = "2031-03-03T08:00:00.000Z"
    window = {"start": "09:00", "end": "17:00", "timeZone": "UTC", "weekdays": ["MON", "TUE"]}
    job = await ann.do(LAUNCH, input=call_list(startAt=start_at, window=window, expectedCallS=30))
    assert (job["state"], job["startAt"], job["window"]) == ("SCHEDULED", start_at, window)
    assert job["estimatedEndAt"] == "2031-03-03T09:01:00.000Z"


async def test_checked_list_is_not_stored(ann: Person, stores: Stores) -> None:
    assert (await ann.do(CHECK, input=call_list()))["rows"] == 3
    check = await ann.do(CHECK, input=call_list("phone_number\na\nb\nc\n"))
    assert (check["rows"], check["rowErrorCount"], len(check["rowErrors"]), check["estimatedEndAt"]) == (3, 3, 2, None)
    for csv in ("phone_number\n", "\n\nphone_number\n", "\nname\n1\n"):
        assert (await ann.do(CHECK, input=call_list(csv)))["rows"] == 0
    assert await stores.mongo["call_jobs"].count_documents({}) == 0
    assert await stores.mongo["call_drafts"].count_documents({}) == 0


async def test_launch_with_same_key_returns_same_job(ann: Person, stores: Stores) -> None:
    first = await ann.do(LAUNCH, input=call_list(idempotencyKey="k"))
    second = await ann.do(LAUNCH, input=call_list(idempotencyKey="k"))
    assert second["id"] == first["id"]
    assert await stores.mongo["call_tasks"].count_documents({}) == 2
    assert await ann.code(LAUNCH, input=call_list(idempotencyKey="k", maxAttempts=2)) == "CONFLICT"


async def test_job_in_far_future_has_no_estimated_end(ann: Person, stores: Stores) -> None:
    tomorrow = (datetime.now(UTC) + timedelta(days=1)).isoformat()
    job = await ann.do(LAUNCH, input=call_list(startAt=tomorrow, expectedCallS=86_400))
    assert job["estimatedEndAt"] is not None
    far_future = {"start_at": datetime(9999, 12, 31, 23, 59, 50, tzinfo=UTC)}
    await stores.mongo["call_jobs"].update_one({"_id": job["id"]}, {"$set": far_future})
    assert (await ann.do(READ, id=job["id"]))["estimatedEndAt"] is None


@pytest.mark.parametrize(
    ("more", "field"),
    [
        ({"name": ""}, "name"),
        ({"scenario": " "}, "scenario"),
        ({"maxAttempts": 0}, "maxAttempts"),
        ({"retryDelayS": -1}, "retryDelayS"),
        ({"expectedCallS": 0}, "expectedCallS"),
        ({"window": {"start": "9:00", "end": "18:00", "timeZone": "UTC"}}, "start"),
        ({"window": {"start": "09:00", "end": "24:00", "timeZone": "UTC"}}, "end"),
        ({"window": {"start": "09:00", "end": "18:00", "timeZone": "Mars/Base"}}, "timeZone"),
        ({"window": {"start": "09:00", "end": "18:00", "timeZone": "../etc/passwd"}}, "timeZone"),
        ({"window": {"start": "09:00", "end": "18:00", "timeZone": "right/Asia/Tokyo"}}, "timeZone"),
        ({"window": {"start": "09:00", "end": "18:00", "timeZone": "posix/Asia/Tokyo"}}, "timeZone"),
        ({"window": {"start": "09:00", "end": "18:00", "timeZone": "UTC", "weekdays": []}}, "weekdays"),
        ({"startAt": "9999-12-31T23:59:50Z"}, "startAt"),
        ({"csv": "phone_number\n" + "x" * 11_000_000}, "csv"),
    ],
)
async def test_bad_argument_is_named_in_the_error(ann: Person, more: dict[str, Any], field: str) -> None:
    for query in (LAUNCH, CHECK):
        assert (await ann.fails(query, input=call_list() | more))["field"] == field


async def test_jobs_are_paged_by_creation_and_filtered_by_state(ann: Person) -> None:
    jobs = [await ann.do(LAUNCH, input=call_list()) for _ in range(3)]
    await ann.do(PAUSE.replace("pause", "cancel"), id=jobs[1]["id"])
    newest = await ann.do(PAGE, latest="now", limit=2)
    assert [item["id"] for item in newest["items"]] == [jobs[2]["id"], jobs[1]["id"]]
    assert (newest["hasOlder"], newest["hasNewer"]) == (True, False)
    running = await ann.do(PAGE, oldest=jobs[0]["timestamp"], states=["RUNNING"])
    assert [item["id"] for item in running["items"]] == [jobs[0]["id"], jobs[2]["id"]]
    assert len({job["timestamp"] for job in jobs}) == 3


async def test_job_is_paused_resumed_and_cancelled(ann: Person) -> None:
    job = await ann.do(LAUNCH, input=call_list())
    assert (await ann.do(PAUSE, id=job["id"]))["state"] == "PAUSED"
    assert (await ann.do(PAUSE, id=job["id"]))["state"] == "PAUSED"
    assert (await ann.do(PAUSE.replace("pause", "resume"), id=job["id"]))["state"] == "RUNNING"
    cancelled = await ann.do(PAUSE.replace("pause", "cancel"), id=job["id"])
    assert cancelled == {"state": "CANCELLED", "progress": {"queued": 0, "cancelled": 2}}
    job = await ann.do(READ, id=job["id"])
    assert {task["state"] for task in job["tasks"]} == {"CANCELLED"}
    assert await ann.code(PAUSE, id=job["id"]) == "CONFLICT"
    query = "query ($id: ID!, $s: [CallTaskState!]) { done: callJob(id: $id) { tasks(states: $s) { id } } }"
    assert len((await ann.do(query, id=job["id"], s=["CANCELLED"]))["tasks"]) == 2
    assert (await ann.do(query, id=job["id"], s=["QUEUED"]))["tasks"] == []


async def test_repeated_report_changes_nothing(ann: Person, stores: Stores) -> None:
    await ann.do(LIMITS, input={"concurrentCalls": 2, "callsPerSecond": 100})
    job = await ann.do(LAUNCH, input=call_list())
    call_id = await start_call(stores, job)
    report = {"callId": call_id, "sequence": 1, "event": "ANSWERED"}
    assert (await ann.do(REPORT, input=report))["state"] == "IN_CALL"
    assert (await ann.fails(REPORT, input=report | {"sequence": 2, "event": "ENDED"}))["field"] == "outcome"
    end_report = report | {"sequence": 2, "event": "ENDED", "outcome": "VOICEMAIL"}
    for _ in range(2):
        assert await ann.do(REPORT, input=end_report) == {"state": "COMPLETED", "outcome": "VOICEMAIL", "attempts": 1}
    late_report = end_report | {"sequence": 3, "outcome": "BUSY"}
    assert (await ann.do(REPORT, input=late_report))["outcome"] == "VOICEMAIL"
    progress = (await ann.do(READ, id=job["id"]))["progress"]
    assert (progress["completed"], progress["queued"]) == (1, 1)
    assert progress["outcomes"] == [{"outcome": "VOICEMAIL", "count": 1}]


@pytest.mark.parametrize(
    ("after_s", "expected_s"),
    [(-3600, 0.0), (0.04, 0.04), (3600, None)],
    ids=["before its start", "within", "in future"],
)
async def test_reported_end_is_kept_between_start_and_now(
    ann: Person, stores: Stores, after_s: float, expected_s: float | None
) -> None:
    await ann.do(LIMITS, input={"concurrentCalls": 1, "callsPerSecond": 100})
    job = await ann.do(LAUNCH, input=call_list())
    report = {"callId": await start_call(stores, job), "sequence": 1, "event": "ENDED", "outcome": "ANSWERED"}
    started_at = datetime.fromisoformat((await call_times(ann, job))["startedAt"])
    await asyncio.sleep(0.05)
    at = started_at + timedelta(seconds=after_s)
    await ann.do(REPORT, input=report | {"at": at.isoformat()})
    ended_at = datetime.fromisoformat((await call_times(ann, job))["endedAt"])
    if expected_s is None:
        assert started_at < ended_at <= await stores.mongo.now()
    else:
        assert ended_at == started_at + timedelta(seconds=expected_s)


async def call_times(ann: Person, job: dict[str, Any]) -> dict[str, str]:
    query = "query ($id: ID!) { done: callJob(id: $id) { tasks(limit: 1) { startedAt endedAt } } }"
    times: dict[str, str] = (await ann.do(query, id=job["id"]))["tasks"][0]
    return times


async def test_call_events_reach_operators_only(ann: Person, sign_in: SignIn, stores: Stores) -> None:
    bob = await sign_in("bob")
    async with ann.subscribed(JOB_EVENTS) as events:
        await ann.do(LIMITS, input={"concurrentCalls": 5, "callsPerSecond": 2.5})
        assert await events.next_event() == {"kind": "CallLimitsChanged", "limits": {"concurrentCalls": 5}}
        job = await ann.do(LAUNCH, input=call_list())
        assert await events.next_event() == {"kind": "CallJobChanged", "job": {"id": job["id"], "state": "RUNNING"}}
        call_id = await start_call(stores, job)
        event = await events.next_event()
        assert event == {"kind": "CallTaskChanged", "task": {"phoneNumber": "+819012345678", "state": "DIALLING"}}
        end_report = {"callId": call_id, "sequence": 1, "event": "ENDED", "outcome": "ANSWERED"}
        await ann.do(REPORT, input=end_report)
        kinds = [(await events.next_event())["kind"] for _ in range(2)]
        assert sorted(kinds) == ["CallJobChanged", "CallTaskChanged"]
    assert await bob.code(READ, id=job["id"]) == "FORBIDDEN"
    async for answer in bob.answers(JOB_EVENTS, job=job["id"]):
        assert answer["errors"][0]["extensions"]["code"] == "FORBIDDEN"
        break


async def test_call_fields_require_their_roles(ann: Person, sign_in: SignIn) -> None:
    member, operator, service = [
        await sign_in(role.value.lower(), roles=[role]) for role in (Role.MEMBER, Role.OPERATOR, Role.SERVICE)
    ]
    limits = {"concurrentCalls": 1, "callsPerSecond": 1}
    report = {"callId": "a-1-1", "sequence": 1, "event": "ANSWERED"}
    add_do_not_call = 'mutation { done: addDoNotCall(phoneNumbers: ["+819012345678"]) }'
    for query, variables in [(LAUNCH, {"input": call_list()}), (CHECK, {"input": call_list()}), (add_do_not_call, {})]:
        assert await member.code(query, **variables) == "FORBIDDEN"
        assert await service.code(query, **variables) == "FORBIDDEN"
        assert await operator.code(query, **variables) is None
    assert await operator.code(LIMITS, input=limits) == "FORBIDDEN"
    assert await operator.code(REPORT, input=report) == "FORBIDDEN"
    assert await service.code(REPORT, input=report) == "NOT_FOUND"
