"""Recordings through the API: reported by the service, shown to operators, and downloaded by nobody else."""

from typing import Any

import httpx2
import pytest

from server.auth.credentials import SESSION_COOKIE
from storage.calls.records import CallOutcome
from storage.identity.audit import command_line_actor
from storage.identity.keys.records import NewServiceKey
from storage.identity.roles import Role
from storage.identity.session_records import NewSession, SignInMethod
from storage.stores import Stores
from tests.resolvers.people import Person, SignIn
from tests.server.http import test_avatars
from tests.storage.calls.recorded_calls import URL, claim_of, end_call, start_call, store_recording
from tests.twins.recordings import WAV

pytestmark = pytest.mark.anyio

client = test_avatars.client

RECORDING = "recording { url contentType size }"
REPORT = f"mutation ($input: CallReportInput!) {{ done: reportCall(input: $input) {{ state {RECORDING} }} }}"
READ = f"query ($id: ID!) {{ callJob(id: $id) {{ tasks {{ id {RECORDING} }} }} }}"


@pytest.fixture
async def ann(sign_in: SignIn) -> Person:
    return await sign_in("ann", roles=[Role.OPERATOR])


@pytest.fixture
async def service(sign_in: SignIn) -> Person:
    return await sign_in("telephony", roles=[Role.SERVICE])


def report(call_id: str, url: str | None = URL, **more: Any) -> dict[str, Any]:
    return {"callId": call_id, "sequence": 1, "event": "ENDED", "outcome": "ANSWERED", "recordingUrl": url, **more}


async def recording_of(person: Person, call_id: str) -> dict[str, Any] | None:
    """Returns the recording of the only number of a call's job."""
    job = (await person.run(READ, id=call_id.rsplit("-", 2)[0]))["callJob"]
    recording: dict[str, Any] | None = job["tasks"][0]["recording"]
    return recording


async def headers(person: Person, *roles: Role) -> dict[str, str]:
    """Returns the headers of a page's download, in a session that is limited to the roles."""
    assert person.user is not None
    new = NewSession(person.user.key, SignInMethod.DEMO, roles=frozenset(roles or person.roles))
    session = await person.stores.sessions.begin(new)
    return {"cookie": f"{SESSION_COOKIE}={session}", "sec-fetch-site": "same-origin"}


async def test_reported_recording_is_shown_once_stored(ann: Person, service: Person, stores: Stores) -> None:
    call_id = await start_call(stores)
    assert (await service.run(REPORT, input=report(call_id)))["done"] == {"state": "COMPLETED", "recording": None}
    assert await recording_of(ann, call_id) is None
    claim = await claim_of(stores)
    assert (claim.call_id, claim.url) == (call_id, URL)
    await stores.call_recordings.store(claim, [await stores.file_objects.put(claim.file_id, WAV)], "audio/wav")
    url = f"/files/{claim.file_id}/call-{call_id}.wav"
    assert await recording_of(ann, call_id) == {"url": url, "contentType": "audio/wav", "size": len(WAV)}


async def test_recording_is_reported_after_the_end_or_before(service: Person, stores: Stores) -> None:
    late, early = [await start_call(stores) for _ in range(2)]
    await end_call(stores, late, CallOutcome.VOICEMAIL)
    for _ in range(2):
        await service.run(REPORT, input=report(late, sequence=0))
        await service.run(REPORT, input=report(early, event="ANSWERED", outcome=None, sequence=0))
    assert sorted([(await claim_of(stores)).call_id for _ in range(2)]) == sorted([late, early])
    assert await stores.call_recordings.claim() is None


@pytest.mark.parametrize("url", ["ftp://a.example/x", "https://", "call.wav", "https://u:p@a.example/", "https://a b/"])
async def test_address_that_is_none_is_refused(service: Person, stores: Stores, url: str) -> None:
    error = await service.fails(REPORT, input=report(await start_call(stores), url))
    assert (error["code"], error["field"]) == ("BAD_USER_INPUT", "recordingUrl")
    assert await stores.mongo["files"].count_documents({}) == 0


async def test_other_people_can_report_no_recording(sign_in: SignIn, ann: Person, stores: Stores) -> None:
    call_id = await start_call(stores)
    foreign = await sign_in("telephony", organization="other", roles=[Role.SERVICE])
    assert await foreign.code(REPORT, input=report(call_id)) == "NOT_FOUND"
    assert await ann.code(REPORT, input=report(call_id)) == "FORBIDDEN"
    assert await stores.mongo["files"].count_documents({}) == 0


async def test_service_without_the_right_sees_no_recording(ann: Person, service: Person, stores: Stores) -> None:
    call_id = await start_call(stores)
    await store_recording(stores, call_id)
    assert (await service.run(REPORT, input=report(call_id)))["done"]["recording"] is None
    assert await recording_of(ann, call_id) is not None


async def test_download_is_an_attachment_for_operators_only(
    ann: Person, sign_in: SignIn, stores: Stores, client: httpx2.AsyncClient
) -> None:
    call_id = await start_call(stores)
    await store_recording(stores, call_id)
    recording = await recording_of(ann, call_id)
    assert recording is not None
    path = recording["url"]
    answer = await client.get(path, headers=await headers(ann))
    assert (answer.status_code, answer.content, answer.headers["content-type"]) == (200, WAV, "audio/wav")
    assert answer.headers["content-disposition"] == f"attachment; filename*=UTF-8''call-{call_id}.wav"
    assert answer.headers["content-security-policy"] == "sandbox; default-src 'none'"
    assert answer.headers["x-content-type-options"] == "nosniff"
    part = await client.get(path, headers=await headers(ann) | {"range": "bytes=4-7"})
    assert (part.status_code, part.content) == (206, WAV[4:8])
    member = await sign_in("bob")
    foreign = await sign_in("gus", organization="other", roles=[Role.OPERATOR])
    for person, roles in ((member, ()), (foreign, ()), (ann, (Role.MEMBER,))):
        refused = await client.get(path, headers=await headers(person, *roles))
        assert (refused.status_code, WAV in refused.content) == (404, False)
    assert (await client.get(path)).status_code == 401


@pytest.mark.parametrize(
    ("scopes", "status"),
    [
        (("calls:read", "files:read"), 200),
        (("calls:read",), 403),
        (("calls:write", "files:read"), 403),
        (("files:read", "jobs:read"), 403),
        (("files:read",), 404),
    ],
)
async def test_key_needs_both_scopes_for_a_recording(
    stores: Stores, client: httpx2.AsyncClient, scopes: tuple[str, ...], status: int
) -> None:
    """Other scopes give a key the role OPERATOR too, and it sees no recordings by them."""
    call_id = await start_call(stores)
    path = f"/files/{(await store_recording(stores, call_id)).file_id}/call-{call_id}.wav"
    issued = await stores.service_keys.create(command_line_actor("acme"), NewServiceKey("Archive", scopes))
    answer = await client.get(path, headers={"authorization": f"Bearer {issued.secret}"})
    assert (answer.status_code, WAV in answer.content) == (status, status == 200)


async def test_released_recording_is_not_downloaded(ann: Person, stores: Stores, client: httpx2.AsyncClient) -> None:
    call_id = await start_call(stores)
    await store_recording(stores, call_id)
    recording = await recording_of(ann, call_id)
    assert recording is not None
    await stores.call_recordings.release(call_id.rsplit("-", 2)[0])
    assert await recording_of(ann, call_id) is None
    assert (await client.get(recording["url"], headers=await headers(ann))).status_code == 404
