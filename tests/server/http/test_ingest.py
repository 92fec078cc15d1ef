"""POST /ingest/deliveries and /ingest/reports: results and refusals. No store and no log contains their addresses."""

import asyncio
import gzip
import secrets
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import httpx2
import orjson
import pymongo
import pytest
from redis import Redis

from server.auth.tokens import mint
from server.embedded import Mongod
from tests.jobs.mail.inlets.examples import POSTMARK_BOUNCE
from tests.jobs.mail.test_reports import DSN
from tests.preloaded import preloaded_command
from tests.product import environment, eventually
from tests.serving import ServerProcess, WebProcess, server_variables, web_process, worker_process
from tests.storage.faults import failpoint
from tests.storage.mail.events import yesterday_noon

RECORD = "mutation ($events: [DeliveryEventInput!]!) { recordDeliveries(events: $events) { accepted } }"
UNBLOCK = 'mutation ($address: String!) { unblockAddress(address: $address, reason: "requested") { blocked } }'
LOOKUP = "query ($addresses: [String!]!) { addressBook(addresses: $addresses) { blocked softBounce } }"


@pytest.fixture
def http(web: WebProcess) -> Iterator[httpx2.Client]:
    headers = {"authorization": f"Bearer {web.token('mta', roles=('SERVICE',))}"}
    with httpx2.Client(base_url=web.url, timeout=60, headers=headers) as http:
        yield http


def event_line(**more: Any) -> dict[str, Any]:
    """Returns a delivery event with a new id, changed by `more`."""
    return {"eventId": secrets.token_hex(8), "address": "ann@example.org", "at": yesterday_noon().isoformat(), **more}


def ndjson(*lines: object) -> bytes:
    """Returns a body of lines: bytes unchanged, other values as JSON."""
    return b"\n".join(each if isinstance(each, bytes) else orjson.dumps(each) for each in lines) + b"\n"


def test_repeated_lines_are_duplicates(http: httpx2.Client) -> None:
    body = ndjson(*(event_line(smtpCode=550, enhancedStatus="5.1.1", messageId=None) for _ in range(2500)))
    answers = [http.post("/ingest/deliveries", content=body) for _ in range(2)]
    assert [each.status_code for each in answers] == [200, 200]
    assert [each.json() for each in answers] == [
        {"accepted": 2500, "duplicates": 0, "rejected": []},
        {"accepted": 0, "duplicates": 2500, "rejected": []},
    ]


def test_malformed_line_is_rejected_by_index(http: httpx2.Client) -> None:
    secret = "canary@example.org"
    body = ndjson(
        event_line(), b"", b"{not json", event_line(address=None), event_line(at="yesterday"),
        event_line(at="2026-11-20T12:00:00"), event_line(address="nobody", eventId="odd"),
        event_line(smtpCode="550"), [secret], event_line(kind="ODD"), event_line(),
    )  # fmt: skip
    answer = http.post("/ingest/deliveries", content=body).json()
    assert (answer["accepted"], answer["duplicates"]) == (2, 0)
    rejected = [(each["index"], each["message"].partition(":")[0]) for each in answer["rejected"]]
    assert rejected == [
        (2, "line"), (3, "address"), (4, "at"), (5, "at"), (6, "address"), (7, "smtpCode"), (8, "line"), (9, "kind"),
    ]  # fmt: skip
    assert answer["rejected"][4]["eventId"] == "odd"
    assert [len(each["eventId"]) for each in answer["rejected"]] == [0, 16, 16, 16, 3, 16, 0, 16]
    assert secret not in str(answer)


def test_line_with_lone_surrogate_is_rejected_by_field(http: httpx2.Client) -> None:
    lines = [
        event_line(diagnostic="<half>", eventId="one"), event_line(), event_line(eventId="<half>"),
        event_line(address="<half>@example.org", eventId="two"), event_line(tag="<half>", eventId="three"), ["<half>"],
    ]  # fmt: skip
    body = ndjson(*lines).replace(b"<half>", b"\\ud83d")
    answer = http.post("/ingest/deliveries", content=body).json()
    assert (answer["accepted"], answer["duplicates"]) == (1, 0)
    rejected = [(each["index"], each["eventId"], each["message"].partition(":")[0]) for each in answer["rejected"]]
    assert rejected == [
        (0, "one", "diagnostic"), (2, "\\ud83d", "eventId"), (3, "two", "address"), (4, "three", "tag"),
        (5, "", "line"),
    ]  # fmt: skip


@pytest.mark.parametrize(
    "content",
    [b"mail sent\nmail sent\n", b"\x1f\x8b"],
    ids=["plain text", "binary"],
)
def test_body_without_json_objects_is_refused_whole(http: httpx2.Client, content: bytes) -> None:
    answer = http.post("/ingest/deliveries", content=content)
    assert answer.status_code == 400
    assert "one JSON object on each line" in answer.json()["errors"][0]["message"]


def test_gzip_body_is_recorded(http: httpx2.Client) -> None:
    body = gzip.compress(ndjson(event_line(), event_line()))
    answer = http.post("/ingest/deliveries", content=body, headers={"content-encoding": "gzip"})
    assert answer.json() == {"accepted": 2, "duplicates": 0, "rejected": []}


@pytest.mark.parametrize(
    ("encoding", "content", "status"),
    [
        ("gzip", gzip.compress(b" " * 20_000_001), 413),
        ("gzip", gzip.compress(ndjson(event_line()))[:-4], 400),
        ("gzip", gzip.compress(b"{}") + b"{}", 400),
        ("gzip", b"{}", 400),
        ("br", b"{}", 400),
    ],
    ids=["larger than the limit", "cut off", "with more after it", "no gzip", "another encoding"],
)
def test_unreadable_encoding_is_refused(http: httpx2.Client, encoding: str, content: bytes, status: int) -> None:
    answer = http.post("/ingest/deliveries", content=content, headers={"content-encoding": encoding})
    assert answer.status_code == status
    assert answer.json()["errors"][0]["extensions"]["code"] == "BAD_USER_INPUT"


def test_repeated_report_is_duplicate(http: httpx2.Client) -> None:
    content = DSN.replace("20 Nov 2026", yesterday_noon().strftime("%d %b %Y")).encode()
    answers = [http.post("/ingest/reports", content=content).json() for _ in range(2)]
    assert [(each["accepted"], each["duplicates"]) for each in answers] == [(3, 0), (0, 3)]


def test_message_that_is_no_report_is_400(http: httpx2.Client) -> None:
    answer = http.post("/ingest/reports", content=b"Subject: hello\n\nhello\n")
    assert answer.status_code == 400
    assert answer.json()["errors"][0]["extensions"]["code"] == "BAD_USER_INPUT"


@pytest.mark.parametrize("path", ["/ingest/deliveries", "/ingest/reports"])
def test_ingest_requires_service_role_and_limits_body(web: WebProcess, http: httpx2.Client, path: str) -> None:
    def status(token: str | None, content: bytes = b"") -> int:
        headers = {"authorization": f"Bearer {token}"} if token else {}
        return httpx2.post(f"{web.url}{path}", content=content, headers=headers, timeout=60).status_code

    assert status(None) == 401
    assert status("nonsense") == 401
    assert status(web.token("ann")) == 403
    assert status(web.token("ann", roles=("ADMIN",))) == 403
    assert http.post(path, content=b"x" * 20_000_001).status_code == 413
    assert http.get(path).status_code == 405


@contextmanager
def redis_commands(redis_url: str) -> Iterator[list[str]]:
    """Records the commands that reach Redis. The list is complete after the block."""
    commands: list[str] = []
    with Redis.from_url(redis_url) as client, Redis.from_url(redis_url) as other, client.monitor() as monitor:
        yield commands
        other.echo("end of recording")
        for received in monitor.listen():
            commands.append(received["command"])
            if "end of recording" in commands[-1]:
                return


CANARY = "canary.address@example.org"
CANARIES = (CANARY, f"{CANARY}@")
"""A well-formed and a malformed address that must appear nowhere."""


def test_addresses_never_appear_in_stores_or_logs(
    web: WebProcess, http: httpx2.Client, tmp_path: Path, mongodb_uri: str, redis_url: str
) -> None:
    client: pymongo.MongoClient[dict[str, Any]] = pymongo.MongoClient(mongodb_uri)
    with client, redis_commands(redis_url) as commands:
        database = client[web.database]
        with worker_process(
            tmp_path / "worker", mongodb_uri, redis_url, web.database, NOROSHI_LOG_LEVEL="debug"
        ) as worker:
            send_canary_over_http(web, http)
            logs = run_mail_commands(web, tmp_path, server_variables(mongodb_uri, redis_url, web.database))
            assert eventually(lambda: database["mail_ledger"].find_one({"waiting": {"$exists": True}}) is None)
        collections = [
            name for name in database.list_collection_names() if "canary" in str(list(database[name].find()))
        ]
    assert commands
    assert [command for command in commands if "canary" in command] == []
    assert collections == []
    logs |= {"web": web.log_text, "worker": worker.log_text}
    assert "worker_ready" in logs["worker"]
    assert "mail_log" in logs["tail"]
    assert [name for name, text in logs.items() if "canary" in text] == []


def test_mail_address_of_token_is_stored_with_its_user_only(web: WebProcess, mongodb_uri: str, redis_url: str) -> None:
    token = mint(web.secret, user_id="mia", organization_id="acme", email=CANARY)
    create = 'mutation { createCommunity(input: {name: "hills"}) { id } createPost(input: {text: "lit"}) { id } }'
    client: pymongo.MongoClient[dict[str, Any]] = pymongo.MongoClient(mongodb_uri)
    with client, redis_commands(redis_url) as commands:
        headers = {"authorization": f"Bearer {token}"}
        answer = httpx2.post(f"{web.url}/graphql", json={"query": create}, headers=headers, timeout=60).json()
        assert "errors" not in answer, answer
        database = client[web.database]
        collections = [name for name in database.list_collection_names() if CANARY in str(list(database[name].find()))]
    assert collections == ["users"]
    assert [command for command in commands if CANARY in command] == []
    assert CANARY not in web.log_text


def send_canary_over_http(web: WebProcess, http: httpx2.Client) -> None:
    """Sends the canary addresses to every HTTP endpoint that accepts addresses."""
    http.post("/ingest/deliveries", content=ndjson(event_line(address=CANARY, diagnostic=CANARY, eventId=CANARY)))
    http.post("/ingest/deliveries", content=ndjson(event_line(address=f"{CANARY}@"), {"address": CANARY}))
    http.post("/ingest/reports", content=canary_report())
    head = f"{yesterday_noon().isoformat()} mx postfix/smtp[7]: 4Q00000002:"
    for address in CANARIES:
        line = (
            f"{head} to=<{address}>, relay=x, delay=1, dsn=4.2.2, status=deferred (said: 452 4.2.2 {address} is full)"
        )
        http.post("/ingest/postfix", content=f"{line}\n{CANARY} is no line\n")
        http.post("/ingest/postmark", json=POSTMARK_BOUNCE | {"Email": address, "BouncedAt": f"{yesterday_noon()}"})
        http.post("/ingest/postmark", json={"RecordType": "Bounce", "Email": address, "Details": CANARY})
    http.post("/graphql", json={"query": LOOKUP, "variables": {"addresses": [CANARY] * 1001}})
    operator = {"authorization": f"Bearer {web.token('op', roles=('OPERATOR',))}"}
    for address in CANARIES:
        http.post("/graphql", json={"query": LOOKUP, "variables": {"addresses": [address]}})
        event = event_line(address=address, messageId=CANARY, smtpCode=550, diagnostic=CANARY, kind="DELIVERY")
        http.post("/graphql", json={"query": RECORD, "variables": {"events": [event]}})
        unblock = {"query": UNBLOCK, "variables": {"address": address}}
        answer = http.post("/graphql", json=unblock, headers=operator).json()
        assert ("errors" in answer) == (address != CANARY), answer


def canary_report() -> bytes:
    """Returns a delivery report about the canary addresses."""
    dated = DSN.replace("20 Nov 2026", yesterday_noon().strftime("%d %b %Y"))
    return dated.replace("full@example.org", CANARY).replace("Gone@Example.org", f"{CANARY}@").encode()


def run_mail_commands(web: WebProcess, folder: Path, variables: dict[str, str]) -> dict[str, str]:
    """Runs every mail command that reads addresses, with the canary addresses. Returns each command's log by name."""
    report, rows, log = folder / "report.eml", folder / "rows.csv", folder / "mail.log"
    report.write_bytes(canary_report())
    rows.write_text(f"address,success,soft_bounce,hard_bounce\n{CANARY},0,1,0\n")
    malformed = folder / "malformed.csv"
    malformed.write_text(f"address,success,soft_bounce,hard_bounce\n{CANARY}@,0,1,0\n")
    result = "relay=x, delay=1, dsn=4.2.2, status=deferred (said: 452 4.2.2"
    head = f"{yesterday_noon().isoformat()} mx postfix/smtp[7]: 4Q00000001:"
    log.write_text("".join(f"{head} to=<{address}>, {result} {CANARY} is full)\n" for address in CANARIES))
    commands = {
        "report": ["report", str(report)],
        "import": ["import", str(rows), "--source", "old"],
        "malformed import": ["import", str(malformed), "--source", "old"],
        "tail": ["tail", str(log), "--state", str(folder / "state")],
    }
    with ExitStack() as stack:
        running = {
            name: stack.enter_context(mail_command(folder / name, each, variables)) for name, each in commands.items()
        }
        codes = {name: each.process.wait(60) for name, each in running.items() if name != "tail"}
        assert codes == {"report": 1, "import": 0, "malformed import": 1}, {n: e.log_text for n, e in running.items()}
        assert running["tail"].wait_for_log("mail_log"), running["tail"].log_text
    return {name: each.log_text for name, each in running.items()}


@contextmanager
def mail_command(folder: Path, arguments: list[str], variables: dict[str, str]) -> Iterator[ServerProcess]:
    """Runs a mail command in a forked process, and terminates it afterwards if it still runs."""
    folder.mkdir()
    command, log = ["mail", *arguments, "--org", "acme"], folder / "log"
    process = preloaded_command(command, environment(**variables), log)
    yield ServerProcess(process, log)
    process.terminate()
    process.wait(60)


@pytest.mark.anyio
async def test_excess_lookups_are_refused_and_others_are_served(
    tmp_path: Path, own_mongod: Mongod, redis_url: str
) -> None:
    body = {"query": LOOKUP, "variables": {"addresses": [f"a{n}@example.org" for n in range(1000)]}}
    with web_process(tmp_path, own_mongod.uri, redis_url) as web:
        headers = {"authorization": f"Bearer {web.token('mta', roles=('SERVICE',))}"}
        limits = httpx2.Limits(max_connections=200)
        slow_reads: dict[str, Any] = {
            "namespace": f"{web.database}.mail_addresses",
            "blockConnection": True,
            "blockTimeMS": 300,
        }
        async with httpx2.AsyncClient(base_url=web.url, timeout=60, headers=headers, limits=limits) as http:
            # Slow reads keep the first lookups in their slots until the others have arrived, on any machine.
            async with failpoint(own_mongod.uri, "find", **slow_reads):
                answers = await asyncio.gather(*(http.post("/graphql", json=body) for _ in range(160)))
            results = [each.json() for each in answers]
            refused = [each for each in results if each["data"] is None]
            served = [each for each in results if each["data"] is not None]
            assert refused
            assert served
            extensions = [each["errors"][0]["extensions"] for each in refused]
            assert extensions == [{"code": "RATE_LIMITED", "retryAfterMs": 1000}] * len(refused)
            assert all(len(each["data"]["addressBook"]) == 1000 for each in served)
            assert (await http.post("/graphql", json=body)).status_code == 200
            metrics = (await http.get("/metrics")).text
    assert f'noroshi_mail_lookups_total{{outcome="refused"}} {len(refused)}.0' in metrics
