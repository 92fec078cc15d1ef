"""After workers are killed in the middle of an export and of an erasure, both are completed, and nothing is left.

The person uses a web process. All collections, Redis keys, uploaded files, mails and logs are searched for the
person's texts.
"""

import base64
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx2
import pytest
from starlette.requests import Request
from starlette.responses import Response

from server.auth.tokens import mint
from storage.identity.records import User, user_document_id
from storage.identity.roles import Role
from storage.mongo import Document
from storage.stores import Stores, open_stores
from tests.canary import EMAIL, CanaryPerson, arguments_with_word, create_canary
from tests.databases import CREDENTIAL_KEYS
from tests.keys import ADDRESS_KEYS
from tests.resolvers.people import Answer, until_outbox_is_empty
from tests.serving import ServerProcess, WebProcess, files_folder, web_process, worker_process
from tests.stored_strings import (
    ADDRESS,
    LOGGED,
    PHONE,
    STRINGS,
    WORD,
    documents_with_strings,
    files_with_strings,
    found_strings,
    keys_with_strings,
)
from tests.twins.mastodon import MastodonTwin
from tests.twins.twin import NetworkTwin, bearer_token, running_twin
from tests.waiting import until

pytestmark = pytest.mark.anyio

CREDENTIALS = {"NOROSHI_CREDENTIAL_KEYS": f"1:{base64.b64encode(CREDENTIAL_KEYS['1']).decode()}"}
PERSON = user_document_id("acme", "user-1")
MESSAGES = 400
"""So many that a worker is killed before it has erased them all."""

LAUNCH = """
mutation ($csv: String!) { launchCallJob(input: { name: "Poll", scenario: "Hello", csv: $csv }) { id } }
"""
EXPORT = "mutation { exportMyData { id } }"
DOWNLOAD = "{ myDataExport { downloadUrl } }"
ERASE = 'mutation ($handle: String!) { eraseUser(userId: "user-1", handle: $handle) { state } }'
INVALID = f'mutation {{ postMessage(input: {{ text: "{WORD}", nothing: "{WORD}" }}) {{ id }} }}'


@dataclass
class RemoteCanary(CanaryPerson):
    """The person, who sends all operations to a web process, with tokens that have name, handle and mail address."""

    web: WebProcess = field(kw_only=True)

    async def execute(self, query: str, /, **variables: Any) -> Answer:
        """Executes an operation."""
        self.used_arguments |= set(arguments_with_word(query, variables))
        answer: Answer = (await self.request("/graphql", json={"query": query, "variables": variables})).json()
        return {"data": answer.get("data"), "errors": answer.get("errors", [])}

    async def request(self, path: str, **more: Any) -> httpx2.Response:
        """Sends a request, a POST if it has a body."""
        roles = [role.value for role in self.roles]
        token = mint(
            self.web.secret,
            user_id=self.id,
            organization_id=self.organization_id,
            roles=roles,
            name=f"{WORD} Q",
            handle=f"{WORD}_q",
            email=EMAIL,
        )
        headers = {"authorization": f"Bearer {token}", "user-agent": f"{WORD} browser", "x-forwarded-for": ADDRESS}
        async with httpx2.AsyncClient(base_url=self.web.url, headers=headers, timeout=60) as http:
            return await http.request("POST" if "json" in more else "GET", path, **more)


class OpenMastodon(MastodonTwin):
    """A server that accepts every token as one of the person."""

    user_id, username = f"{WORD} id", WORD

    async def verify_credentials(self, request: Request) -> Response:
        self.token = bearer_token(request)
        return await super().verify_credentials(request)


@dataclass
class ErasureDeployment:
    """A web process, workers that a test kills, and a Mastodon server. All logs and data folders are in one folder."""

    folder: Path
    web: WebProcess
    stores: Stores
    mastodon: NetworkTwin
    start_worker: Callable[[str], ServerProcess]

    def remote_canary(self, stores: Stores, user: User | None, roles: frozenset[Role]) -> RemoteCanary:
        """Returns the person, who uses the web process and has an account at the Mastodon server."""
        return RemoteCanary(stores, user, roles, mastodon_url=self.mastodon.url, web=self.web)

    @property
    def uploads(self) -> Path:
        """The folder with the uploaded files."""
        return files_folder(self.web.database)

    @property
    def mails(self) -> Path:
        """The folder with the mails, since no mail server is set."""
        return self.folder / "data" / "mail"

    async def kill_during(self, worker: ServerProcess, collection: str, has_begun: Document) -> None:
        """Kills the worker once the document shows that the work has begun, and is not completed."""
        documents = self.stores.mongo[collection]

        async def is_under_way() -> bool:
            return await documents.find_one({"_id": PERSON, **has_begun}) is not None

        await until(is_under_way)
        worker.process.kill()
        worker.process.wait()
        assert await documents.find_one({"_id": PERSON, "completed_at": {"$exists": False}}), "It was too fast to kill."

    async def complete(self, collection: str) -> None:
        """Ends the wait or the claim of the killed worker, and waits until another worker has completed the work."""
        await self.make_due(collection)
        documents = self.stores.mongo[collection]

        async def is_completed() -> bool:
            return await documents.find_one({"_id": PERSON, "completed_at": {"$exists": True}}) is not None

        await until(is_completed, interval_s=0.1)

    async def make_due(self, collection: str) -> None:
        """Ends the wait or the claim."""
        past = [{"$set": {"due": {"$subtract": ["$$NOW", 1]}}}]
        query = {"_id": PERSON, "due": {"$exists": True}}
        # The killed worker may have left a transaction that locks the document.
        await self.stores.mongo.write_past_orphans(lambda: self.stores.mongo[collection].update_one(query, past))


@pytest.fixture
async def deployment(
    tmp_path: Path, mongodb_uri: str, redis_url: str, database: str
) -> AsyncIterator[ErasureDeployment]:
    """A web process without a worker."""
    with ExitStack() as stack:
        variables: dict[str, Any] = CREDENTIALS | {
            "NOROSHI_DATA_DIR": str(tmp_path / "data"),
            "NOROSHI_EGRESS_ALLOW": "127.0.0.0/8",
        }
        web = stack.enter_context(web_process(tmp_path / "web", mongodb_uri, redis_url, database=database, **variables))

        def start_worker(name: str) -> ServerProcess:
            return stack.enter_context(
                worker_process(tmp_path / name, mongodb_uri, redis_url, web.database, **variables)
            )

        keys: dict[str, Any] = {"credential_keys": CREDENTIAL_KEYS, "address_keys": ADDRESS_KEYS}
        files = str(files_folder(web.database))
        async with (
            running_twin(OpenMastodon()) as mastodon,
            open_stores(mongodb_uri, redis_url, web.database, files_address=files, is_prepared=True, **keys) as stores,
        ):
            yield ErasureDeployment(tmp_path, web, stores, mastodon, start_worker)


async def add_messages(stores: Stores) -> None:
    """Stores many messages of the person."""
    topic = await stores.mongo["topics"].find_one({"title": "Tides"})
    assert topic is not None
    common = {"author": "user-1", "text": f"{WORD} again " * 100, "reactions": []}
    await stores.mongo["messages"].insert_many(
        {"_id": {"t": topic["_id"], "ts": number}, **common} for number in range(1, MESSAGES + 1)
    )


def files_in(folder: Path) -> Iterator[Path]:
    return (path for path in folder.rglob("*") if path.is_file())


async def test_nothing_is_left_after_workers_are_killed(deployment: ErasureDeployment) -> None:
    stores = deployment.stores
    person, _ = await create_canary(stores, person=deployment.remote_canary)
    assert isinstance(person, RemoteCanary)
    await add_messages(stores)
    await person.run(LAUNCH, csv=f"phone_number\n{PHONE}\n")
    assert (await person.execute(INVALID))["errors"]
    assert (await person.request(f"/{WORD}")).status_code == 404

    first = deployment.start_worker("worker-1")
    await person.run(EXPORT)
    await deployment.kill_during(first, "exports", {"files_done": {"$gt": 0}})
    second = deployment.start_worker("worker-2")
    await deployment.complete("exports")
    address = httpx2.URL((await person.run(DOWNLOAD))["myDataExport"]["downloadUrl"])
    assert found_strings((await person.request(address.raw_path.decode())).content) == [WORD]
    assert {"users", "messages", "export_chunks"} <= (await documents_with_strings(stores.mongo)).keys()
    # All uploads are the person's. The mails are an invitation, a notice of a failed publication, and one of an unknown
    # outcome if the first worker was killed while it published.
    assert len(files_with_strings(deployment.uploads)) == len(list(files_in(deployment.uploads))) > 0
    await until(lambda: len(files_with_strings(deployment.mails)) >= 2, interval_s=0.2)

    await person.run(ERASE, handle=f"{WORD}_q")
    await deployment.make_due("erasures")
    await deployment.kill_during(second, "erasures", {"changed": {"$gt": 0}})
    third = deployment.start_worker("worker-3")
    await deployment.complete("erasures")
    await until_outbox_is_empty(stores)
    assert (await person.execute("{ viewer { id } }"))["errors"]
    assert await documents_with_strings(stores.mongo) == {}
    assert await keys_with_strings(stores.redis, stores.keys.prefix) == []
    for process in (third, deployment.web):
        process.terminate()
    assert len(list(deployment.folder.rglob("log"))) == 4
    assert len(files_with_strings(deployment.folder, (LOGGED,))) == 3, "The search does not read the logs of workers."
    assert files_with_strings(deployment.folder, (*STRINGS, PHONE)) == {}
    assert list(files_in(deployment.uploads)) == []
