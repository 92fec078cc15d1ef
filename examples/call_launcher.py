"""Launches a call job, prints the outcome of each call as it ends, and at the end how often each outcome occurred.

Create a key with `noroshi key create --org acme --name Caller --scope calls:write --scope jobs:read`, install
`gql[websockets]`, and run `NOROSHI_KEY=nrk_... python call_launcher.py list.csv "Say {greeting}."`. The first line of
list.csv is `phone_number,greeting`. `noroshi up --demo` calls nobody: its simulator invents the outcomes.
"""

import asyncio
import os
import sys
import uuid
from pathlib import Path

from gql import Client, GraphQLRequest
from gql.client import AsyncClientSession
from gql.transport.exceptions import TransportConnectionFailed
from gql.transport.websockets import WebsocketsTransport

JOB = "id state rowErrors { row message } progress { outcomes { outcome count } }"
LAUNCH = f"mutation ($input: LaunchCallJobInput!) {{ launchCallJob(input: $input) {{ {JOB} }} }}"
EVENTS = f"""subscription ($since: Cursor) {{ jobEvents(since: $since) {{
  ... on Event {{ cursor }}
  ... on CallTaskChanged {{ task {{ jobId phoneNumber outcome }} }} ... on CallJobChanged {{ job {{ {JOB} }} }}
}} }}"""
URL = os.environ.get("NOROSHI_URL", "http://127.0.0.1:8000").replace("http", "ws", 1) + "/graphql"
SIGN_IN = {"authorization": f"Bearer {os.environ['NOROSHI_KEY']}"}


async def follow(session: AsyncClientSession, launch: dict[str, object], position: dict[str, str]) -> None:
    """Prints outcomes until the job has ended. Launches it once, also if it is called again after a lost connection."""
    job = None
    async for result in session.subscribe(GraphQLRequest(EVENTS, variable_values=dict(position))):
        event = result["jobEvents"]
        if job is None:
            job = (await session.execute(GraphQLRequest(LAUNCH, variable_values=launch)))["launchCallJob"]
        if event.get("job", {}).get("id") == job["id"]:
            job = event["job"]
        if event.get("task", {}).get("jobId") == job["id"] and event["task"]["outcome"]:
            print(event["task"]["phoneNumber"], event["task"]["outcome"], flush=True)
        if job["state"] in {"COMPLETED", "CANCELLED", "REJECTED"}:
            print(job["state"], job["rowErrors"] or job["progress"]["outcomes"])
            return
        position["since"] = event["cursor"]


async def main(csv: str, scenario: str) -> None:
    """Launches a job, and connects again after each lost connection."""
    job = {"name": "Greetings", "scenario": scenario, "csv": csv, "idempotencyKey": str(uuid.uuid4())}
    position: dict[str, str] = {}
    while True:
        socket = WebsocketsTransport(URL, init_payload=SIGN_IN, subprotocols=["graphql-transport-ws"])
        try:
            async with Client(transport=socket) as session:
                return await follow(session, {"input": job}, position)
        except TransportConnectionFailed:
            await asyncio.sleep(1)


asyncio.run(main(Path(sys.argv[1]).read_text(encoding="utf-8"), sys.argv[2]))
